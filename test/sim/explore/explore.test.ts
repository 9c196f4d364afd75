import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { tellFinding } from "./explorer.ts";
import { ALL_SCENARIOS, drivenOf, MODES } from "./modes.ts";
import { play } from "./play.ts";
import type { Act, Fault, Outcome, Run } from "./run.ts";
import { scenario } from "./scenarios.ts";
import { shrink } from "./shrink.ts";
import { earlyOf } from "./early-walk.ts";
import { outletsOf } from "./outlets-walk.ts";
import { asDriven, rackOf, walkOf, worldOf } from "./walk.ts";

// A fixed sample of the runs of `npm run sim`: every n-th run of each mode.

const SLICE: Readonly<Record<string, number>> = {
  plain: 1,
  crash: 191,
  downtime: 257,
  answers: 127,
  events: 599,
  calls: 3_001,
  clocks: 29,
  leaders: 269,
};
const WALKS = 12;
const RACK = 14;

/** Caches runs, because most modes need the same ones to find the points for faults. */
const asked = new Map<string, Promise<Outcome>>();

function playOnce(run: Run): Promise<Outcome> {
  const key = JSON.stringify(run);
  const outcome = asked.get(key) ?? assertSafe(run);
  asked.set(key, outcome);
  return outcome;
}

async function assertSafe(run: Run): Promise<Outcome> {
  const outcome = await play(run);
  const [first] = outcome.violations;
  if (first === undefined) return outcome;
  const { story } = await play(run, { story: true });
  return assert.fail(tellFinding({ mode: "test", ...first, run, shortest: run, story }));
}

describe("no rule is broken", () => {
  for (const [mode, every] of Object.entries(SLICE)) {
    it(`no rule is broken by a sample of the runs of mode ${mode}, one in ${every}`, async () => {
      const generate = MODES[mode] ?? assert.fail();
      let at = 0;
      for await (const run of generate({ play: playOnce, names: ALL_SCENARIOS, seed: 1, mine: () => true })) {
        if (at % every === 0) await playOnce(run);
        at += 1;
      }
      assert.ok(at > every, "there is something to play");
    });
  }

  it(`no rule is broken by the random runs 1 to ${WALKS} in which hosts lose their power`, async () => {
    for (let seed = 1; seed <= WALKS; seed += 1) await assertSafe(earlyOf(seed));
  });

  it(`no rule is broken by the random runs 1 to ${WALKS}`, async () => {
    for (let seed = 1; seed <= WALKS; seed += 1) await assertSafe(walkOf(seed));
  });

  it(`no rule is broken by the random runs 1 to ${WALKS} in which more of the world fails`, async () => {
    for (let seed = 1; seed <= WALKS; seed += 1) await assertSafe(worldOf(seed));
  });

  it(`no rule is broken by the random runs 1 to ${WALKS} in which driver servers power the hosts`, async () => {
    for (let seed = 1; seed <= WALKS; seed += 1) {
      // A rack would take as long as all other runs together.
      const run = drivenOf(seed);
      if (run.name !== "rack") await assertSafe(run);
    }
  });

  it(`no rule is broken by the random runs 1 to ${WALKS} in which outlets feed the hosts`, async () => {
    for (let seed = 1; seed <= WALKS; seed += 1) await assertSafe(outletsOf(seed));
  });

  it("no rule is broken by any scenario whose hosts are powered by driver servers", async () => {
    for (const name of ALL_SCENARIOS) await assertSafe(asDriven(scenario(name, 1), "all"));
  });

  it(`no rule is broken by run ${RACK} on a rack`, async () => {
    const { fences } = await assertSafe(rackOf(RACK));
    assert.ok(fences > 20, `${fences} fences`);
  });
});

describe("the health budget holds while the watch on Nodes is held back", () => {
  it("the health budget holds while the watch on Nodes is held back for 10 s as a rack dies host by host", async () => {
    const hosts = Array.from({ length: 26 }, (_, index) => `n${index + 1}`);
    const held = { do: "lagWatches", plural: "nodes" } as const;
    const script: Act[] = [
      { when: { atMs: 0 }, ...held, forMs: 10_000 },
      ...hosts.map((host, index): Act => ({ when: { atMs: index * 20 }, do: "hang", host })),
      { when: { atMs: 60_000 }, ...held, forMs: 0 },
    ];
    await assertSafe({ name: "rack", seed: 1, shape: { hosts: 27, detector: true }, script, faults: [] });
  });

  it("the health budget holds while the watch on Nodes is held back for 20 s by one event of a mass outage", async () => {
    const run = scenario("massOutage");
    // This event shows that the other hosts failed. While it is delayed, the view still shows them Ready when the first
    // one is due.
    await assertSafe({ ...run, faults: [{ at: "event", index: 16, holdMs: 20_000, how: "show" }] });
  });
});

