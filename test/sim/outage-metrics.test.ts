import assert from "node:assert/strict";
import { it } from "node:test";
import { PODS } from "../../src/api/kubernetes/core-types.ts";
import { BEFORE_UNKNOWN_MS, begun, cutPower, runEarly } from "./early-world.ts";
import { World } from "./world.ts";

const RELEASE = "ironfence_time_to_release_seconds";
const RESTORE = "ironfence_time_to_restore_seconds";

/** Count and sum of a histogram, for outages that are measured from `since`. */
async function histogram(world: World, name: string, since = "notReady"): Promise<{ count: number; sum: number }> {
  const lines = (await world.metrics(name)).split("\n");
  const value = (suffix: string): number =>
    Number(lines.find((line) => line.startsWith(`${name}${suffix}{since="${since}"} `))?.split(" ")[1]);
  return { count: value("_count"), sum: value("_sum") };
}

it("the metrics of an outage count from the node's failure until its workloads are released, and until it is restored", () =>
  World.run({}, async (world) => {
    world.createPod("n1", "db");
    await world.clock.advance(3_000);
    await world.hang("n1");
    const downMs = Date.parse(
      world.node("n1")?.status.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "",
    );
    await world.clock.advance(60_000);
    world.remediate("n1");
    await world.phase("n1", "PoweringOn");
    const release = await histogram(world, RELEASE);
    const sinceDown = (world.clock.nowMs() - downMs) / 1_000;
    assert.equal(release.count, 1);
    assert.ok(release.sum > 60 && release.sum <= sinceDown, `${release.sum} of ${sinceDown} s`);
    assert.equal((await histogram(world, RESTORE)).count, 0);
    await world.phase("n1", "Succeeded");
    const restore = await histogram(world, RESTORE);
    assert.equal(restore.count, 1);
    assert.ok(restore.sum > release.sum);
    assert.equal((await histogram(world, RELEASE)).count, 1);
    assert.match(
      await world.metrics("ironfence_bmc_request_seconds"),
      /_count\{protocol="redfish",operation="forceOff",result="ok"\} 1$/m,
    );
  }));

it("the metrics of an outage do not count a node that was Ready when it was fenced, and left Ready because of that", () =>
  World.run({}, async (world) => {
    world.createPod("n1", "db");
    await world.clock.advance(3_000);
    const held = { metadata: { finalizers: ["test/held"] } };
    world.server.collection(PODS).mergePatch({ namespace: "default", name: "db" }, held);
    world.remediate("n1");
    await world.until("n1 has left Ready", () => !world.isReady("n1"));
    assert.equal(world.remediation("n1")?.status?.phase, "Releasing");
    world.freePod();
    await world.phase("n1", "Succeeded");
    assert.equal((await histogram(world, RELEASE)).count, 0);
    assert.equal((await histogram(world, RESTORE)).count, 0);
  }));

it("the metrics of an outage also count a node whose fence another agent has begun", () =>
  World.run({}, async (world) => {
    await world.hang("n1");
    world.remediate("n1");
    await world.phase("n1", "PoweringOff");
    await world.killAgent();
    world.startAgent();
    await world.phase("n1", "Succeeded");
    assert.equal((await histogram(world, RESTORE)).count, 1);
  }));

it("the metrics of an outage count from the last renewal until an early release, and until the host is restored", () =>
  runEarly({}, async (world) => {
    world.createPod("n1", "db");
    cutPower(world, "n1");
    const lostMs = world.clock.nowMs();
    await world.until("the pod is gone", () => world.pods("n1").length === 0, BEFORE_UNKNOWN_MS);
    await world.until("n1 is released", () => begun(world)[0]?.status?.phase === "PoweringOn", BEFORE_UNKNOWN_MS);
    assert.equal(world.isReady("n1"), true);
    const sinceLossS = (world.clock.nowMs() - lostMs) / 1_000;
    const release = await histogram(world, RELEASE, "renewal");
    assert.equal(release.count, 1);
    // The last renewal is at most 10 s old when the power is lost.
    assert.ok(release.sum >= 12 && release.sum <= sinceLossS + 11, `${release.sum} of ${sinceLossS} s`);
    await world.until("n1 is back", () => begun(world).length === 0 && world.isReady("n1"));
    const restore = await histogram(world, RESTORE, "renewal");
    assert.equal(restore.count, 1);
    assert.ok(restore.sum > 350, `${restore.sum} s`);
    assert.equal((await histogram(world, RELEASE, "renewal")).count, 1);
    assert.equal((await histogram(world, RELEASE)).count, 0);
    assert.equal((await histogram(world, RESTORE)).count, 0);
  }));

it("the metrics of an outage do not count an early release whose last renewal this agent has not seen", () =>
  runEarly({}, async (world) => {
    world.createPod("n1", "db");
    cutPower(world, "n1");
    await world.until("the remediation has begun", () => begun(world).length === 1, BEFORE_UNKNOWN_MS);
    await world.killAgent();
    world.startAgent();
    await world.until("n1 is released", () => begun(world)[0]?.status?.phase === "PoweringOn", 90_000);
    assert.equal((await histogram(world, RELEASE, "renewal")).count, 0);
    assert.equal((await histogram(world, RELEASE)).count, 0);
  }));
