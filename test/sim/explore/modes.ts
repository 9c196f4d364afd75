import type { BmcErrorCode } from "../../../src/bmc/interface/errors.ts";
import type { CallFault, Lie } from "../rack-driver.ts";
import type { Fault, Outcome, Run } from "./run.ts";
import { earlyOf } from "./early-walk.ts";
import { outletsOf } from "./outlets-walk.ts";
import { scenario, SCENARIO_NAMES } from "./scenarios.ts";
import { asDriven, asTwoInstallations, rackOf, walkOf, worldOf } from "./walk.ts";

/** Generates runs with one kind of fault. `play` returns the points of a scenario. */
export type Mode = (deps: ModeDeps) => AsyncGenerator<Run, void>;

export interface ModeDeps {
  /** Plays a run to find its points. It is not counted, because every worker plays it, and a mode also yields it. */
  play(run: Run): Promise<Points>;
  /** Names of the scenarios to play. */
  names: readonly string[];
  /** First seed of random runs. */
  seed: number;
  /**
   * Whether this worker does the part of the work with this number. Used by modes that distribute their work
   * themselves.
   */
  mine(part: number): boolean;
}

type Points = Pick<Outcome, "effects" | "calls" | "events">;

/** Modes without an end. They alternate, one run of each. */
export const ENDLESS: readonly string[] = ["walk", "rack", "world", "early", "driven", "outlets"];

/** Every mode by its name, in the order in which they are played. */
export const MODES: Readonly<Record<string, Mode>> = {
  plain: async function* ({ names, seed }) {
    for (const name of names) yield scenario(name, seed);
  },
  crash: (deps) => atEach(deps, "effect", crashes),
  downtime: (deps) => atEach(deps, "effect", downtimes),
  answers: (deps) =>
    atEach(deps, "effect", (index) => [
      { at: "effect", index, how: "lost" },
      { at: "effect", index, how: "unavailable" },
    ]),
  events: (deps) => atEach(deps, "event", held),
  calls: (deps) =>
    atEach(deps, "call", (index) =>
      CALL_FAULTS.flatMap((fault) => [1, 3, 1_000].map((times): Fault => ({ at: "call", index, times, ...fault }))),
    ),
  clocks: async function* ({ names, seed }) {
    for (const name of names) {
      for (const clock of CLOCKS) {
        // The guard against a BMC that reports another host's identity waits 12 s for a renewal, which comes every 10
        // s.
        if (name === "wrongHost" && clock.rate === 2) continue;
        const base = scenario(name, seed);
        yield { ...base, shape: { ...base.shape, agents: [clock] } };
      }
    }
  },
  leaders: async function* (deps) {
    const led = { ...deps, names: deps.names.filter((name) => LED.includes(name)) };
    for (const dress of [withLease, inTwoInstallations]) {
      for (const name of led.names) yield dress(scenario(name, deps.seed));
      yield* atEach(led, "effect", stops, dress);
    }
  },
  pairs: async function* (deps) {
    for (const name of deps.names.filter((known) => PAIRED.includes(known)))
      yield* pairsOf(deps, scenario(name, deps.seed));
  },
  eventPairs: async function* (deps) {
    for (const name of deps.names.filter((known) => PAIRED.includes(known)))
      yield* eventPairsOf(deps, scenario(name, deps.seed));
  },
  walk: async function* ({ seed }) {
    for (let at = seed; ; at += 1) yield walkOf(at);
  },
  rack: async function* ({ seed }) {
    for (let at = seed; ; at += 1) yield rackOf(at);
  },
  world: async function* ({ seed }) {
    for (let at = seed; ; at += 1) yield worldOf(at);
  },
  early: async function* ({ seed }) {
    for (let at = seed; ; at += 1) yield earlyOf(at);
  },
  driven: async function* ({ seed }) {
    for (let at = seed; ; at += 1) yield drivenOf(at);
  },
  outlets: async function* ({ seed }) {
    for (let at = seed; ; at += 1) yield outletsOf(at);
  },
};

/** A random run of any kind in which driver servers power all hosts or every second one. */
export function drivenOf(seed: number): Run {
  const kinds = [walkOf, worldOf, earlyOf, walkOf, worldOf, rackOf];
  const draw = kinds[seed % kinds.length] ?? walkOf;
  return asDriven(draw(seed), seed % 4 === 0 ? "half" : "all");
}

function withLease(run: Run): Run {
  return { ...run, shape: { ...run.shape, agents: [{ aheadMs: -15_000 }, { aheadMs: 15_000, rate: 1.01 }] } };
}

function inTwoInstallations(run: Run): Run {
  const { shape, ...led } = withLease(run);
  return { ...led, shape: asTwoInstallations(shape) };
}