describe("no agent is blamed for what none could do", () => {
  it("no agent is blamed for what none could do while the lease of a leader that has died runs out", async () => {
    const run = scenario("turnedOn", 801_000_000);
    const agents = [{ aheadMs: -15_000 }, { aheadMs: 15_000, rate: 1.01 }];
    const dies = { at: "effect", index: 11, how: "crash", place: "between" } as const;
    await assertSafe({ ...run, shape: { ...run.shape, agents }, faults: [dies] });
  });

  it("no agent is blamed for what none could do before a watch has shown a request", async () => {
    const held = { at: "event", index: 10, holdMs: 20_000, how: "show" } as const;
    const { fences } = await assertSafe({ ...scenario("okdAsked", 801_000_000), faults: [held] });
    assert.equal(fences, 1);
  });
});

describe("a run that has broken a rule before", () => {
  it("no rule is broken by a run that broke one before: a user powers off two of four members of etcd", async () => {
    const shape = { detector: true, hosts: 4, skips: true, controlPlane: true, outlets: true };
    const off = { do: "order", order: "ForceOff" } as const;
    const script: Act[] = [
      { when: { atMs: 16_974 }, ...off, host: "n1" },
      { when: { atMs: 17_318 }, ...off, host: "n3" },
    ];
    await assertSafe({ name: "outlets", seed: 940_339, shape, script, faults: [] });
  });

  it("no rule is broken by a run that broke one before: the answer to a write that stores a wait is lost", async () => {
    const strategy = { timeout: "20s", powerOn: "ACCycle", acCycleTimeout: "90s" };
    const script: Act[] = [
      { when: { atMs: 1_784 }, do: "hang", host: "n1" },
      { when: { atMs: 29_484 }, do: "remediate", node: "n1", strategy },
      { when: { on: "PoweringOff", afterMs: 500 }, do: "pause", on: true },
      { when: { on: "PoweringOff", afterMs: 0 }, do: "crash", agent: 0 },
      { when: { on: "Undoing", afterMs: 500 }, do: "remediate", node: "n2", name: "n2-again", strategy },
    ];
    const faults: Fault[] = [
      { at: "effect", index: 48, how: "lost" },
      { at: "effect", index: 36, how: "crash", place: "before" },
    ];
    await assertSafe({ name: "outlets", seed: 910_914, shape: { outlets: true }, script, faults });
  });

  it("no rule is broken by a run that broke one before: a wall clock is set back before an undo", async () => {
    const script: Act[] = [
      { when: { atMs: 23_484 }, do: "bmc", host: "n1", is: "silent" },
      { when: { atMs: 30_684 }, do: "remediate", node: "n1", strategy: {} },
      { when: { on: "Verifying", afterMs: 8_000 }, do: "jumpClock", agent: 0, byMs: -600_000 },
      { when: { on: "PoweringOff", afterMs: 500 }, do: "crash", agent: 0 },
    ];
    await assertSafe({ name: "outlets", seed: 910_950, shape: { outlets: true }, script, faults: [] });
  });
});

describe("a run", () => {
  it("a run has the same outcome each time it is played, also from what was printed of it", async () => {
    for (const run of [scenario("handOver"), walkOf(11)]) {
      const once = await play(run, { story: true });
      const again = await play(JSON.parse(JSON.stringify(run)) as Run, { story: true });
      assert.deepEqual(again, once);
    }
  });

  it("a run that breaks a rule is printed as a story, in the order of what happened", async () => {
    const { story } = await play(scenario("reboot"), { story: true });
    const told = [
      "n1 freezes",
      "orders n1 ForceOff",
      "n1 is Off",
      "puts on n1 ironfence.io/fenced-by",
      "n1 has booted",
    ];
    const places = told.map((what) => story.findIndex((line) => line.includes(what)));
    assert.ok(!places.includes(-1), story.join("\n"));
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    );
  });
});

describe("a shrunk run", () => {
  it("a shrunk run holds nothing that the broken rule does not need", async () => {
    const run = walkOf(3);
    const needed = { when: { atMs: 5 }, do: "freePod" } as const;
    const script = [...run.script, needed, ...run.script];
    const tried: Run[] = [];
    const pretend = (candidate: Run): Promise<Outcome> => {
      tried.push(candidate);
      const breaks = candidate.script.some(({ do: deed }) => deed === "freePod");
      const violations = breaks ? [{ invariant: "S1", atMs: 0, what: "" }] : [];
      return Promise.resolve({ ...NOTHING, violations });
    };
    const shortest = await shrink(
      { ...run, script: script.filter((act) => act === needed || act.do !== "freePod") },
      "S1",
      pretend,
    );
    assert.deepEqual(shortest.script, [needed]);
    assert.deepEqual([shortest.faults, shortest.shape], [[], {}]);
    assert.ok(tried.length < 100, `${tried.length} tries`);
  });
});

const NOTHING: Outcome = {
  violations: [],
  effects: [],
  calls: [],
  events: [],
  transitions: new Set(),
  fences: 0,
  verdicts: [],
  endMs: 0,
  story: [],
};
