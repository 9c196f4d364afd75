import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { statesBetween } from "../../src/remediator/machine/model/decision/state.ts";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { NAMESPACE, World } from "./world.ts";

const QUICK = { retryLimit: 0, powerOffTimeout: "30s", powerOnTimeout: "30s", drainTimeout: "20s", timeout: "60s" };
const OWN_LABELS = { "example.com/rack": "r7", "node-role.kubernetes.io/worker": "" };

/** Adds labels, annotations, a taint and a cordon of a user to the node. */
async function dress(world: World): Promise<void> {
  const taints = [
    ...(world.node("n1")?.spec.taints ?? []),
    { key: "example.com/db", value: "yes", effect: "NoSchedule" },
  ];
  world.server.collection(NODES).mergePatch(
    { name: "n1" },
    {
      metadata: { labels: OWN_LABELS, annotations: { "example.com/note": "x" } },
      spec: { taints, unschedulable: true },
    },
  );
  await world.clock.advance(100);
}

function assertDressed(world: World): void {
  const node = world.node("n1");
  for (const [key, value] of Object.entries(OWN_LABELS)) assert.equal(node?.metadata.labels?.[key], value);
  assert.equal(node?.metadata.annotations?.["example.com/note"], "x");
  assert.equal(node?.spec.unschedulable, true);
  assert.equal(node?.spec.taints?.filter(({ key }) => key === "example.com/db").length, 1);
}

