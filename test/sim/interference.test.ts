import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODE_NAME } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE, World } from "./world.ts";

const QUICK = { retryLimit: 0, powerOffTimeout: "30s", powerOnTimeout: "30s", drainTimeout: "20s", timeout: "60s" };
const KEY = { namespace: NAMESPACE, name: "n1" };

describe("two remediations of one outage", () => {
  it("two remediations of one outage reboot the host once: the second ends as a success when the first has brought the node back", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "PoweringOff");
      world.remediate("n1", {}, "second");
      await world.phase("n1", "Succeeded");
      await world.phase("second", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a remediation whose node annotation is edited while the host is fenced", () => {
  it("a remediation whose node annotation is edited while the host is fenced goes on with the node that it was made for", () =>
    World.run({}, async (world) => {
      world.createPod("n2", "healthy");
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      world.server
        .collection(BARE_METAL_REMEDIATIONS)
        .mergePatch(KEY, { metadata: { annotations: { [NODE_NAME]: "n2" } } });
      await world.clock.advance(9_000);
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.deepEqual(
        world.markLog.filter((mark) => mark.startsWith("n2")),
        [],
      );
      assert.equal(world.pods("n2").length, 1);
      world.assertClean();
    }));
});

describe("a target that is given another node while its host is fenced", () => {
  it("a target that is given another node while its host is fenced does not lead to the other node's host", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").orderDelayMs = 10_000_000;
      world.remediate("n1", { ...QUICK, powerOffTimeout: "120s" });
      await world.phase("n1", "PoweringOff");
      world.rack.bmc("n1").setReachability("refused");
      await world.clock.advance(5_000);
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n2" });
      world.server.collection(FENCING_TARGETS).mergePatch(KEY, {
        spec: {
          nodeName: "n2",
          identity: { systemUUID: world.rack.host("n2").spec.systemUUID },
          devices: [{ address: "redfish://n2", credentialsSecretRef: { name: "bmc" }, timeouts: { call: "2s" } }],
        },
      });
      await world.phase("n1", "Failed");
      assert.deepEqual(
        world.powerLog.filter((order) => order.startsWith("n2")),
        [],
      );
      // The marks of the old owner do not hinder an agent.
      await world.hang("n2");
      world.remediate("n2");
      await world.phase("n2", "Succeeded");
      world.assertClean();
    }));
});

describe("a node that joins again under the fenced one's name", () => {
  it("a node that joins again under the fenced one's name keeps its pods: they run on another host", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      const nodes = world.server.collection(NODES);
      const { metadata, spec, status } = world.node("n1") ?? assert.fail();
      nodes.delete({ name: "n1" });
      nodes.create({ metadata: { name: "n1", labels: metadata.labels }, spec: { ...spec, taints: [] }, status });
      world.createPod("n1", "newcomer");
      await world.clock.advance(8_000);
      assert.equal(
        world.pods("n1").some((pod) => pod.metadata.name === "newcomer"),
        true,
      );
      world.freePod();
      world.server.collection(PODS).delete({ namespace: "default", name: "newcomer" });
      await world.until("it ends", () =>
        ["Succeeded", "Failed"].includes(world.remediation("n1")?.status?.phase ?? ""),
      );
    }));
});

describe("durations without sense", () => {
  for (const field of ["powerOffTimeout", "drainTimeout", "powerOnTimeout", "timeout"]) {
    it(`a ${field} of 0s never leaves the host off`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        world.remediate("n1", { ...QUICK, [field]: "0s" });
        await world.until("it ends", () =>
          ["Succeeded", "Failed"].includes(world.remediation("n1")?.status?.phase ?? ""),
        );
        assert.equal(world.rack.host("n1").power, "On");
        world.assertClean();
      }));

    it(`a ${field} of a million years does not stop a remediation`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        world.remediate("n1", { ...QUICK, [field]: "9999999999h" });
        await world.phase("n1", "Succeeded");
        world.assertClean();
      }));
  }
});

describe("an Escalate that deletes the Node in its reboots", () => {
  it("an Escalate that deletes the Node in its reboots never reprovisions a control plane host whose Node object is gone", () =>
    World.run({ hosts: ["n1", "n2", "n3"], labels: { "node-role.kubernetes.io/control-plane": "" } }, async (world) => {
      await world.clock.advance(100);
      world.rack.host("n1").failDisk();
      await world.until("n1 is not Ready", () => !world.isReady("n1"));
      world.remediate("n1", { ...QUICK, type: "Escalate", workloadRelease: "DeleteNode" });
      await world.phase("n1", "Failed", 3_600_000);
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneNode");
      assert.equal(world.devices.calls.filter(({ call }) => call === "setBootOverride").length, 0);
    }));
});

describe("a boot override that cannot be cleared", () => {
  it("a boot override that cannot be cleared is named in the verdict, since the next power-on would reinstall the host", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, type: "Reprovision", requireReboot: false });
      await world.phase("n1", "Provisioning");
      await world.until("the override is set", () => world.rack.host("n1").bootSetting.enabled === "Once");
      world.rack.bmc("n1").setReachability("refused");
      await world.phase("n1", "Failed", 3_600_000);
      const succeeded = world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Succeeded");
      assert.match(succeeded?.message ?? "", /boot override by hand/);
    }));
});

describe("a host that another agent reaches, too", () => {
  it("a host that another agent reaches, too, is reported as reset by others, if its BMC's history shows a reset that is not ours", () =>
    World.run({}, async (world) => {
      const resets = (): string[] =>
        world.notes
          .filter(({ type, reason }) => type === "Warning" && reason === "ResetByOthers")
          .map(({ regarding }) => regarding.metadata.name);
      // Only one of the two hosts is fenced by us.
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      await world.clock.advance(1_500_000);
      assert.deepEqual(resets(), []);
      world.otherClientOrders("n2", "ForceRestart");
      await world.clock.advance(1_500_000);
      assert.deepEqual(resets(), ["n2"]);
    }));
});
