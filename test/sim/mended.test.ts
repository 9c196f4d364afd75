import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { NodeHealthCheck } from "../../src/api/ironfence/node-health-check.ts";
import { createHealthCheck } from "./health-check.ts";
import { World } from "./world.ts";

// Both halves on one rack: when the cause of a failed remediation is fixed, the node must not wait for the next
// scheduled attempt.

/** The first pause after a failure. */
const PAUSE_MS = 600_000;

/** Runs `test` under a health check over all nodes. */
function run(test: (world: World) => Promise<void>, annotations: Record<string, string> = {}): Promise<void> {
  return World.run({ detector: true }, async (world) => {
    const unhealthyConditions = [{ type: "Ready", status: "Unknown", duration: "10s" }];
    const strategy = { retryLimit: 0, powerOffTimeout: "60s" };
    createHealthCheck(world, { strategy }, { annotations, spec: { unhealthyConditions, minHealthy: 0 } });
    await world.clock.advance(10_000);
    await test(world);
  });
}

const remediations = (world: World): BareMetalRemediation[] => [
  ...world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values(),
];
const isFailed = (world: World): boolean => remediations(world)[0]?.status?.phase === "Failed";
const isReadyTarget = (world: World): boolean =>
  world.target("n1")?.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
const checkCondition = (world: World, type: string): { status: string; message: string } | undefined =>
  world.server
    .collection<NodeHealthCheck>(NODE_HEALTH_CHECKS)
    .get({ name: "all" })
    ?.status?.conditions?.find((condition) => condition.type === type);

describe("a remediation that has failed for its target", () => {
  it("a remediation that has failed for its target is followed by another one as soon as the password is corrected", () =>
    run(async (world) => {
      world.faults.password = "rotated";
      await world.hang("n1");
      await world.until("it has failed", () => isFailed(world));
      const [failed] = remediations(world);
      await world.until("the target says so", () => !isReadyTarget(world), 30_000);
      assert.match(checkCondition(world, "RemediationFailed")?.message ?? "", /BMCAuthenticationFailed.*next try.*20/);
      await world.clock.advance(60_000);
      assert.equal(remediations(world)[0]?.metadata.uid, failed?.metadata.uid, "no try before anything is fixed");
      for (const { metadata } of world.server.collection(SECRETS).values()) {
        const key = { namespace: metadata.namespace ?? "", name: metadata.name };
        const password = Buffer.from("rotated").toString("base64");
        world.server.collection(SECRETS).mergePatch(key, { data: { password } });
      }
      const startMs = world.clock.nowMs();
      await world.until("another one", () => remediations(world)[0]?.metadata.uid !== failed?.metadata.uid, PAUSE_MS);
      assert.ok(world.clock.nowMs() - startMs < 15_000, `${world.clock.nowMs() - startMs} ms`);
      await world.until("n1 is back", () => remediations(world).length === 0 && world.isReady("n1"));
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(checkCondition(world, "RemediationFailed")?.status, "False");
      world.assertClean();
    }));

  it("a remediation that failed because of its target is followed by another one within a minute after its BMC is back", () =>
    run(async (world) => {
      const bmc = world.rack.bmc("n1");
      bmc.setReachability("refused");
      await world.hang("n1");
      await world.until("it has failed", () => isFailed(world));
      const [failed] = remediations(world);
      await world.until("the target says so", () => !isReadyTarget(world), 30_000);
      await world.clock.advance(300_000);
      assert.equal(remediations(world)[0]?.metadata.uid, failed?.metadata.uid, "no try before anything is fixed");
      bmc.setReachability("up");
      const startMs = world.clock.nowMs();
      await world.until("another one", () => remediations(world)[0]?.metadata.uid !== failed?.metadata.uid, PAUSE_MS);
      assert.ok(world.clock.nowMs() - startMs < 60_000, `${world.clock.nowMs() - startMs} ms`);
      await world.until("n1 is back", () => remediations(world).length === 0 && world.isReady("n1"));
      world.assertClean();
    }));

  it("a remediation that has failed for its target is not followed by another one if the target was Ready all the time", () =>
    run(async (world) => {
      world.rack.host("n1").failDisk();
      await world.until("it has failed", () => isFailed(world), 1_200_000);
      const failedMs = world.clock.nowMs();
      const [failed] = remediations(world);
      await world.until("another one", () => remediations(world)[0]?.metadata.uid !== failed?.metadata.uid);
      assert.ok(world.clock.nowMs() - failedMs >= PAUSE_MS - 1_000, `${world.clock.nowMs() - failedMs} ms`);
    }));

  it("a remediation that has failed for its target is not tried more often than the budget allows, however often its BMC comes back", () =>
    run(
      async (world) => {
        const bmc = world.rack.bmc("n1");
        world.rack.host("n1").failDisk();
        const seen = new Set<string>();
        world.server.onChange(({ object }) => {
          if (object.kind === "BareMetalRemediation" && isOrdered(object as BareMetalRemediation))
            seen.add(object.metadata.uid);
        });
        for (let round = 0; round < 5; round += 1) {
          await world.until("it has failed, or none is tried", () => isFailed(world) || isSpent(world), 7_200_000);
          bmc.setReachability("refused");
          await world.until("the target says so", () => !isReadyTarget(world), 1_200_000);
          bmc.setReachability("up");
          await world.until("the target is Ready", () => isReadyTarget(world), 1_200_000);
          await world.clock.advance(30_000);
        }
        assert.equal(seen.size, 2);
      },
      { "ironfence.io/attempt-budget": "2/24h" },
    ));
});

const isOrdered = ({ status }: BareMetalRemediation): boolean => status?.attempt?.action === "ForceOff";
const isSpent = (world: World): boolean => checkCondition(world, "AttemptBudgetSpent")?.status === "True";
