import { STATE_NAMES } from "../../../src/remediator/machine/model/decision/state.ts";
import type { Fault, Outcome, Run } from "./run.ts";

/** Statistics of the runs so far. They are plain data, so that workers can send theirs. */
export interface Coverage {
  /**
   * Distinct runs. No two runs of a mode are the same. Runs that a mode plays only to find the points for faults do not
   * count.
   */
  runs: number;
  /** Attempts of which a power-off order reached the host. */
  fences: number;
  virtualMs: number;
  byMode: Record<string, number>;
  fencesByMode: Record<string, number>;
  transitions: Record<string, number>;
  verdicts: Record<string, number>;
  /** How often each fault affected each effect, call or event. */
  met: Record<string, Record<string, number>>;
}

export function noCoverage(): Coverage {
  return { runs: 0, fences: 0, virtualMs: 0, byMode: {}, fencesByMode: {}, transitions: {}, verdicts: {}, met: {} };
}

/** Counts one run. */
export function count(coverage: Coverage, mode: string, run: Run, outcome: Outcome): void {
  coverage.runs += 1;
  coverage.fences += outcome.fences;
  coverage.virtualMs += outcome.endMs;
  add(coverage.byMode, mode, 1);
  add(coverage.fencesByMode, mode, outcome.fences);
  for (const transition of outcome.transitions) add(coverage.transitions, transition, 1);
  for (const verdict of outcome.verdicts) add(coverage.verdicts, verdict, 1);
  for (const fault of run.faults) {
    const what = metBy(fault, outcome);
    if (what === undefined) continue;
    add((coverage.met[what] ??= {}), nameOf(fault), 1);
  }
}

/** Adds what another worker has counted. */
export function addUp(into: Coverage, from: Coverage): void {
  into.runs += from.runs;
  into.fences += from.fences;
  into.virtualMs += from.virtualMs;
  for (const key of ["byMode", "fencesByMode", "transitions", "verdicts"] as const) {
    for (const [name, times] of Object.entries(from[key])) add(into[key], name, times);
  }
  for (const [what, faults] of Object.entries(from.met)) {
    for (const [fault, times] of Object.entries(faults)) add((into.met[what] ??= {}), fault, times);
  }
}

/** The tables that a report ends with. */
export function tables(coverage: Coverage): string {
  const states = STATE_NAMES.map((state) => {
    const entered = Object.entries(coverage.transitions).filter(([change]) => change.endsWith(`→${state}`));
    return [state, entered.reduce((sum, [, times]) => sum + times, 0)] as const;
  });
  return [
    table("distinct runs by mode", Object.entries(coverage.byMode)),
    table("fences by mode", Object.entries(coverage.fencesByMode)),
    table("runs that entered a state", states),
    table(`runs with a transition (${Object.keys(coverage.transitions).length} kinds)`, byCount(coverage.transitions)),
    table("verdicts", byCount(coverage.verdicts)),
    ...Object.entries(coverage.met)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([what, faults]) => table(`met at ${what}`, byCount(faults))),
  ].join("\n\n");
}

function metBy(fault: Fault, { effects, calls, events }: Outcome): string | undefined {
  // Without the name of the host.
  return { effect: effects, call: calls, event: events }[fault.at][fault.index]?.replace(/ n\d+$/, "");
}

function nameOf(fault: Fault): string {
  switch (fault.at) {
    case "effect":
      return fault.how === "crash" ? `crash ${fault.place}` : fault.how;
    case "call":
      return "lie" in fault ? fault.lie : `${fault.error}${fault.after === true ? " after" : ""}`;
    default:
      return `held, then ${fault.how}`;
  }
}

function byCount(counts: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(counts).sort(([, a], [, b]) => b - a);
}

function table(title: string, rows: readonly (readonly [string, number])[]): string {
  const width = Math.max(0, ...rows.map(([name]) => name.length));
  return [title, ...rows.map(([name, times]) => `  ${name.padEnd(width)}  ${times}`)].join("\n");
}

function add(counts: Record<string, number>, key: string, times: number): void {
  counts[key] = (counts[key] ?? 0) + times;
}
