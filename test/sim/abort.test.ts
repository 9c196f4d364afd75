import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { PODS } from "../../src/api/kubernetes/core-types.ts";
import { NAMESPACE, World } from "./world.ts";

const KEY = { namespace: NAMESPACE, name: "n1" };
const STATES = ["Verifying", "PoweringOff", "Releasing", "PoweringOn", "Rejoining", "Restoring"] as const;

/**
 * Runs a remediation until a state. A pod that ends slowly, a slow boot and a node that is not Ready at once make each
 * state last long enough.
 */
async function reach(world: World, phase: (typeof STATES)[number]): Promise<void> {
  world.createPod("n1", "db");
  await world.clock.advance(3_000);
  await world.hang("n1");
  if (phase === "Verifying") world.rack.bmc("n1").setReachability("refused");
  if (phase === "Releasing") {
    world.server
      .collection(PODS)
      .mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: ["test/held"] } });
  }
  world.remediate("n1");
  await world.phase("n1", phase, 60_000);
}

describe("a remediation that is deleted leaves the host and the node as it found them", () => {
  for (const phase of STATES.slice(0, 5)) {
    it(`a remediation that is deleted in ${phase} leaves the host and the node as it found them`, () =>
      World.run({}, async (world) => {
        await reach(world, phase);
        world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
        await world.until("the remediation is gone", () => world.remediation("n1") === undefined);
        assert.equal(
          world.rack.host("n1").power === "On" || world.rack.host("n1").power === "PoweringOn",
          true,
          world.story(),
        );
        world.assertClean();
      }));
  }
});

describe("a remediation that its health check gives up", () => {
  for (const phase of STATES.slice(0, 5)) {
    it(`a remediation that its health check gives up in ${phase} undoes what it did, and reports that`, () =>
      World.run({}, async (world) => {
        await reach(world, phase);
        const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
        world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { annotations } });
        await world.phase("n1", "Failed");
        assert.equal(world.condition("n1", "Succeeded"), "False TimedOut");
        assert.equal(world.condition("n1", "Processing"), "False TimedOut");
        assert.notEqual(world.rack.host("n1").power, "Off");
        world.assertClean();
        world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
        await world.until("the remediation is gone", () => world.remediation("n1") === undefined, 5_000);
      }));
  }
});

describe("an agent that is killed and restarted", () => {
  for (const phase of STATES.slice(1, 5)) {
    it(`an agent that is killed in ${phase} and restarted finishes the fence with one power-off in all`, () =>
      World.run({}, async (world) => {
        await reach(world, phase);
        await world.killAgent();
        if (phase === "Releasing") {
          world.server
            .collection(PODS)
            .mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: null } });
        }
        await world.clock.advance(500);
        world.startAgent();
        await world.phase("n1", "Succeeded");
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }

  for (const phase of [...STATES, "Succeeded"]) {
    it(`an agent that is killed when the answer to the write that enters ${phase} is lost finishes the fence with one power-off in all`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        let crashed: Promise<void> | undefined;
        world.onPhase("n1", phase, () => {
          crashed = world.killAgent();
        });
        world.remediate("n1");
        await world.until("the agent is killed", () => crashed !== undefined, 60_000);
        await crashed;
        world.startAgent();
        await world.phase("n1", "Succeeded");
        await world.clock.advance(1_000);
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }
});

describe("a remediation that is deleted while its host is off and its BMC is dead", () => {
  for (const [how, reason] of [
    ["refused", "BMCUnreachable"],
    ["silent", "BMCTimeout"],
  ] as const) {
    it(`a remediation that is deleted while its host is off and its BMC is ${how} says what it waits for, also after a restart of the agent`, () =>
      World.run({}, async (world) => {
        await reach(world, "Releasing");
        world.rack.bmc("n1").setReachability(how);
        world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
        await world.phase("n1", "Undoing");
        await world.killAgent();
        world.startAgent();
        await world.until("it says so", () => world.condition("n1", "Processing") === `True ${reason}`, 60_000);
        const processing = world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Processing");
        assert.match(processing?.message ?? "", /the host may be OFF, and the remediation stays until/);
        world.rack.bmc("n1").setReachability("up");
        world.freePod();
        await world.until("it is gone", () => world.remediation("n1") === undefined, 120_000);
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }
});

describe("with a successor waiting", () => {
  it("a host for which a successor waits is handed over while it is off, and the successor proves it off again", () =>
    World.run({}, async (world) => {
      await reach(world, "Releasing");
      world.remediate("n1", {}, "second");
      await world.until("the second waits", () => world.condition("second", "Processing") === "True HostBusy");
      const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
      world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { annotations } });
      await world.phase("n1", "Failed", 10_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"], "no On in between");
      world.server
        .collection(PODS)
        .mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: null } });
      await world.phase("second", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a host is powered on if the successor that waits for it is deleted before it did anything", () =>
    World.run({}, async (world) => {
      await reach(world, "Releasing");
      world.remediate("n1", {}, "second");
      await world.until("the second waits", () => world.condition("second", "Processing") === "True HostBusy");
      world.onPhase("n1", "Undoing", () => {
        world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "second" });
      });
      const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
      world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { annotations } });
      await world.until("the second is gone", () => world.remediation("second") === undefined, 60_000);
      await world.phase("n1", "Failed");
      assert.equal(
        world.rack.host("n1").power === "On" || world.rack.host("n1").power === "PoweringOn",
        true,
        world.story(),
      );
      world.assertClean();
    }));
});

describe("an undo by a process that finds another host behind the BMC", () => {
  it("an undo that finds another host behind the BMC reports it, keeps checking the identity, and powers the right host on as soon as it answers", () =>
    World.run({}, async (world) => {
      await reach(world, "Releasing");
      await world.killAgent();
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n2").spec.systemUUID });
      const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
      world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { annotations } });
      world.startAgent();
      await world.until("it says so", () => world.condition("n1", "Processing") === "True IdentityMismatch", 10_000);
      await world.clock.advance(60_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      world.rack.bmc("n1").pretendIdentity(undefined);
      await world.phase("n1", "Failed", 15_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});
