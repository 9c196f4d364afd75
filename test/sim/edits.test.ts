import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCED_BY, QUARANTINED_BY } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { bears, NAMESPACE, World } from "./world.ts";

// Edits by users while a host is being fenced.

const KEY = { namespace: NAMESPACE, name: "n1" };

describe("a target that is corrected while its host is being fenced", () => {
  it("a target that is corrected while its host is being fenced leads to no further order to the devices that it named before", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const targets = world.server.collection(FENCING_TARGETS);
      targets.delete({ namespace: NAMESPACE, name: "n2" });
      editTarget(world, "n2", { verification: "None" });
      world.rack.bmc("n2").pretendIdentity({ systemUUID: "", serialNumber: "" });
      // The order is accepted without an effect for now, which gives the user time to notice the mistake.
      world.rack.bmc("n2").orderDelayMs = 10_000_000;
      world.remediate("n1");
      await world.phase("n1", "PoweringOff");
      await world.until("the order is out", () => orders(world, "n2") === 1);
      world.rack.bmc("n2").orderDelayMs = 0;
      editTarget(world, "n1", { systemUUID: world.rack.host("n1").spec.systemUUID });
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(orders(world, "n2"), 1);
    }));

  it("a target that is corrected while its host is being fenced is proven off again: what another host's BMC reported counts no more", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n2" });
      editTarget(world, "n2", { verification: "None" });
      await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 2_000);
    }));
});

describe("a target without identity", () => {
  it("a target without identity that leads to another host than the node's own is found out before the first order", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n2" });
      editTarget(world, "n2", { verification: "None" });
      world.remediate("n1");
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False IdentityMismatch");
      assert.equal(orders(world, "n2"), 0);
    }));
});

describe("a stop switch that is thrown while the intent to power off is being stored", () => {
  it("a stop switch that is thrown while the intent to power off is being stored stops the order", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      delayIntent(world);
      world.remediate("n1");
      await world.clock.advance(1_000);
      world.pause(true);
      await world.clock.advance(60_000);
      assert.deepEqual(world.powerLog, []);
      assert.equal(world.condition("n1", "Processing"), "True Paused");
      world.pause(false);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));
});

describe("a target that is corrected while the intent to power off is being stored", () => {
  it("a target that is corrected while the intent to power off is being stored leads to no order to the devices that it named before", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n2" });
      editTarget(world, "n2", { verification: "None" });
      world.rack.bmc("n2").pretendIdentity({ systemUUID: "", serialNumber: "" });
      delayIntent(world);
      world.remediate("n1");
      await world.clock.advance(1_000);
      editTarget(world, "n1", { systemUUID: world.rack.host("n1").spec.systemUUID });
      await world.phase("n1", "Succeeded");
      assert.equal(orders(world, "n2"), 0);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a strategy that is edited while its host is fenced", () => {
  it("a strategy that is edited while its host is fenced leaves no taint on a host that is powered on", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { drainTimeout: "20s" });
      await world.phase("n1", "Releasing");
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      // The deletion of the Node is refused, so it stays with its taint.
      world.server.faults.inject({
        match: { method: "DELETE", pathPrefix: "/api/v1/nodes/n1" },
        times: Infinity,
        action: { kind: "status", status: 403 },
      });
      remediations.mergePatch(KEY, { spec: { strategy: { workloadRelease: "DeleteNode" } } });
      await world.until("n1 is on", () => world.rack.host("n1").power === "On");
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), false);
      world.freePod();
    }));
});

describe("a password that is changed while its host is fenced", () => {
  it("a password that changes while its host is fenced is read again, so that the host is powered on again", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0 });
      await world.phase("n1", "Releasing");
      changePassword(world, "changed");
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a password that is changed on the BMC first and in the Secret minutes later leaves no host off", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0 });
      await world.phase("n1", "Releasing");
      world.faults.password = "changed";
      await world.clock.advance(120_000);
      changePassword(world, "changed");
      world.freePod();
      await world.phase("n1", "Failed");
      assert.equal(world.rack.host("n1").power, "On");
      world.assertClean();
    }));
});

describe("signatures that a user strips from a node", () => {
  it("our marks are removed from a node even if a user has removed their signatures", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      strip(world, FENCED_BY);
      world.freePod();
      await world.phase("n1", "Rejoining");
      strip(world, QUARANTINED_BY);
      await world.phase("n1", "Succeeded");
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), false);
      world.assertClean();
    }));
});

/** Delays the write of the power-off intent by two seconds. */
function delayIntent(world: World): void {
  const pathPrefix = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`;
  const stop = world.server.onChange(({ object }) => {
    if (object.kind !== "BareMetalRemediation" || !JSON.stringify(object).includes("HostClaimed")) return;
    stop();
    const match = { method: "PATCH", pathPrefix, client: "agent" };
    world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 2_000 } });
  });
}

function editTarget(world: World, host: string, identity: Record<string, string>): void {
  const devices = [{ address: `redfish://${host}`, credentialsSecretRef: { name: "bmc" }, timeouts: { call: "2s" } }];
  const none = { systemUUID: null, verification: null };
  world.server.collection(FENCING_TARGETS).mergePatch(KEY, { spec: { identity: { ...none, ...identity }, devices } });
}

function orders(world: World, host: string): number {
  return world.devices.calls.filter((call) => call.host === host && call.call === "ForceOff").length;
}

function changePassword(world: World, password: string): void {
  world.faults.password = password;
  const data = { password: Buffer.from(password).toString("base64") };
  world.server.collection(SECRETS).mergePatch({ namespace: NAMESPACE, name: "bmc" }, { data });
}

function strip(world: World, annotation: string): void {
  world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { annotations: { [annotation]: null } } });
}
