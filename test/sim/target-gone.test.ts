import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { NAMESPACE, World } from "./world.ts";

const QUICK = { retryLimit: 0, powerOnTimeout: "60s" };

/** Remediates n1, and deletes its target during the fence. */
async function loseTarget(world: World): Promise<void> {
  await world.holdPod();
  world.remediate("n1", QUICK);
  await world.phase("n1", "Releasing");
  world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n1" });
  await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 5_000);
}

function message(world: World): string {
  return world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Succeeded")?.message ?? "";
}

describe("a target that is deleted during a fence", () => {
  it("a target that is deleted during a fence leaves no mark; the state of its host is reported at once, and in the verdict", () =>
    World.run({}, async (world) => {
      await loseTarget(world);
      await world.until("it says so", () => world.condition("n1", "Processing") === "True TargetGone", 1_000);
      await world.phase("n1", "Failed", 70_000);
      assert.equal(world.condition("n1", "Succeeded"), "False TargetGone");
      assert.match(message(world), /may still be OFF/);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      world.freePod();
      world.assertClean();
    }));

  it("a target that is deleted during a fence and created again for the same host serves to power it on", () =>
    World.run({}, async (world) => {
      await loseTarget(world);
      await world.clock.advance(10_000);
      world.createTarget("n1", world.rack.host("n1").spec.systemUUID.toUpperCase());
      await world.phase("n1", "Failed", 10_000);
      assert.equal(world.condition("n1", "Succeeded"), "False TargetGone");
      assert.doesNotMatch(message(world), /OFF/);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.freePod();
      world.assertClean();
    }));

  it("a target that is deleted during a fence and created again at once serves for that, too, even after a restart of the agent", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", QUICK);
      await world.phase("n1", "Releasing");
      await world.killAgent();
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n1" });
      world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
      world.startAgent();
      await world.phase("n1", "Failed", 10_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.freePod();
      world.assertClean();
    }));

  it("a target that is deleted during a fence and created again for another host orders nothing, and the verdict says what is left", () =>
    World.run({}, async (world) => {
      await loseTarget(world);
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n2" });
      world.create(
        FENCING_TARGETS,
        { namespace: NAMESPACE, name: "n1" },
        {
          spec: {
            nodeName: "n1",
            identity: { systemUUID: world.rack.host("n2").spec.systemUUID },
            devices: [{ address: "redfish://n2", credentialsSecretRef: { name: "bmc" }, timeouts: { call: "2s" } }],
          },
        },
      );
      await world.phase("n1", "Failed", 70_000);
      assert.match(message(world), /may still be OFF/);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      assert.equal(world.devices.calls.filter(({ host, call }) => host === "n2" && call === "On").length, 0);
      world.freePod();
      world.assertClean();
    }));

  it("a target that is deleted during a fence together with its Secret and the remediation is reported before the remediation disappears, with the host that stays off", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", QUICK);
      await world.phase("n1", "Releasing");
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n1" });
      world.server.collection(SECRETS).delete({ namespace: NAMESPACE, name: "bmc" });
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      await world.until("it is gone", () => world.remediation("n1") === undefined, 70_000);
      const last =
        world.notes.findLast(({ reason, type }) => reason === "TargetGone" && type === "Warning")?.note ?? "";
      const { systemUUID } = world.rack.host("n1").spec;
      assert.match(
        last,
        new RegExp(`the remediation is deleted: .*${systemUUID}.* may still be OFF: power it on by hand`),
      );
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      world.freePod();
      world.assertClean();
    }));

  it("a target that swaps its node with another one during a fence powers neither host, and the verdict says what is left", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", QUICK);
      await world.phase("n1", "Releasing");
      const targets = world.server.collection(FENCING_TARGETS);
      targets.mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { nodeName: "n2" } });
      targets.mergePatch({ namespace: NAMESPACE, name: "n2" }, { spec: { nodeName: "n1" } });
      await world.phase("n1", "Failed", 70_000);
      assert.equal(world.condition("n1", "Succeeded"), "False TargetGone");
      assert.match(
        message(world),
        /FencingTarget ironfence\/n1 names node n2 now; the host may still be OFF: power it on/,
      );
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      assert.equal(world.markLog.at(-1), "n1 -taint");
      world.freePod();
    }));
});
