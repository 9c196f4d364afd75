import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCED_BY, QUARANTINED_BY } from "../../../src/api/names/annotations.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import type { OrderRecord, Step } from "../invariants/facts.ts";
import { conditionOf } from "../invariants/facts.ts";
import { Arena } from "./arena.ts";
import { perform, tell } from "./deeds.ts";
import type { Act, Outcome, Run } from "./run.ts";

/** Time until nodes are Ready, pods run and targets have been probed. */
const BEGIN_MS = 12_000;
/** Time after the last deed until all faults end. */
const FAULTS_MS = 40_000;
/** Time for everything to settle once faults have ended (L1). */
const SETTLE_MAX_MS = 1_800_000;
/** A bound for the work of agents in a run, far above that of a run that settles, */
const WORK_MAX = 4_000;
/** plus this for each host that fails or is remediated. */
const WORK_EACH_MAX = 200;
const ROUND_DEEDS: readonly string[] = ["hang", "remediate"];
/** After a run has settled, nothing may be written for this time. */
const QUIET_MS = 15_000;
const LOOK_MS = 1_000;
/**
 * A run counts as settled after this time without a change. It is long enough for nodes that come back late and for
 * acts that wait for a state.
 */
const STAYS_MS = 8_000;
/** The same if Metal3 reinstalls hosts, which takes two boots. */
const STAYS_INSTALLED_MS = 25_000;
/** The same with a health check, which must first find a node that has just failed. */
const STAYS_DETECTED_MS = 36_000;

/** Plays a run to its end. Deterministic: the same run has the same outcome. */
export async function play(
  run: Run,
  options: { story?: boolean; record?: (line: string) => void } = {},
): Promise<Outcome> {
  const arena = new Arena(run, options.record);
  const story: string[] = [];
  const transitions = new Set<string>();
  const say = (what: string): void => {
    if (options.story === true) story.push(`${seconds(arena.clock.monotonicMs() - BEGIN_MS)}  ${what}`);
  };
  arena.tell = say;
  let restless: string | undefined;
  arena.observer.onStep((step) => {
    const moved = transitionOf(step);
    if (moved !== undefined) transitions.add(moved.change);
    if (step.type === "wrote" && step.by !== undefined && SETTLED_KINDS.includes(step.change.object.kind)) {
      restless = `${step.by} wrote ${step.change.object.kind} ${step.change.object.metadata.name}`;
    }
    if (options.story === true) for (const line of linesOf(step)) say(line);
  });
  if (options.story === true) {
    arena.rack.subscribe((event) => {
      if (event.type === "powerChanged") say(`${event.host} is ${event.power}`);
      if (event.type === "booted") say(`${event.host} has booted`);
    });
  }
  try {
    await arena.clock.advance(BEGIN_MS);
    schedule(arena, run.script, say);
    const lastMs = Math.max(0, ...run.script.map(({ when }) => ("atMs" in when ? when.atMs : 0)));
    await arena.clock.advance(lastMs);
    const staysMs = staysMsOf(run);
    const workMax = WORK_MAX + WORK_EACH_MAX * run.script.filter((act) => ROUND_DEEDS.includes(act.do)).length;
    await settleDown(arena, staysMs, FAULTS_MS, workMax);
    arena.heal();
    for (const deed of HEALING) perform(arena, deed);
    for (const { name } of arena.rack.hosts) perform(arena, { do: "maintain", host: name, on: false });
    say("all faults end");
    await settleDown(arena, staysMs, SETTLE_MAX_MS, workMax);
    for (const left of arena.unsettled()) arena.observer.report("L1", left);
    restless = undefined;
    await arena.clock.advance(QUIET_MS);
    // A health check may still delete its remediations, or start a failed one again.
    if (restless !== undefined && run.shape.detector !== true)
      arena.observer.report("L1", `all is settled, and ${restless as string}`);
    const { violations, orders } = arena.observer;
    return {
      violations: violations.map((violation) => ({ ...violation, atMs: violation.atMs - BEGIN_MS })),
      effects: arena.effects,
      calls: arena.calls,
      events: arena.events,
      transitions,
      fences: fencesOf(orders),
      verdicts: arena.remediations().map(verdictOf),
      endMs: arena.clock.monotonicMs(),
      story,
    };
  } finally {
    await arena.end();
  }
}

/**
 * Counts attempts: an attempt is one power cycle of a remediation, whatever its number of orders. An order to a host
 * that is already off counts as well.
 */
function fencesOf(orders: readonly OrderRecord[]): number {
  const reached = orders.filter(({ order, outcome }) => order === "ForceOff" && outcome !== "Refused");
  return new Set(reached.map(({ remediation, attempt }) => `${remediation} ${attempt?.retryCount}`)).size;
}

