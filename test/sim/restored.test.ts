import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Backup } from "../../hack/kube-mock/store.ts";
import { parseTimeMs } from "../../src/runtime/time.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { BEFORE_UNKNOWN_MS, begun, cutPower, isTainted, ordersOfAgent, runEarly } from "./early-world.ts";
import { World } from "./world.ts";

/** Time until every watch has been silent twice and the agent has reacted. */
const NOTICED_MS = 300_000;
const QUICK = { retryLimit: 0, drainTimeout: "40s", timeout: "120s" };

/** Fences n1, whose pod stays for a while, and restores etcd to a backup from a state of that fence. */
async function fenceAndRestore(world: World, backedUp: string, restored: string): Promise<void> {
  let backup: Backup | undefined;
  world.onPhase("n1", backedUp, () => (backup = world.server.backUp()));
  await world.holdPod();
  world.remediate("n1", QUICK);
  await world.phase("n1", restored);
  await world.clock.advance(1_000);
  // The backup exists, because the state was reached.
  world.restore(backup ?? assert.fail("there is a backup"));
}

describe("etcd is restored to an earlier state", () => {
  for (const [backedUp, restored] of [
    ["Verifying", "Releasing"],
    ["PoweringOff", "Releasing"],
    ["Releasing", "Rejoining"],
    ["Releasing", "Succeeded"],
    ["PoweringOn", "Succeeded"],
  ] as const) {
    it(`a restore of etcd in ${restored} to a backup from ${backedUp} is noticed within minutes, and the fence ends`, () =>
      World.run({}, async (world) => {
        await fenceAndRestore(world, backedUp, restored);
        assert.equal(world.remediation("n1")?.status?.phase, backedUp);
        world.freePod();
        await world.phase("n1", "Succeeded", NOTICED_MS);
        await world.clock.advance(20_000);
        world.assertClean();
        assert.equal(world.isReady("n1"), true);
        assert.equal(world.rack.host("n1").power, "On");
      }));
  }
});

/**
 * Rules that every restore can break: pods that had left exist again next to their replacements (S2); a used attempt id
 * is stored as unused (S4); the Lease names an earlier holder (S9); an earlier owner owns a host again, and a verdict
 * is gone (S10).
 */
const BROKEN_BY_RESTORE = ["S2", "S4", "S9", "S10"];

/** Takes the violations from the observer. @returns those of rules that a restore of etcd cannot break. */
function rulesBroken(world: World): string[] {
  const broken = world.observer.violations.splice(0);
  return broken.filter(({ invariant }) => !BROKEN_BY_RESTORE.includes(invariant)).map(({ what }) => what);
}

/** Backs up and restores at random times around a fence. @returns the other rules that this broke. */
async function restoreAtRandom(seed: number): Promise<string[]> {
  const random = seededRandom(seed);
  const world = await World.start({ seed });
  try {
    await world.holdPod();
    world.remediate("n1", { ...QUICK, drainTimeout: "20s" });
    await world.clock.advance(Math.floor(random.next() * 40_000));
    const backup = world.server.backUp();
    await world.clock.advance(Math.floor(random.next() * 60_000));
    world.restore(backup);
    world.freePod();
    const isOver = (): boolean => ["Succeeded", "Failed"].includes(world.remediation("n1")?.status?.phase ?? "");
    await world.until(`seed ${seed}: it has its verdict`, isOver, 2 * NOTICED_MS);
    await world.until(`seed ${seed}: n1 is Ready`, () => world.isReady("n1"), NOTICED_MS);
    await world.clock.advance(20_000);
    world.assertClean();
    return rulesBroken(world);
  } finally {
    await world.stop();
  }
}

describe("etcd is restored at a random moment of a fence", () => {
  it("a fence during which etcd is restored at a random moment ends with the node back, no mark of ironfence left, and no rule broken that a restore can keep", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      assert.deepEqual(await restoreAtRandom(seed), [], `seed ${seed}`);
    }
  });
});

describe("watches that stay open and silent, as with a stuck watch cache", () => {
  it("a node is fenced some minutes later if watches stay open and silent, as with a stuck watch cache, because nodes are then listed again", () =>
    World.run({}, async (world) => {
      world.server.faults.lagWatches({ client: "agent" }, Infinity);
      world.server.faults.cutWatches({ client: "agent" });
      await world.hang("n1");
      // A view is stale when its watch has received nothing for 150 s. The remediation is in progress then.
      await world.clock.advance(90_000);
      world.remediate("n1", QUICK);
      await world.phase("n1", "Succeeded", 3 * NOTICED_MS);
      world.assertClean();
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      const stale = world.notes.filter(({ reason }) => reason === "ViewStale").map(({ note }) => note);
      assert.ok(stale.length > 0 && stale.length <= 3, stale.join("\n"));
      world.server.faults.clear();
    }));

  it("watches that stay open without events, as with a stuck watch cache, delay a fence only for a short time", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", QUICK);
      await world.phase("n1", "Releasing");
      world.server.faults.lagWatches({ client: "agent" }, Infinity);
      world.freePod();
      await world.phase("n1", "Succeeded", 3 * NOTICED_MS);
      world.assertClean();
      world.server.faults.clear();
    }));
});

describe("etcd is restored during an early release", () => {
  for (const backedUp of ["Verifying", "PoweringOff", "Releasing", "PoweringOn"]) {
    it(`an early release during which etcd is restored to a backup from ${backedUp} keeps its host off until the end of the duration`, () =>
      runEarly({}, async (world) => {
        world.createPod("n1", "db");
        let backup: Backup | undefined;
        world.onPhase("n1", backedUp, () => (backup = world.server.backUp()));
        cutPower(world, "n1");
        await world.until("there is a backup", () => backup !== undefined, BEFORE_UNKNOWN_MS);
        await world.clock.advance(3_000);
        world.restore(backup ?? assert.fail());
        const notBeforeMs = parseTimeMs(begun(world)[0]?.spec.powerOnNotBefore) ?? assert.fail();
        await world.clock.advance(notBeforeMs - world.clock.nowMs() - 1_000);
        assert.equal(isTainted(world, "n1"), false);
        assert.deepEqual(world.pods("n1"), []);
        assert.ok(!ordersOfAgent(world).includes("n1 On"));
        await world.until("it is over", () => begun(world).length === 0 && world.isReady("n1"), NOTICED_MS);
        assert.deepEqual(rulesBroken(world), []);
        world.assertClean();
      }));
  }
});
