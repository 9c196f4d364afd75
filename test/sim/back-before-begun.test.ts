import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CONFIRM, SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { begun, cutPower, INSTANT, runEarly } from "./early-world.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// A crash between the creation of a remediation and its first status.

const NOT_EARLY = { [SKIP_DURATION_IF_OFF]: "false" };
const EARLY = { [SKIP_DURATION_IF_OFF]: "true" };
/** The default, with a margin. */
const DURATION_MS = 330_000;

/**
 * Lets n1 fail, and kills the agent when the API server has stored a remediation of n1 and before the agent has
 * received the answer.
 */
async function failUnnoticed(world: World, fail: () => unknown): Promise<void> {
  let killed: Promise<void> | undefined;
  const stop = world.server.onChange(({ object }) => {
    if (object.kind !== BARE_METAL_REMEDIATIONS.kind) return;
    stop();
    queueMicrotask(() => void (killed = world.killAgent()));
  });
  fail();
  await world.until("the agent is killed", () => killed !== undefined);
  await killed;
  assert.deepEqual(
    begun(world).map(({ status }) => status),
    [undefined],
  );
  // So that the health check does not delete the remediation at once when the node is Ready.
  world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { healthyDelay: "900s" } });
}

async function hangAndComeBack(world: World): Promise<void> {
  const host = world.rack.host("n1");
  await failUnnoticed(world, () => host.hang());
  host.resume();
  await world.until("n1 is Ready", () => world.isReady("n1"));
}

/** Starts the next agent, which ends the remediation without an order. */
async function assertLeftAlone(world: World): Promise<void> {
  world.powerLog.length = 0;
  world.startAgent();
  await world.phase("n1", "Succeeded", 60_000);
  assert.match(world.story(), /Recovered: node n1 is Ready again by itself: its host is not powered off/);
  assert.deepEqual(world.powerLog, []);
}

describe("a remediation whose agent is killed right after the creation", () => {
  it("a node that comes back before the next agent begins its remediation is not powered off", () =>
    runEarly({ annotations: NOT_EARLY }, async (world) => {
      await hangAndComeBack(world);
      await assertLeftAlone(world);
    }));

  it("a node that is deleted and joins again before the next agent begins its remediation is not powered off", () =>
    runEarly({ annotations: NOT_EARLY }, async (world) => {
      await failUnnoticed(world, () => world.rack.host("n1").hang());
      world.server.collection(NODES).delete({ name: "n1" });
      cutPower(world, "n1");
      await world.clock.advance(10_000);
      world.otherClientOrders("n1", "On");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      await assertLeftAlone(world);
    }));

  for (const [when, afterMs] of [
    ["before", 60_000],
    ["after", DURATION_MS],
  ] as const) {
    it(`a node whose remediation was created early, and that comes back in another boot, is not powered off by an agent that begins ${when} the duration is over`, () =>
      runEarly({ annotations: EARLY, hosts: [{ name: "n1", ...INSTANT }] }, async (world) => {
        await failUnnoticed(world, () => cutPower(world, "n1"));
        assert.ok(world.isReady("n1"), "the remediation began early");
        world.otherClientOrders("n1", "On");
        await world.clock.advance(afterMs);
        await assertLeftAlone(world);
      }));
  }

  it("a node that comes back before its remediation begins is powered off if a user confirms the fence", () =>
    runEarly({ annotations: NOT_EARLY }, async (world) => {
      await hangAndComeBack(world);
      const { name, uid } = begun(world)[0]?.metadata ?? assert.fail();
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      remediations.mergePatch({ namespace: NAMESPACE, name }, { metadata: { annotations: { [CONFIRM]: uid } } });
      world.startAgent();
      await world.until("it is powered off", () => world.powerLog.includes("n1 ForceOff"), 60_000);
      await world.phase("n1", "Succeeded");
    }));
});