const HEALING = [{ do: "pause", on: false }, { do: "freePod" }, { do: "confirm" }, { do: "knownAgain" }] as const;
const SETTLED_KINDS = ["Node", "Pod", "BareMetalRemediation"];

function staysMsOf({ shape }: Run): number {
  if (shape.detector === true || shape.okd === "checked" || shape.metal3 === "checked") return STAYS_DETECTED_MS;
  return shape.bareMetalHosts === "free" ? STAYS_INSTALLED_MS : STAYS_MS;
}

/** Lets time pass until everything has been settled for `staysMs`, or for at most `maxMs`. */
async function settleDown(arena: Arena, staysMs: number, maxMs: number, workMax: number): Promise<void> {
  const endMs = arena.clock.monotonicMs() + maxMs;
  let settledMs = 0;
  while (settledMs < staysMs && arena.clock.monotonicMs() < endMs) {
    await arena.clock.advance(LOOK_MS);
    // If the faults end with a restore, a remediation that it brings back waits for a confirmation only from then on.
    if (arena.isHealed) perform(arena, { do: "confirm" });
    if (arena.effects.length + arena.calls.length > workMax) {
      arena.observer.report("L1", `no rest after ${workMax} effects and calls`);
      return;
    }
    const isSettled = arena.unsettled().length === 0 && !arena.isHampered;
    settledMs = isSettled ? settledMs + LOOK_MS : 0;
  }
}

/** Starts each act at its time, or when its remediation first enters the given state. */
function schedule(arena: Arena, script: readonly Act[], say: (what: string) => void): void {
  const waiting = new Set<Act>();
  const actNow = (act: Act): void => {
    if (arena.isHealed) return;
    say(tell(act));
    perform(arena, act);
  };
  for (const act of script) {
    if ("atMs" in act.when) arena.clock.schedule(act.when.atMs, () => actNow(act));
    else waiting.add(act);
  }
  arena.observer.onStep((step) => {
    const moved = transitionOf(step);
    if (moved === undefined) return;
    for (const act of waiting) {
      const { when } = act;
      if ("atMs" in when || when.on !== moved.to || (when.name !== undefined && when.name !== moved.name)) continue;
      waiting.delete(act);
      arena.clock.schedule(when.afterMs ?? 0, () => actNow(act));
    }
  });
}

function transitionOf(step: Step): { name: string; to: string; change: string } | undefined {
  if (step.type !== "wrote" || step.change.object.kind !== "BareMetalRemediation") return undefined;
  // The kind determines the type of the object.
  const after = step.change.object as BareMetalRemediation;
  const before = step.change.previous as BareMetalRemediation | undefined;
  const [from, to] = [before?.status?.phase ?? "", after.status?.phase ?? ""];
  return from === to ? undefined : { name: after.metadata.name, to, change: `${from}→${to}` };
}

function verdictOf(remediation: BareMetalRemediation): string {
  const succeeded = conditionOf(remediation, "Succeeded");
  return succeeded?.status === "True" ? "Succeeded" : `Failed ${succeeded?.reason}`;
}

/** A step as lines of the story: orders, marks, states, deleted pods. */
function linesOf(step: Step): string[] {
  if (step.type === "ordered") {
    const { agent, host, order, outcome, attempt } = step.record;
    return [`${agent} orders ${host} ${order} (attempt ${attempt?.id.slice(0, 8)}): ${outcome}`];
  }
  if (step.type === "bootSet") return [`${step.by} sets the next boot of ${step.host}: ${step.enabled}`];
  if (step.type !== "wrote") return [];
  const { type, object, previous } = step.change;
  const by = step.by ?? "the cluster";
  if (object.kind === "Pod" && type !== "MODIFIED") return [`${by}: pod ${object.metadata.name} ${type.toLowerCase()}`];
  if (object.kind === "Node") return nodeLines(by, object as Node, previous as Node | undefined);
  if (object.kind !== "BareMetalRemediation") return [];
  const { status, metadata } = object as BareMetalRemediation;
  const last = status?.timeline?.at(-1);
  const before = (previous as BareMetalRemediation | undefined)?.status?.timeline?.at(-1);
  if (type === "DELETED") return [`remediation ${metadata.name} is gone`];
  if (last === undefined || (last.time === before?.time && last.step === before.step)) return [];
  return [`${metadata.name} is ${status?.phase}: ${last.step}, ${last.message ?? ""}`];
}

function nodeLines(by: string, node: Node, before: Node | undefined): string[] {
  return [FENCED_BY, QUARANTINED_BY].flatMap((mark) => {
    const [is, was] = [node, before].map((one) => one?.metadata.annotations?.[mark]);
    if (is === was) return [];
    return [`${by} ${is === undefined ? "takes off" : "puts on"} ${node.metadata.name} ${mark}`];
  });
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`.padStart(10);
}
