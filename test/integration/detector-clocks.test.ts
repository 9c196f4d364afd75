import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { toTime } from "../../src/runtime/time.ts";
import { DetectorWorld } from "./detector-fixture.ts";

const HOUR_MS = 3_600_000;

let world: DetectorWorld;
afterEach(() => world.stop());

function prepared(): void {
  world = new DetectorWorld();
  world.template();
  world.nodes(3);
  world.check();
}

async function enabled(): Promise<void> {
  world.start();
  await world.until("enabled", () => world.status().phase === "Enabled");
}

const fencedAfterMs = () => world.until("a CR", () => world.fences().length > 0, 20_000);

describe("detector: wrong clocks", () => {
  it("an agent whose clock is an hour ahead fences no sooner than the duration says, give or take a watch's lag", async () => {
    prepared();
    world.aheadMs = HOUR_MS;
    await enabled();
    world.ready("n1", "Unknown");
    const tookMs = await fencedAfterMs();
    assert.ok(tookMs >= 5_000 && tookMs <= 11_000, `${tookMs} ms`);
    assert.equal(world.told("ClockSkew").length, 1);
    assert.match(
      world.told("ClockSkew")[0] ?? "",
      /Ready of node n1 reports that it changed 360\d s before it was observed/,
    );
  });

  it("an agent whose clock is an hour ahead waits as long for a node that had failed before its start, by the API server's time", async () => {
    prepared();
    world.aheadMs = HOUR_MS;
    world.tellsTime = true;
    world.ready("n1", "Unknown");
    await world.clock.advance(1_000);
    world.start();
    const tookMs = await fencedAfterMs();
    assert.ok(tookMs >= 8_900 && tookMs <= 11_000, `${tookMs} ms`);
    assert.ok(world.told("ClockSkew").some((note) => /clock is 3600 s ahead of the API server's/.test(note)));
  });

  it("an agent whose clock is an hour behind fences in time", async () => {
    prepared();
    world.aheadMs = -HOUR_MS;
    world.tellsTime = true;
    await enabled();
    world.ready("n1", "Unknown");
    const tookMs = await fencedAfterMs();
    assert.ok(tookMs >= 9_000 && tookMs <= 11_000, `${tookMs} ms`);
  });

  it("an agent whose clock is set forward in between fences no sooner", async () => {
    prepared();
    await enabled();
    world.ready("n1", "Unknown");
    await world.clock.advance(1_000);
    world.aheadMs = HOUR_MS;
    // When another change wakes the health check, the duration must not count as over.
    world.ready("n2", "Unknown");
    const tookMs = await fencedAfterMs();
    assert.ok(tookMs >= 8_000 && tookMs <= 10_000, `${tookMs} ms`);
  });

  it("a kubelet whose clock is behind does not have its node fenced at once", async () => {
    prepared();
    await enabled();
    const conditions = [{ type: "Ready", status: "False", lastTransitionTime: toTime(world.clock.nowMs() - HOUR_MS) }];
    world.server.collection(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
    const tookMs = await fencedAfterMs();
    assert.ok(tookMs >= 5_000 && tookMs <= 11_000, `${tookMs} ms`);
  });

  it("clocks that agree are not reported", async () => {
    prepared();
    world.tellsTime = true;
    await enabled();
    world.ready("n1", "Unknown");
    await fencedAfterMs();
    assert.deepEqual(world.told("ClockSkew"), []);
  });
});
