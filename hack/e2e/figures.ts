import { parseTimeMs } from "../../src/runtime/time.ts";
import { OUT_OF_SERVICE, QUARANTINE, hasTaint, readyCondition, readyOf } from "./chronicle.ts";
import type { Chronicle, NodeView, Seen } from "./chronicle.ts";
import {
  REMEDIATION_TIMEOUT_MS,
  configure,
  explain,
  marksOf,
  startScenario,
  targetsReady,
  remediationEnds,
} from "./scenario.ts";
import type { Scenario } from "./scenario.ts";
import { deployDatabase } from "./workload.ts";
import type { Database } from "./workload.ts";

// Measures how long each step of a whole fence takes, on the real control plane with a BMC that needs 2 s for a power
// change.

const ROUNDS = 6;
export const BMC_DELAY_MS = 2_000;
/** The duration of the condition in the health check of these scenarios. */
const DURATION_MS = 1_000;

/** The measured steps in order: from which event to which. */
export const TIMED_STEPS = [
  "Unknown → CR created",
  "CR created → ForceOff on the wire",
  "ForceOff → BMC reads Off",
  "second Off reading → out-of-service taint",
  "out-of-service taint → pod object gone",
  "Unknown → pod object gone",
  "duration over → pod object gone",
  "pod object gone → On on the wire",
  "Ready=True → our marks gone",
  "Ready=True → CR gone",
  "Unknown → node restored",
] as const;
export type TimedStep = (typeof TIMED_STEPS)[number];

/** Milliseconds of each step, one value per round. */
export type StepFigures = Record<TimedStep, number[]>;

/**
 * Prints the figures of six rounds, as `npm run bench -- fence` does.
 *
 * @param graceMs silence after which a node counts as dead; by default the shorter one of the other tests.
 */
export async function measureSteps(graceMs?: number): Promise<StepFigures> {
  const figures = await runRounds({ rounds: ROUNDS, bmcDelayMs: BMC_DELAY_MS, graceMs }, (round, steps) => {
    const pod = steps["Unknown → pod object gone"];
    process.stderr.write(`bench: round ${round} of ${ROUNDS}: pod gone ${(pod / 1000).toFixed(2)} s after Unknown\n`);
  });
  process.stdout.write(
    [
      `A whole fence on the real control plane, BMC (sushy-emulator) with ${BMC_DELAY_MS / 1000} s a power change,`,
      ...(graceMs === undefined ? [] : [`grace period ${graceMs / 1000} s, leases of 40 s,`]),
      `condition duration 1 s; median (minimum–maximum) of ${ROUNDS} rounds:`,
      formatFigures(figures),
      "",
    ].join("\n"),
  );
  return figures;
}

/**
 * Kills a node and waits until its remediation has ended, `rounds` times. Calls `onRound` with the figures of each
 * round.
 */
export async function runRounds(
  options: { rounds: number; bmcDelayMs: number; graceMs?: number | undefined },
  onRound: (round: number, figures: Readonly<Record<TimedStep, number>>) => void,
): Promise<StepFigures> {
  const { bmcDelayMs: powerDelayMs, graceMs } = options;
  const grace = graceMs === undefined ? {} : { nodeMonitorGracePeriodMs: graceMs };
  const scenario = await startScenario({ powerDelayMs, ...grace });
  const figures = Object.fromEntries(TIMED_STEPS.map((step) => [step, [] as number[]])) as StepFigures;
  try {
    await configure(scenario);
    await scenario.startAgent(["--log-level=info"]);
    await targetsReady(scenario);
    const database = await deployDatabase(scenario.world.api, "bench");
    for (let round = 1; round <= options.rounds; round += 1) {
      const measured = await oneRound(scenario, database);
      for (const step of TIMED_STEPS) figures[step].push(measured[step]);
      onRound(round, measured);
    }
    return figures;
  } finally {
    await scenario.stop();
  }
}

