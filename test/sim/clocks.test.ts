import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";
import { AgentClock } from "./agent-clock.ts";
import { NAMESPACE, World } from "./world.ts";

const QUICK = { retryLimit: 0, powerOffTimeout: "30s", powerOnTimeout: "30s", drainTimeout: "20s", timeout: "60s" };
const AHEAD_MS = 600_000;

describe("an agent whose clock is ten minutes ahead", () => {
  it("an agent whose clock is ten minutes ahead does not take a node for dead because its lease looks old", () =>
    World.run({ agentAheadMs: AHEAD_MS }, async (world) => {
      // The BMC of n1 powers n2 and reports the identity of n1. Node n1 is alive and reports that it is not Ready.
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
      setReady(world, "False");
      world.remediate("n1");
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False WrongHost");
      assert.deepEqual(world.powerLog, ["n2 ForceOff", "n2 On"]);
      assert.equal(world.markLog.includes("n1 +taint"), false);
      world.assertClean();
    }));

  it("an agent whose clock is ten minutes ahead does not take a reboot of the outage before for one of this outage", () =>
    World.run({ agentAheadMs: AHEAD_MS }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", QUICK, "first");
      await world.phase("first", "Succeeded");
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "first" });
      await world.clock.advance(60_000);
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, type: "Reprovision" }, "second");
      await world.phase("second", "Failed");
      assert.equal(world.condition("second", "Succeeded"), "False RebootRequired");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a node that comes back while its BMC does not answer", () => {
  it("a node that comes back while its BMC does not answer is not powered off for an outage that is over", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      world.remediate("n1");
      await world.until("it waits", () => world.condition("n1", "Processing") === "True BMCUnreachable", 5_000);
      world.otherClientOrders("n1", "ForceRestart");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.rack.bmc("n1").setReachability("up");
      await world.phase("n1", "Succeeded");
      const steps = world.remediation("n1")?.status?.timeline?.map(({ step }) => step);
      assert.equal(steps?.includes("Recovered"), true, String(steps));
      assert.deepEqual(world.powerLog, ["n1 ForceRestart"]);
      assert.deepEqual(world.markLog, []);
      world.assertClean();
    }));

  it("a node that comes back while its BMC does not answer is fenced if it was Ready from the start, after a new read and a quarantine, with its last boot recorded", () =>
    World.run({}, async (world) => {
      world.rack.bmc("n1").setReachability("refused");
      world.remediate("n1");
      await world.until("it waits", () => world.condition("n1", "Processing") === "True BMCUnreachable", 5_000);
      world.otherClientOrders("n1", "ForceRestart");
      const before = world.node("n1")?.status.nodeInfo?.bootID;
      const isRebooted = (): boolean => world.node("n1")?.status.nodeInfo?.bootID !== before && world.isReady("n1");
      await world.until("n1 has rebooted", isRebooted);
      const { bootID } = world.rack.host("n1");
      world.rack.bmc("n1").setReachability("up");
      await world.phase("n1", "PoweringOff");
      assert.deepEqual(world.markLog, ["n1 +quarantine"]);
      assert.equal(world.remediation("n1")?.status?.node?.bootID, bootID);
      await world.phase("n1", "Succeeded");
      assert.notEqual(world.node("n1")?.status.nodeInfo?.bootID, bootID);
      world.assertClean();
    }));
});

describe("an undo whose power-off an earlier agent may have sent", () => {
  for (const [what, begin] of [
    [
      "an agent whose clock is ten minutes behind",
      (world: World): void => {
        world.startAgent(-AHEAD_MS);
      },
    ],
    [
      "an agent whose clock is set back by ten minutes",
      (world: World): void => {
        world.startAgent();
        world.clock.schedule(5_000, () => world.jumpAgentClock(-AHEAD_MS));
      },
    ],
  ] as const)
    it(`an undo whose power-off an earlier agent may have sent ends after the same time with ${what}`, () =>
      World.run({}, async (world) => {
        let killed: Promise<void> | undefined;
        world.onPhase("n1", "PoweringOff", () => void (killed ??= world.killAgent()));
        await world.hang("n1");
        world.remediate("n1", QUICK);
        await world.until("the agent has ended", () => killed !== undefined);
        await killed;
        world.rack.bmc("n1").setReachability("silent");
        begin(world);
        await world.phase("n1", "Undoing");
        world.rack.bmc("n1").setReachability("up");
        await world.phase("n1", "Failed", 180_000);
        world.assertClean();
      }));
});

describe("a host that an order of an earlier agent powers off late", () => {
  const late = "a host that an order of an earlier agent powers off late";

  /**
   * Ends the agent in a phase, and starts one whose clock is ten minutes ahead, so that every order appears old to it.
   */
  async function follow(world: World, phase: string): Promise<void> {
    await world.phase("n1", phase);
    await world.killAgent();
  }

  it(`${late} is on again after an undo by an agent whose clock is ten minutes ahead`, () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").orderDelayMs = 60_000;
      world.remediate("n1", QUICK);
      await follow(world, "PoweringOff");
      world.rack.bmc("n1").orderDelayMs = 0;
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      world.startAgent(AHEAD_MS);
      await world.until("it is undone", () => world.remediation("n1") === undefined, 300_000);
      await world.clock.advance(60_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  for (const isDeleted of [false, true])
    it(`${late} is on again after an AC cycle, ${isDeleted ? "undone" : "restored"} by an agent whose clock is ten minutes ahead`, () =>
      World.run({}, async (world) => {
        world.faults.cycles.set("n1", "ignored");
        await world.hang("n1");
        world.remediate("n1", { ...QUICK, powerOn: "ACCycle", acCycleTimeout: "30s" });
        await follow(world, isDeleted ? "Rejoining" : "Restoring");
        if (isDeleted) world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
        world.startAgent(AHEAD_MS);
        await world.until("n1 is back", () => world.isReady("n1"));
        await world.clock.advance(10_000);
        // The BMC runs the cycle only now, and the host stays off.
        world.rack.host("n1").cutMains();
        world.rack.host("n1").restoreMains();
        world.rack.host("n1").order("ForceOff");
        await world.clock.advance(600_000);
        assert.equal(world.rack.host("n1").power, "On");
      }));
});

/** Sets the condition Ready of n1 until its kubelet posts again. */
function setReady(world: World, status: string): void {
  const nodes = world.server.collection<Node>(NODES);
  const conditions = (world.node("n1")?.status.conditions ?? []).map((condition) =>
    condition.type === "Ready" ? { ...condition, status } : condition,
  );
  nodes.mergePatch({ name: "n1" }, { status: { conditions } }, "status");
}

describe("a simulated clock of another rate", () => {
  it("a simulated clock of another rate advances even if only a rounding error is waited for", async () => {
    const world = new VirtualClock();
    await world.advance(104_225.625);
    const clock = new AgentClock(world, { rate: 0.8 });
    const before = clock.monotonicMs();
    let after = before;
    clock.schedule(1e-12, () => (after = clock.monotonicMs()));
    await world.advance(1);
    assert.ok(after > before, `${after}`);
  });
});
