import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FaultAction, Verb } from "../../hack/kube-mock/faults.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE, World } from "./world.ts";

// An agent starts while it cannot read the stop switch. It holds only power-offs.

const STRATEGY = { retryLimit: 0, drainTimeout: "10s" };

/** Ends the agent right after its power-off, and starts it again while `action` affects reads of ConfigMaps. */
async function restart(world: World, on: string, action?: FaultAction, verbs?: readonly Verb[]): Promise<void> {
  await world.holdPod();
  let killed: Promise<void> | undefined;
  world.server.onChange(({ object }) => {
    const { status } = (object.kind === "BareMetalRemediation" ? object : {}) as { status?: { timeline?: unknown[] } };
    const last = status?.timeline?.at(-1) as { step?: string } | undefined;
    if (last?.step === on) killed ??= world.killAgent();
  });
  world.rack.subscribe((event) => {
    if (event.type === on) killed ??= world.killAgent();
  });
  world.remediate("n1", STRATEGY);
  await world.until("the agent is ended", () => killed !== undefined);
  await killed;
  await world.until("n1 is off", () => world.rack.host("n1").power === "Off");
  const match = { resource: "configmaps", verbs, client: "agent" };
  if (action !== undefined) world.server.faults.inject({ match, times: Infinity, action });
  world.startAgent();
}

describe("a release whose agent is restarted before it begins", () => {
  it("a release whose agent is restarted before it begins has its whole time, though its host was proven off long before", () =>
    World.run({}, async (world) => {
      await restart(world, "PowerOffSent");
      await world.phase("n1", "Releasing", 30_000);
      await world.clock.advance(5_000);
      world.freePod();
      await world.phase("n1", "Succeeded", 60_000);
      assert.equal(world.condition("n1", "WorkloadsReleased"), "True Drained");
    }));
});

describe("a host that is off while the stop switch cannot be read", () => {
  for (const [how, action] of [
    ["fail", { kind: "status", status: 500 }],
    ["have no answer", { kind: "hang" }],
  ] as const) {
    it(`a host that is off is released and powered on although the stop switch cannot be read, if reads of it ${how}`, () =>
      World.run({}, async (world) => {
        await restart(world, "PowerOffSent", action);
        await world.phase("n1", "Releasing", 30_000);
        world.freePod();
        await world.phase("n1", "Succeeded", 60_000);
        assert.equal(world.condition("n1", "WorkloadsReleased"), "True Drained");
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.server.faults.clear();
      }));
  }

  /** Restarts the agent between its order and the write that stores it, while `verbs` fail. */
  const waits = (verbs?: readonly Verb[]): Promise<void> =>
    World.run({}, async (world) => {
      await restart(world, "ordered", { kind: "status", status: 500 }, verbs);
      await world.clock.advance(30_000);
      assert.equal(world.remediation("n1")?.status?.phase, "PoweringOff");
      assert.equal(world.condition("n1", "Processing"), "True PauseUnknown");
      world.server.faults.clear();
      world.freePod();
      await world.phase("n1", "Succeeded", 120_000);
      assert.equal(world.condition("n1", "WorkloadsReleased"), "True Drained");
      world.assertClean();
    });

  it("a host that is off while the stop switch cannot be read waits for the switch if it is not known whether the power-off was sent, and is fenced once that is read", () =>
    waits());

  it("a host that is off while the stop switch cannot be read waits as well if the read before a further power-off fails", () =>
    waits(["get"]));

  it("a host that is off while the stop switch cannot be read is powered on at the end of the state's time if both the switch and the power-off stay unknown", () =>
    World.run({}, async (world) => {
      await restart(world, "ordered", { kind: "status", status: 500 });
      await world.until("n1 is powered on", () => world.powerLog.includes("n1 On"), 400_000);
      await world.phase("n1", "Failed", 60_000);
      assert.equal(world.condition("n1", "Succeeded"), "False PauseUnknown");
      world.server.faults.clear();
      world.freePod();
    }));
});

describe("a pause or maintenance that can no longer be read", () => {
  const hold = (world: World, how: string, isHeld: boolean): void => {
    if (how === "pause") world.pause(isHeld);
    else {
      const key = { namespace: NAMESPACE, name: "n1" };
      world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: isHeld } });
    }
  };
  const unread = (world: World): void => {
    const match = { resource: "configmaps", client: "agent" };
    world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
  };

  for (const how of ["pause", "maintenance"]) {
    it(`a ${how} that can no longer be read is no longer reported by an agent that was restarted since then`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        world.rack.bmc("n1").orderDelayMs = 100_000_000;
        world.remediate("n1", { retryLimit: 0 });
        await world.phase("n1", "PoweringOff");
        await world.clock.advance(3_000);
        hold(world, how, true);
        await world.clock.advance(150_000);
        assert.match(world.condition("n1", "Processing") ?? "", /Paused|Maintenance/);
        await world.killAgent();
        unread(world);
        hold(world, how, false);
        world.startAgent();
        await world.clock.advance(30_000);
        assert.equal(world.condition("n1", "Processing"), "True PauseUnknown");
        assert.deepEqual(
          world.powerLog.filter((order) => order !== "n1 ForceOff"),
          [],
        );
        world.server.faults.clear();
      }));
  }

  it("a pause or maintenance that can no longer be read costs no attempt: the attempt continues once its end can be read", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").orderDelayMs = 100_000_000;
      world.remediate("n1", { retryLimit: 1 });
      world.onPhase("n1", "PoweringOff", () => world.onPhase("n1", "Verifying", () => world.pause(true)));
      await world.until("attempt 2", () => world.remediation("n1")?.status?.retryCount === 1);
      await world.clock.advance(600_000);
      await world.killAgent();
      unread(world);
      world.startAgent();
      await world.clock.advance(40_000);
      world.rack.bmc("n1").orderDelayMs = 0;
      world.pause(false);
      world.server.faults.clear();
      await world.phase("n1", "Succeeded", 120_000);
    }));
});
