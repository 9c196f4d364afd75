import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { deployPodsOfAllKinds } from "../../hack/e2e/pods-of-all-kinds.ts";
import {
  HEALTH_CHECK_SPEC,
  awaitRenewal,
  losePower,
  measureRelease,
  ordersSince,
  returnHost,
  startPowerLossWorld,
} from "../../hack/e2e/power-loss.ts";
import type { EarlyRemediation, PowerLossWorld } from "../../hack/e2e/power-loss.ts";
import { createHealthCheck } from "../../hack/e2e/rack-world.ts";
import { REMEDIATIONS } from "../../hack/e2e/scenario.ts";
import { deployDatabase } from "../../hack/e2e/workload.ts";

// The control plane runs with the default flags of Kubernetes.

const WORST_MS = 20_000;
/** The grace period of the node plus the duration of the health check, from the last renewal. */
const DURATION_MS = 340_000;

void describe("a host that loses its power under a health check with a duration of 300 s", () => {
  let world: PowerLossWorld;
  before(async () => {
    world = await startPowerLossWorld(["worker-1", "worker-2", "worker-3"], (rack) =>
      createHealthCheck(rack, {}, HEALTH_CHECK_SPEC),
    );
  });
  after(() => world?.stop());

  void test("a host that loses its power has its StatefulSet's pod replaced and its volume detached while its node still says that it is Ready", async (t) => {
    const database = await deployDatabase(world.api, "orders");
    const node = await database.runningNode();
    const others = await deployPodsOfAllKinds(world.api, node, "orders");
    const pod = await database.pod();
    assert.ok(pod);

    // Half-way between two renewals.
    await awaitRenewal(world, node, 0.5);
    const lostMs = losePower(world, node);
    const times = await measureRelease(world, database, { pod, node, lostMs });
    t.diagnostic(`after the loss of power: ${JSON.stringify(times)} ms`);
    assert.ok(times.podGone <= WORST_MS, `the pod was gone after ${times.podGone} ms`);
    await others.assertReleased(world.pods);

    const [remediation, ...more] = await world.api.list<EarlyRemediation>(REMEDIATIONS);
    assert.equal(more.length, 0);
    const notBeforeMs = Date.parse(remediation?.spec.powerOnNotBefore ?? "");
    assert.ok(notBeforeMs >= lostMs + DURATION_MS, `${notBeforeMs - lostMs} ms`);
    assert.deepEqual(ordersSince(world, node, lostMs), ["ForceOff"]);

    await returnHost(world, node);
    assert.equal(ordersSince(world, node, lostMs).filter((order) => order === "ForceOff").length, 1);
  });
});
