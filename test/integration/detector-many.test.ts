import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { DetectorWorld } from "./detector-fixture.ts";

// A cluster that is too large to list its nodes for every few remediations.

const NODE_COUNT = 1_010;
const WATCHED = { pathPrefix: "/api/v1/nodes" };
const REPORT_PERIOD_MS = 250;

let world: DetectorWorld;
beforeEach(() => {
  world = new DetectorWorld();
});
afterEach(() => world.stop());

/** Advances time while kubelets report, without a change that a health check uses. */
async function advance(forMs: number): Promise<void> {
  for (let passedMs = 0; passedMs < forMs; passedMs += REPORT_PERIOD_MS) {
    const annotations = { report: String(world.clock.monotonicMs()) };
    world.server.collection(NODES).mergePatch({ name: `n${NODE_COUNT - 1}` }, { metadata: { annotations } });
    await world.clock.advance(REPORT_PERIOD_MS);
  }
}

/** The number of lists of nodes by the detector: of all nodes, and of one node to get the resource version. */
function lists(): { whole: number; version: number } {
  const asked = world.requests.filter(({ watch, path }) => !watch && path.startsWith("/api/v1/nodes?"));
  const version = asked.filter(({ path }) => path.includes("limit=1&") || path.endsWith("limit=1")).length;
  return { whole: asked.length - version, version };
}

describe("detector: where many nodes fail at once, in a cluster of more than 1,000,", () => {
  it("the nodes are not listed, even if the watch shows the failures late", async () => {
    await world.enabled({ nodes: NODE_COUNT });
    world.requests.length = 0;
    world.server.faults.lagWatches(WATCHED, 4_000);
    for (let index = 0; index < 100; index += 1) world.ready(`n${index}`, "Unknown");
    await advance(4_500);
    world.server.faults.lagWatches(WATCHED, 0);
    await advance(10_000);
    assert.equal(world.fences().length, 100);
    const { whole, version } = lists();
    assert.equal(whole, 0);
    assert.ok(version >= 1 && version <= 5, `${version} questions for the version`);
  });

  it("many nodes are not read one by one before their remediations are created or deleted", async () => {
    await world.enabled({ nodes: NODE_COUNT });
    world.requests.length = 0;
    for (let index = 0; index < 100; index += 1) world.ready(`n${index}`, "Unknown");
    await advance(10_000);
    assert.equal(world.fences().length, 100);
    for (let index = 0; index < 100; index += 1) world.ready(`n${index}`, "True");
    await advance(10_000);
    assert.equal(world.fences().length, 0);
    const single = world.requests.filter(({ watch, path }) => !watch && path.startsWith("/api/v1/nodes/"));
    assert.ok(single.length <= 70, `${single.length} reads of single nodes`);
  });

  it("the nodes are listed while the watch is late, and nothing starts that the list forbids", async () => {
    await world.enabled({ nodes: NODE_COUNT, spec: { minHealthy: "90%" } });
    for (let index = 0; index < 60; index += 1) world.ready(`n${index}`, "Unknown");
    await advance(3_000);
    world.server.faults.lagWatches(WATCHED, 60_000);
    for (let index = 60; index < 200; index += 1) world.ready(`n${index}`, "Unknown");
    world.requests.length = 0;
    await advance(12_000);
    assert.deepEqual(world.fences(), []);
    assert.ok(lists().whole > 0);
    assert.match(world.told("RemediationSkipped").join(), /healthy nodes selected by the selector is 810/);
  });

  it("no remediation starts for a node that recovers while the watch is late", async () => {
    await world.enabled({ nodes: NODE_COUNT });
    for (let index = 0; index < 40; index += 1) world.ready(`n${index}`, "Unknown");
    await advance(6_000);
    world.server.faults.lagWatches(WATCHED, 60_000);
    for (let index = 0; index < 20; index += 1) world.ready(`n${index}`, "True");
    await advance(12_000);
    const fenced = world.fences().map(({ metadata }) => metadata.annotations?.["remediation.medik8s.io/node-name"]);
    assert.equal(fenced.length, 20);
    assert.ok(fenced.every((name) => Number(name?.slice(1)) >= 20));
  });
});
