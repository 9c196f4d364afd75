import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CONFIRM, SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { begun, runEarly } from "./early-world.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// A crash between the creation of a remediation and its first status.

const NOT_EARLY = { [SKIP_DURATION_IF_OFF]: "false" };

/**
 * Kills the agent when the API server has stored a remediation of n1 and before the agent has received the answer.
 * Then n1 becomes Ready again.
 */
async function comeBackUnnoticed(world: World): Promise<void> {
  let killed: Promise<void> | undefined;
  const stop = world.server.onChange(({ object }) => {
    if (object.kind !== BARE_METAL_REMEDIATIONS.kind) return;
    stop();
    queueMicrotask(() => void (killed = world.killAgent()));
  });
  const host = await world.hang("n1");
  await world.until("the agent is killed", () => killed !== undefined);
  await killed;
  assert.deepEqual(
    begun(world).map(({ status }) => status),
    [undefined],
  );
  // So that the health check does not delete the remediation at once when the node is Ready.
  world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { healthyDelay: "120s" } });
  host.resume();
  await world.until("n1 is Ready", () => world.isReady("n1"));
}

describe("a remediation whose agent is killed right after the creation", () => {
  it("a node that comes back before the next agent begins its remediation is not powered off", () =>
    runEarly({ annotations: NOT_EARLY }, async (world) => {
      await comeBackUnnoticed(world);
      world.startAgent();
      await world.phase("n1", "Succeeded", 60_000);
      assert.match(world.story(), /Recovered: node n1 is Ready again by itself: its host is not powered off/);
      assert.deepEqual(world.powerLog, []);
    }));

  it("a node that comes back before its remediation begins is powered off if a user confirms the fence", () =>
    runEarly({ annotations: NOT_EARLY }, async (world) => {
      await comeBackUnnoticed(world);
      const { name, uid } = begun(world)[0]?.metadata ?? assert.fail();
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      remediations.mergePatch({ namespace: NAMESPACE, name }, { metadata: { annotations: { [CONFIRM]: uid } } });
      world.startAgent();
      await world.until("it is powered off", () => world.powerLog.includes("n1 ForceOff"), 60_000);
      await world.phase("n1", "Succeeded");
    }));
});
