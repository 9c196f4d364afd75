import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Evidence } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { World } from "./world.ts";

// The cause of a failure in the log of the BMC is stored, and reading it never delays a fence.

/** Fences n1 after a failure whose cause its BMC has just logged. */
async function fence(world: World, before: (world: World) => void): Promise<Evidence | undefined> {
  before(world);
  await world.hang("n1");
  world.remediate("n1", { retryLimit: 0 });
  await world.phase("n1", "Succeeded");
  return world.remediation("n1")?.status?.evidence;
}

/** The time from the order until the host was proven off. */
async function proofMs(before: (world: World) => void): Promise<number> {
  let passedMs = NaN;
  await World.run({}, async (world) => {
    before(world);
    await world.hang("n1");
    let orderedAtMs = NaN;
    world.devices.onEvent((event) => {
      if ("order" in event && event.order === "ForceOff") orderedAtMs = world.clock.nowMs();
    });
    world.onPhase("n1", "Releasing", () => {
      passedMs = world.clock.nowMs() - orderedAtMs;
    });
    world.remediate("n1", { retryLimit: 0 });
    await world.phase("n1", "Succeeded");
    assert.deepEqual(world.devices.logReads, ["n1"], "the log is read once");
  });
  return passedMs;
}

describe("the cause of death", () => {
  it("the cause of death is stored, reported and counted once", () =>
    World.run({}, async (world) => {
      const evidence = await fence(world, ({ rack }) => {
        rack.bmc("n1").logEvent("correctableECC", 3 * 3_600_000);
        rack.bmc("n1").logEvent("uncorrectableECC", 41_000);
      });
      assert.equal(evidence?.class, "Memory");
      assert.match(evidence?.message ?? "", /^Uncorrectable ECC, DIMM B2, \d+ s before the node was lost$/);
      assert.deepEqual(
        evidence?.entries.map(({ class: topic, severity }) => `${topic} ${severity}`),
        ["Memory Fatal"],
      );
      const notes = world.notes.filter(({ reason }) => reason === "CauseOfDeath");
      assert.ok(notes.length >= 1);
      assert.ok(notes.every(({ note }) => note?.includes("Uncorrectable ECC, DIMM B2")));
      const lines = await world.metrics("ironfence_causes_of_death_total");
      assert.match(lines, /class="Memory"\} 1$/m);
      assert.match(lines, /class="CPU"\} 0$/m);
    }));

  it("the cause of death is none if the log has only old entries and the power-off of our own order", () =>
    World.run({}, async (world) => {
      const evidence = await fence(world, ({ rack }) => rack.bmc("n1").logEvent("thermalTrip", 3 * 3_600_000));
      assert.equal(evidence?.class, "None");
      assert.match(evidence?.message ?? "", /^The BMC shows no cause; the host was last reset/);
      assert.deepEqual(evidence?.entries, []);
    }));

  for (const [which, aheadMs] of [
    ["an hour ahead", 3_600_000],
    ["a day behind", -86_400_000],
  ] as const) {
    it(`the cause of death has the right time although the clock of the BMC is ${which}`, () =>
      World.run({}, async (world) => {
        const evidence = await fence(world, ({ rack }) => {
          rack.bmc("n1").clockAheadMs = aheadMs;
          rack.bmc("n1").logEvent("processorError", 41_000);
        });
        assert.equal(evidence?.class, "CPU");
        assert.match(evidence?.message ?? "", /, \d+ s before the node was lost$/);
      }));
  }

  for (const [what, aheadMs] of [
    ["1e20 seconds", 1e23],
    ["Infinity", Infinity],
    ["a time of the year 9999", Date.UTC(9999, 0) - Date.UTC(2026, 0)],
  ] as const) {
    it(`the cause of death is stored, and delays no fence, if the clock of the BMC shows ${what}`, () =>
      World.run({}, async (world) => {
        const evidence = await fence(world, ({ rack }) => {
          rack.bmc("n1").clockAheadMs = aheadMs;
          rack.bmc("n1").logEvent("uncorrectableECC", 41_000);
        });
        assert.equal(evidence?.class, "Memory");
        assert.equal(evidence?.clockOffsetSeconds, undefined);
      }));
  }

  it("the cause of death is read by the agent that follows, if one ends during the power-off", () =>
    World.run({}, async (world) => {
      world.rack.bmc("n1").logEvent("uncorrectableECC", 41_000);
      world.rack.bmc("n1").isLogHung = true;
      await world.hang("n1");
      world.remediate("n1", { retryLimit: 0 });
      await world.until("the log is asked for", () => world.devices.logReads.length > 0);
      await world.killAgent();
      world.rack.bmc("n1").isLogHung = false;
      world.startAgent();
      await world.phase("n1", "Succeeded");
      assert.equal(world.remediation("n1")?.status?.evidence?.class, "Memory");
    }));
});

describe("a log that is never answered", () => {
  it("a log that is never answered does not delay the proof of Off by a millisecond", async () => {
    const usual = await proofMs(() => undefined);
    const hung = await proofMs(({ rack }) => {
      rack.bmc("n1").isLogHung = true;
    });
    assert.equal(hung, usual);
  });

  it("a log that is never answered makes the evidence incomplete", () =>
    World.run({}, async (world) => {
      const evidence = await fence(world, ({ rack }) => {
        rack.bmc("n1").isLogHung = true;
      });
      assert.equal(evidence?.class, "None");
      assert.equal(evidence?.incomplete, "no answer");
    }));
});