describe("a reprovision", () => {
  it("a reprovision follows a reboot that did not help, and the node that joins again gets back what the old one had", () =>
    World.run({}, async (world) => {
      await dress(world);
      const before = world.node("n1")?.metadata.uid;
      world.rack.host("n1").failDisk();
      await world.until("n1 is not Ready", () => !world.isReady("n1"));
      world.remediate("n1", QUICK, "first");
      await world.phase("first", "Failed");
      assert.equal(world.condition("first", "Succeeded"), "False RejoinTimeout");
      world.remediate("n1", { ...QUICK, type: "Reprovision" }, "second");
      await world.until(
        "the deletion is announced",
        () => world.condition("second", "PermanentNodeDeletionExpected") === "True NodeDeletionExpected",
      );
      await world.phase("second", "Succeeded");
      assert.equal(world.condition("second", "PermanentNodeDeletionExpected"), "False NodeRejoined");
      assert.notEqual(world.node("n1")?.metadata.uid, before);
      assert.equal(world.isReady("n1"), true);
      assertDressed(world);
      world.assertClean();
    }));

  it("a reprovision restores the labels before the node is Ready", () =>
    World.run({}, async (world) => {
      await dress(world);
      await world.hang("n1");
      let readyWithout = false;
      world.server.onChange(({ object }) => {
        if (object.kind !== "Node" || object.metadata.name !== "n1" || !world.isReady("n1")) return;
        readyWithout ||= object.metadata.labels?.["example.com/rack"] === undefined;
      });
      world.remediate("n1", { ...QUICK, workloadRelease: "DeleteNode" });
      await world.phase("n1", "Succeeded");
      assert.equal(readyWithout, false);
      assertDressed(world);
      world.assertClean();
    }));

  it("a reprovision is refused without a proven reboot of this outage", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, type: "Reprovision" });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False RebootRequired");
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  it("a reprovision is refused if the last proven reboot belongs to an earlier outage", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", QUICK, "first");
      await world.phase("first", "Succeeded");
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "first" });
      await world.clock.advance(60_000);
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, type: "Reprovision" }, "second");
      await world.phase("second", "Failed");
      assert.equal(world.condition("second", "Succeeded"), "False RebootRequired");
      world.assertClean();
    }));

  it("a reprovision of a host without a boot override powers the host on again at once", () =>
    World.run({ driven: ["n1"] }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, type: "Reprovision", requireReboot: false });
      await world.phase("n1", "Undoing");
      const undoneFromMs = world.clock.monotonicMs();
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False BMCUnsupported");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.ok(world.clock.monotonicMs() - undoneFromMs < 30_000, "it does not wait until the device is tried again");
      world.assertClean();
    }));

  it("a reprovision is never done to a control plane node", () =>
    World.run({ hosts: ["n1", "n2", "n3"], labels: { "node-role.kubernetes.io/control-plane": "" } }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, type: "Reprovision", requireReboot: false });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneNode");
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  // The timeout ends at different points between an order and the identity check before the next one.
  for (const timeout of ["30s", "38s"]) {
    it(`a reprovision that does not help within ${timeout} leaves no boot override, and reports what was refused`, () =>
      World.run({}, async (world) => {
        world.rack.host("n1").failDisk();
        await world.until("n1 is not Ready", () => !world.isReady("n1"));
        world.faults.refuses.add("n1 On");
        // Opening the devices again takes long.
        const match = { method: "GET", pathPrefix: `/api/v1/namespaces/${NAMESPACE}/secrets`, client: "agent" };
        world.onPhase("n1", "PoweringOn", () =>
          world.server.faults.inject({ match, times: Infinity, action: { kind: "delay", delayMs: 4_000 } }),
        );
        world.remediate("n1", { ...QUICK, powerOnTimeout: timeout, type: "Reprovision", requireReboot: false });
        await world.phase("n1", "Failed");
        assert.equal(world.condition("n1", "Succeeded"), "False BMCRefused");
        world.assertClean();
      }));
  }

  for (const phase of statesBetween("Verifying", "Restoring")) {
    it(`a reprovision survives a crash at the write that enters ${phase}`, () =>
      World.run({}, async (world) => {
        await dress(world);
        await world.hang("n1");
        let crashed: Promise<void> | undefined;
        world.onPhase("n1", phase, () => {
          crashed = world.killAgent();
        });
        world.remediate("n1", { ...QUICK, type: "Reprovision", requireReboot: false });
        await world.until("the agent is killed", () => crashed !== undefined, 60_000);
        await crashed;
        world.startAgent();
        await world.phase("n1", "Succeeded");
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        assertDressed(world);
        world.assertClean();
      }));

    it(`a reprovision given up in ${phase} leaves the host on, the node with its labels, and no boot override`, () =>
      World.run({}, async (world) => {
        await dress(world);
        await world.hang("n1");
        world.onPhase("n1", phase, () => {
          const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
          world.server
            .collection(BARE_METAL_REMEDIATIONS)
            .mergePatch({ namespace: NAMESPACE, name: "n1" }, { metadata: { annotations } });
        });
        world.remediate("n1", { ...QUICK, type: "Reprovision", requireReboot: false });
        await world.until("it has a verdict", () =>
          ["Failed", "Succeeded"].includes(world.remediation("n1")?.status?.phase ?? ""),
        );
        await world.clock.advance(60_000);
        assert.notEqual(world.rack.host("n1").power, "Off");
        assertDressed(world);
        world.assertClean();
      }));
  }
});

describe("an escalation in one remediation", () => {
  it("an escalation in one remediation spends its reboots, then reprovisions", () =>
    World.run({}, async (world) => {
      world.rack.host("n1").failDisk();
      await world.until("n1 is not Ready", () => !world.isReady("n1"));
      world.remediate("n1", { ...QUICK, type: "Escalate", retryLimit: 1 });
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On", "n1 ForceOff", "n1 On", "n1 ForceOff", "n1 On"]);
      assert.equal(world.remediation("n1")?.status?.provenReboots, 2);
      world.assertClean();
    }));

  it("an escalation in one remediation does not reprovision if one of its reboots never proved the host off", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("silent");
      world.remediate("n1", { ...QUICK, type: "Escalate" });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False RebootsNotProven");
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  it("an escalation in one remediation reboots a control plane node, and does not reprovision it", () =>
    World.run({ hosts: ["n1", "n2", "n3"], labels: { "node-role.kubernetes.io/control-plane": "" } }, async (world) => {
      world.rack.host("n1").failDisk();
      await world.until("n1 is not Ready", () => !world.isReady("n1"));
      world.remediate("n1", { ...QUICK, type: "Escalate" });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneNode");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});