const PAIRED: readonly string[] = ["reboot", "handOver", "deleteNode"];
const LED: readonly string[] = [
  "reboot",
  "alive",
  "retry",
  "deleteNode",
  "handOver",
  "deleted",
  "drainTimeout",
  "turnedOn",
  "reprovisionGivenUp",
  "operatorReboot",
  "operatorUndone",
  "early",
  "earlyReturned",
];

const CODES: readonly BmcErrorCode[] = [
  "Unreachable",
  "Timeout",
  "TlsUntrusted",
  "AuthFailed",
  "PrivilegeTooLow",
  "SystemNotFound",
  "Unsupported",
  "Busy",
  "Refused",
  "BadResponse",
];
const LIES: readonly Lie[] = ["slow", "late", "ignored", "staleOn", "changing", "unknown", "otherHost", "nobody"];
const CALL_FAULTS: readonly CallFault[] = [
  ...CODES.map((error) => ({ error })),
  ...(["Unreachable", "Timeout", "BadResponse"] as const).map((error) => ({ error, after: true })),
  ...LIES.map((lie) => ({ lie })),
];

const CLOCKS: readonly { aheadMs?: number; rate?: number }[] = [
  { aheadMs: 15_000 },
  { aheadMs: -15_000 },
  { aheadMs: 600_000 },
  { aheadMs: -600_000 },
  { rate: 0.5 },
  { rate: 1.15 },
  { rate: 2 },
];

function crashes(index: number): Fault[] {
  return (["before", "between", "after"] as const).map((place) => ({ at: "effect", index, how: "crash", place }));
}

/** Downtimes of the agent in which a host comes back: it resumes, is restarted, or is switched on. */
function downtimes(index: number): Fault[] {
  return (["resume", "ForceRestart", "On"] as const).map((by) => ({
    at: "effect",
    index,
    how: "downtime",
    forMs: 60_000,
    host: "n1",
    by,
  }));
}

/** Stops that are shorter than the lease, about as long, as long as the takeover by another agent, and much longer. */
function stops(index: number): Fault[] {
  const stopped = [5_000, 14_000, 20_000, 40_000].flatMap((forMs): Fault[] =>
    [false, true].map((answersFirst): Fault => ({ at: "effect", index, how: "stop", forMs, answersFirst })),
  );
  // Its own clock shows no elapsed time, and answers in transit are received first.
  const asleep = [20_000, 120_000].map((forMs): Fault => ({
    at: "effect",
    index,
    how: "stop",
    forMs,
    answersFirst: true,
    machine: true,
  }));
  return [...stopped, ...asleep, { at: "effect", index, how: "deleteLease", forMs: 20_000 }, ...crashes(index)];
}

/** An event that comes late, and one that is never shown because the watch restarts after it. */
function held(index: number): Fault[] {
  const late = [300, 3_000, 20_000].map((holdMs): Fault => ({ at: "event", index, holdMs, how: "show" }));
  const lost = [300, 3_000].map((holdMs): Fault => ({ at: "event", index, holdMs, how: "compact" }));
  return [...late, ...lost, { at: "event", index, holdMs: 0, how: "cut" }];
}

/** Each scenario with each fault at each of its points. */
async function* atEach(
  deps: ModeDeps,
  at: Fault["at"],
  faultsAt: (index: number) => Fault[],
  dress: (run: Run) => Run = (run) => run,
): AsyncGenerator<Run, void> {
  for (const name of deps.names) {
    const base = dress(scenario(name, deps.seed));
    const points = pointsOf(await deps.play(base), at);
    for (let index = 0; index < points; index += 1) {
      for (const fault of faultsAt(index)) yield { ...base, faults: [fault] };
    }
  }
}

/** All pairs of crashes, the second one at any effect after the first. Distributed by the first crash. */
async function* pairsOf(deps: ModeDeps, base: Run): AsyncGenerator<Run, void> {
  const points = pointsOf(await deps.play(base), "effect");
  for (let index = 0; index < points; index += 1) {
    for (const [place, first] of crashes(index).entries()) {
      if (!deps.mine(index * 3 + place)) continue;
      const once = { ...base, faults: [first] };
      const { effects } = await deps.play(once);
      for (let second = index + 1; second < effects.length; second += 1) {
        for (const fault of crashes(second)) yield { ...base, faults: [first, fault] };
      }
    }
  }
}

/** All pairs of events that are never shown. */
async function* eventPairsOf(deps: ModeDeps, base: Run): AsyncGenerator<Run, void> {
  const lost = (index: number): Fault => ({ at: "event", index, holdMs: 1_000, how: "compact" });
  const { events } = await deps.play(base);
  for (let first = 0; first < events.length; first += 1) {
    for (let second = first + 1; second < events.length; second += 1) {
      yield { ...base, faults: [lost(first), lost(second)] };
    }
  }
}

function pointsOf({ effects, calls, events }: Points, at: Fault["at"]): number {
  return { effect: effects, call: calls, event: events }[at].length;
}

/** The scenarios to play if none is named. */
export const ALL_SCENARIOS = SCENARIO_NAMES;