async function oneRound(scenario: Scenario, database: Database): Promise<Record<TimedStep, number>> {
  const { world, chronicle } = scenario;
  const victim = await explain(scenario, "the pod runs", REMEDIATION_TIMEOUT_MS, () =>
    database.successorNode(undefined),
  );
  const pod = await database.pod();
  const marks = await marksOf(scenario, victim);
  const startedMs = Date.now();
  await world.host(victim).hang();
  await explain(scenario, "the node is lost", REMEDIATION_TIMEOUT_MS, () =>
    Promise.resolve(chronicle.remediations(victim).some(({ atMs }) => atMs > startedMs)),
  );
  await remediationEnds(scenario, victim, marks);
  return stepsOf(scenario.chronicle, victim, pod?.metadata.uid ?? "", startedMs);
}

async function stepsOf(
  chronicle: Chronicle,
  node: string,
  podUid: string,
  startedMs: number,
): Promise<Record<TimedStep, number>> {
  const nodes = chronicle.nodes(node).filter(({ atMs }) => atMs > startedMs);
  const remediations = chronicle.remediations(node).filter(({ atMs }) => atMs > startedMs);
  const bmc = (await chronicle.bmc(node)).filter(({ atMs }) => atMs > startedMs);
  const firstNode = (what: string, is: (seen: Seen<NodeView>) => boolean, fromMs = startedMs): number =>
    time(
      what,
      nodes.find((seen) => seen.atMs >= fromMs && is(seen)),
    );

  const unknown = firstNode("Ready=Unknown", ({ object }) => readyOf(object) === "Unknown");
  const transitionMs = parseTimeMs(
    nodes
      .filter(({ object }) => readyOf(object) === "Unknown")
      .map(({ object }) => readyCondition(object)?.lastTransitionTime)[0],
  );
  const created = time("CR created", remediations[0]);
  const forceOff = time(
    "ForceOff",
    bmc.find(({ kind, value }) => kind === "order" && value === "ForceOff"),
  );
  const [firstRead, secondRead] = bmc.filter(({ kind, atMs }) => kind === "read" && atMs > forceOff);
  const tainted = firstNode("the taint", ({ object }) => hasTaint(object, OUT_OF_SERVICE));
  const podGone = time(
    "pod gone",
    chronicle.pods(podUid).find(({ type }) => type === "DELETED"),
  );
  const on = time(
    "On",
    bmc.find(({ kind, value }) => kind === "order" && value === "On"),
  );
  const ready = firstNode("Ready=True", ({ object }) => readyOf(object) === "True", on);
  const unmarked = firstNode(
    "our marks gone",
    ({ object }) => !hasTaint(object, OUT_OF_SERVICE) && !hasTaint(object, QUARANTINE),
    ready,
  );
  const deleted = time(
    "CR gone",
    remediations.find(({ type }) => type === "DELETED"),
  );
  return {
    "Unknown → CR created": created - unknown,
    "CR created → ForceOff on the wire": forceOff - created,
    "ForceOff → BMC reads Off": time("Off reading", firstRead) - forceOff,
    "second Off reading → out-of-service taint": tainted - time("second Off reading", secondRead),
    "out-of-service taint → pod object gone": podGone - tainted,
    "Unknown → pod object gone": podGone - unknown,
    "duration over → pod object gone": podGone - ((transitionMs ?? Number.NaN) + DURATION_MS),
    "pod object gone → On on the wire": on - podGone,
    "Ready=True → our marks gone": unmarked - ready,
    "Ready=True → CR gone": deleted - ready,
    "Unknown → node restored": Math.max(unmarked, deleted) - unknown,
  };
}

function time(what: string, seen: { atMs: number } | undefined): number {
  if (seen === undefined) throw new Error(`${what} was not seen`);
  return seen.atMs;
}

/** `median (min–max)` in seconds, one line per step. */
function formatFigures(figures: StepFigures): string {
  const width = Math.max(...TIMED_STEPS.map((step) => step.length));
  const seconds = (valueMs: number): string => (valueMs / 1000).toFixed(3);
  return TIMED_STEPS.map((step) => {
    const sorted = figures[step].toSorted((a, b) => a - b);
    const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
    const range = `${seconds(sorted[0] ?? Number.NaN)}–${seconds(sorted.at(-1) ?? Number.NaN)}`;
    return `${step.padEnd(width)}  ${seconds(median)} s (${range})`;
  }).join("\n");
}
