import { statesBetween } from "../../../src/remediator/machine/model/decision/state.ts";
import type { FaultAction, Verb } from "../../../hack/kube-mock/faults.ts";
import type { Random } from "../../../src/runtime/random.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import type { BmcErrorCode } from "../../../src/bmc/interface/errors.ts";
import type { Lie } from "../rack-driver.ts";
import type { Act, Deed, Fault, Run, Shape, When } from "./run.ts";

const HOSTS = ["n1", "n2", "n3"] as const;
/** How long a random run lasts. */
const LENGTH_MS = 90_000;
/** No remediation is created before the cluster has noticed nodes that failed at the start. */
const DEAD_MS = 28_000;

/** The random run of a seed. It is the same on every machine. */
export function walkOf(seed: number): Run {
  const random = seededRandom(seed);
  const shape = drawShape(random);
  const script = [
    ...drawOutage(random, shape),
    ...Array.from({ length: below(random, 9) }, () => drawAct(random, shape)),
  ];
  script.sort((a, b) => timeOf(a) - timeOf(b));
  const faults = Array.from({ length: below(random, 4) }, () => drawFault(random, shape));
  return { name: "walk", seed, shape, script, faults };
}

/** `run` with driver servers instead of all BMCs or every second one. */
export function asDriven(run: Run, driven: "all" | "half"): Run {
  return { ...run, shape: { ...run.shape, driven } };
}

/** Offset of the seed for faults of the world, in addition to the random run of the same seed. */
const WORLD_SEED = 500_000_000;

/** The random run of a seed in a world with more faults: calls of one kind fail while others work. */
export function worldOf(seed: number): Run {
  const walk = walkOf(seed);
  const random = seededRandom(WORLD_SEED + seed);
  const more = Array.from({ length: 1 + below(random, 3) }, () => drawWorldActs(random, walk.shape)).flat();
  const script = [...walk.script.filter((act) => !isHidden(act, more)), ...more, ...drawReturn(random, walk)];
  const shape = below(random, 3) === 0 ? asTwoInstallations(walk.shape) : walk.shape;
  return { ...walk, name: "world", shape, script: script.sort((a, b) => timeOf(a) - timeOf(b)) };
}

/** If there are several agents, moves all but the first to another installation. */
export function asTwoInstallations(shape: Shape): Shape {
  const agents = shape.agents?.map((agent, index) => (index === 0 ? agent : { ...agent, installation: "other" }));
  return { ...shape, ...(agents && { agents }) };
}

/**
 * Time from the order that reboots a host until its node is Ready. It is about as long as from its remediation to the
 * power-off.
 */
const BOOT_MS = 8_000;

/** Sometimes reboots a remediated host, so that its node is Ready at about the time of the power-off. */
function drawReturn(random: Random, { script }: Run): Act[] {
  const remediate = script.find((act) => act.do === "remediate" && "atMs" in act.when);
  if (below(random, 4) > 0 || remediate?.do !== "remediate" || !("atMs" in remediate.when)) return [];
  const atMs = Math.max(0, remediate.when.atMs - BOOT_MS + below(random, BOOT_MS));
  return [{ when: { atMs }, do: "order", host: remediate.node, order: "PowerCycle" }];
}

/**
 * Whether an act sets the wall clock back and so hides that the machine was suspended. Then no clock of the agent would
 * show the suspension.
 */
function isHidden(act: Act, more: readonly Act[]): boolean {
  if (act.do !== "jumpClock" || act.byMs > 0) return false;
  return more.some((other) => other.do === "suspend" && other.machine === true && other.agent === act.agent);
}

/** The maximum number of rounds in which hosts of a rack fail. */
const ROUNDS_MAX = 5;
/** Time between rounds: enough to notice the failure, and for a fence with a retry. */
const ROUND_MS = 75_000;
/**
 * The maximum retries for hosts with a broken disk. Each is fenced repeatedly without success until the end of the
 * round.
 */
const RETRIES_MAX = 8;
const RETRY_MS = 40_000;

interface Round {
  index: number;
  startMs: number;
  endMs: number;
  dies: "hang" | "failDisk";
  strategy: Record<string, unknown>;
}

/**
 * A rack whose hosts fail repeatedly, with the same faults as a random run: many fences at once, in failure zones and
 * with limits, and restarts in between. The same seed gives the same run on every machine.
 */
export function rackOf(seed: number): Run {
  const random = seededRandom(seed);
  const shape = drawRack(random);
  const hosts = Array.from({ length: shape.hosts }, (_, index) => `n${index + 1}`);
  const rounds: Round[] = [];
  for (let more = 2 + below(random, ROUNDS_MAX - 1); more > 0; more -= 1) {
    rounds.push(drawRound(random, shape, rounds.length, rounds.at(-1)?.endMs ?? 0));
  }
  const script = rounds.flatMap((round) => [...drawDeaths(random, shape, hosts, round), ...mend(hosts, round)]);
  const lengthMs = rounds.at(-1)?.endMs ?? 0;
  const periods = Math.ceil(lengthMs / ROUND_MS);
  for (let more = below(random, 5 * periods); more > 0; more -= 1) {
    script.push(...drawTrouble(random, shape, hosts, below(random, lengthMs)));
  }
  script.sort((a, b) => timeOf(a) - timeOf(b));
  const points = periods * shape.hosts * 20;
  const faults = Array.from({ length: below(random, 6 * periods) }, () => drawFault(random, shape, points));
  return { name: "rack", seed, shape, script, faults };
}

function drawRack(random: Random): Shape & { hosts: number } {
  const hosts = 20 + below(random, 29);
  const zones = 2 + below(random, 4);
  return {
    ...drawShape(random),
    hosts,
    pods: 1 + below(random, 12),
    ...(below(random, 2) === 0 && { zones, maxHostsPerZone: pick(random, [1, 4, 8]) }),
    ...(below(random, 2) === 0 && { maxHosts: pick(random, [4, 12, 24]) }),
  };
}

function drawRound(random: Random, { detector }: Shape, index: number, startMs: number): Round {
  const strategy = drawStrategy(random);
  // What no reboot fixes is nothing that a health check with a reboot alone comes to an end with.
  if (detector === true || below(random, 2) === 0) {
    return { index, startMs, endMs: startMs + ROUND_MS, dies: "hang", strategy };
  }
  const retryLimit = below(random, 1 + RETRIES_MAX);
  const endMs = startMs + ROUND_MS + retryLimit * RETRY_MS;
  return { index, startMs, endMs, dies: "failDisk", strategy: { ...strategy, retryLimit, timeout: "10s" } };
}

/** Many hosts fail, one by one or all at once, and are remediated, by the health check if there is one. */
function drawDeaths(random: Random, { detector }: Shape, hosts: readonly string[], round: Round): Act[] {
  const share = pick(random, [0.3, 0.6, 0.95]);
  const spreadMs = pick(random, [100, 3_000, 20_000]);
  return hosts.flatMap((host): Act[] => {
    if (random.next() >= share) return [];
    const atMs = round.startMs + below(random, spreadMs);
    const death: Act = { when: { atMs }, do: round.dies, host };
    if (detector === true) return [death];
    // A node may be remediated while it still counts as alive.
    const waitMs = pick(random, [0, DEAD_MS, DEAD_MS, DEAD_MS]);
    const name = `${host}-${round.index + 1}`;
    return [death, { when: { atMs: atMs + waitMs }, do: "remediate", node: host, name, strategy: round.strategy }];
  });
}

/** At the end of a round all disks are repaired, and remediations with a verdict are deleted, as health checks do. */
function mend(hosts: readonly string[], { endMs, dies }: Round): Act[] {
  const when = { atMs: endMs };
  const disks = dies === "hang" ? [] : hosts;
  return [...disks.map((host): Act => ({ when, do: "replaceDisk", host })), { when, do: "tidy" }];
}

/** One deed of a random run at the given time. Faults that affect all hosts end soon, so that fences can take place. */
function drawTrouble(random: Random, shape: Shape, hosts: readonly string[], atMs: number): Act[] {
  const deed = drawDeed(random, shape, hosts);
  const act: Act = { when: { atMs }, ...deed };
  const later = { atMs: atMs + 1_000 + below(random, 20_000) };
  switch (deed.do) {
    case "pause":
      return [
        { ...act, do: "pause", on: true },
        { when: later, do: "pause", on: false },
      ];
    case "holdUnseen":
      return [
        act,
        { when: later, do: "lagWatches", forMs: 0, plural: deed.what === "pause" ? "configmaps" : "ironfence" },
        { when: later, do: "pause", on: false },
        { when: later, do: "maintain", host: deed.host, on: false },
      ];
    case "lagWatches":
      return [act, { when: later, ...deed, forMs: 0 }];
    case "bmc":
      return [act, { when: later, do: "bmc", host: deed.host, is: "up" }];
    case "dropTarget":
      return [act, { when: later, do: "remakeTarget", host: deed.host }];
    default:
      return [act];
  }
}

export function drawShape(random: Random): Shape {
  const kind = below(random, 10);
  // A lease works if the rates of the clocks differ by less than its duration and its renewal deadline: 15 s to 10 s.
  const clocks = [{}, { aheadMs: 15_000 }, { aheadMs: -600_000 }, { aheadMs: 600_000 }, { rate: 0.8 }, { rate: 1.15 }];
  return {
    ...(kind >= 6 && { agents: kind >= 9 ? [pick(random, clocks), pick(random, clocks)] : [{}, {}] }),
    ...(below(random, 2) === 0 && { latencyMs: pick(random, [20, 200, 1_000]) }),
    ...(below(random, 6) === 0 && { detector: true, hosts: 4 }),
  };
}

/** Some nodes fail and are remediated. */
function drawOutage(random: Random, { detector }: Shape): Act[] {
  const nodes = HOSTS.slice(0, detector === true ? 1 : 1 + below(random, 3));
  return nodes.flatMap((host): Act[] => {
    const dies = below(random, 5) > 0;
    // A health check whose only step is a reboot would never end with a dead disk, which no reboot fixes.
    const how = pick(random, ["hang", "hang", "hang", detector === true ? "hang" : "failDisk", "cutMains"] as const);
    const death: Act[] = dies ? [{ when: { atMs: below(random, 3_000) }, do: how, host }] : [];
    if (how === "cutMains") death.push({ when: { atMs: DEAD_MS + below(random, 20_000) }, do: "restoreMains", host });
    if (detector === true) return death;
    const atMs = DEAD_MS + below(random, 5_000);
    return [...death, { when: { atMs }, do: "remediate", node: host, strategy: drawStrategy(random) }];
  });
}

function drawStrategy(random: Random): Record<string, unknown> {
  return {
    type: pick(random, ["Reboot", "Reboot", "Reboot", "Escalate"]),
    retryLimit: below(random, 2),
    workloadRelease: pick(random, ["OutOfServiceTaint", "OutOfServiceTaint", "DeleteNode"]),
    podRelease: pick(random, ["Eager", "Eager", "GarbageCollector"]),
    drainTimeout: pick(random, ["0s", "10s", "40s"]),
    timeout: pick(random, ["20s", "60s"]),
  };
}

const STATES = statesBetween("Verifying", "Undoing");

export function drawAct(random: Random, shape: Shape): Act {
  const when = drawWhen(random);
  return { when, ...drawDeed(random, shape) };
}

function drawWhen(random: Random): When {
  const early = below(random, 3) > 0;
  return early
    ? { on: pick(random, STATES), afterMs: pick(random, [0, 0, 30, 500, 2_000, 8_000]) }
    : { atMs: DEAD_MS + below(random, LENGTH_MS - DEAD_MS) };
}

function drawDeed(random: Random, shape: Shape, hosts: readonly string[] = HOSTS): Deed {
  const host = pick(random, hosts);
  const agent = below(random, shape.agents?.length ?? 1);
  const draws: (() => Deed)[] = [
    () => ({ do: pick(random, ["hang", "resume", shape.detector === true ? "hang" : "failDisk"]), host }),
    () => ({ do: "order", host, order: pick(random, ["On", "On", "ForceOff", "ForceRestart", "PowerCycle"]) }),
    () => ({ do: "bmc", host, is: pick(random, ["up", "refused", "silent"]) }),
    () => ({ do: "bmc", host, is: "up" }),
    () => ({
      do: pick(random, ["restartBmc", "flapPower", "freezePower"]),
      host,
      forMs: pick(random, [500, 5_000, 20_000]),
    }),
    () => ({ do: "delayOrders", host, forMs: pick(random, [500, 5_000, 25_000]) }),
    () => ({ do: "remediate", node: host, name: `${host}-again`, strategy: drawStrategy(random) }),
    () => ({ do: pick(random, ["delete", "timeOut"]), name: pick(random, [host, host, `${host}-again`]) }),
    () => ({ do: "holdPod" }),
    () => ({ do: "freePod" }),
    () => ({ do: "pause", on: below(random, 2) === 0 }),
    () => ({ do: "maintain", host, on: below(random, 2) === 0 }),
    () => ({ do: pick(random, ["dropTarget", "remakeTarget"]), host }),
    () => ({ do: pick(random, ["label", "annotate", "taint", "cordon"]), node: host }),
    () => ({ do: "crash", agent }),
    () => ({ do: "crash", agent }),
    () => ({ do: "suspend", agent, forMs: pick(random, [1_000, 8_000, 14_000, 40_000]) }),
    () => ({ do: "jumpClock", agent, byMs: pick(random, [15_000, -15_000, 600_000, -600_000]) }),
    () => ({ do: pick(random, ["cutWatches", "compact"]) }),
    () => ({
      do: "lagWatches",
      forMs: pick(random, [0, 200, 2_000, 10_000]),
      plural: pick(random, ["nodes", "leases", "pods", "ironfence", "configmaps"]),
    }),
    () => ({ do: "mend", host }),
    () => ({ do: "mend", host }),
    () => ({ do: "restore", host }),
    () => ({
      do: "holdUnseen",
      host,
      what: pick(random, ["pause", "maintenance"]),
      forMs: pick(random, [10_000, 60_000]),
    }),
  ];
  return pick(random, draws)();
}

const READS = ["get", "list", "watch"] as const;
const WRITES = ["create", "update", "patch", "delete"] as const;
const READS_AND_WRITES = [...READS, ...WRITES];
/** Calls of one kind: a slow webhook affects some writes, and a priority level of the API server delays some reads. */
const CALLS: readonly { resource: string; verbs: readonly Verb[] }[] = [
  { resource: "nodes", verbs: ["get"] },
  { resource: "nodes", verbs: ["list", "watch"] },
  { resource: "nodes", verbs: ["patch"] },
  { resource: "nodes", verbs: ["delete"] },
  { resource: "pods", verbs: ["list"] },
  { resource: "pods", verbs: READS },
  { resource: "pods", verbs: ["delete"] },
  { resource: "pods/status", verbs: WRITES },
  { resource: "volumeattachments", verbs: READS },
  { resource: "leases", verbs: ["get"] },
  { resource: "secrets", verbs: READS },
  { resource: "configmaps", verbs: READS },
  { resource: "fencingtargets", verbs: READS },
  { resource: "fencingtargets", verbs: WRITES },
  { resource: "fencingtargets/status", verbs: WRITES },
  { resource: "baremetalremediations", verbs: READS },
  { resource: "baremetalremediations", verbs: WRITES },
  { resource: "baremetalremediations/status", verbs: WRITES },
  { resource: "events", verbs: WRITES },
];
/** Kinds whose lists fail when an agent starts, because of a conversion or an unreadable object in etcd. */
const LISTED = ["fencingtargets", "baremetalremediations", "configmaps", "secrets", "nodes"] as const;

/** A kind may be stored in a separate etcd, which is full while the others are not. */
const FULL_ETCD = { kind: "status", status: 500, message: "etcdserver: mvcc: database space exceeded" } as const;

/** A fault of calls of one kind. A dead fail-closed webhook leads to 500, a slow one to a timeout. */
function drawCallFault(random: Random, verbs: readonly Verb[]): FaultAction {
  const isWrite = verbs.some((verb) => WRITES.some((write) => write === verb));
  const draws: (() => FaultAction)[] = [
    () => ({ kind: "delay", delayMs: pick(random, [10_000, 20_000, 35_000, 60_000]) }),
    () => ({ kind: "delay", delayMs: pick(random, [10_000, 20_000, 35_000, 60_000]) }),
    () => ({ kind: "status", status: 429, retryAfterSeconds: pick(random, [1, 10, 30]) }),
    () => ({ kind: "status", status: 500 }),
    () => (isWrite ? { kind: "status", status: 403 } : { kind: "status", status: 504 }),
    () => (isWrite ? FULL_ETCD : { kind: "status", status: 503 }),
    () => ({ kind: "hang" }),
  ];
  return pick(random, draws)();
}

/** A duration, or none for a fault that lasts until all faults end. */
function drawLasting(random: Random): { forMs?: number } {
  return below(random, 4) === 0 ? {} : { forMs: pick(random, [10_000, 30_000, 70_000]) };
}

/** Draws faults of the world other than hosts, BMCs and agents, at one moment of a random run. */
function drawWorldActs(random: Random, shape: Shape): Act[] {
  const when = drawWhen(random);
  const host = pick(random, HOSTS);
  const agent = below(random, shape.agents?.length ?? 1);
  const draws: (() => Deed[])[] = [
    () => {
      const calls = pick(random, CALLS);
      return [{ do: "hamper", ...calls, action: drawCallFault(random, calls.verbs), ...drawLasting(random) }];
    },
    // A change to which an agent must react at once, while its calls of one kind are slow.
    () => {
      const calls = pick(random, CALLS);
      return [
        { do: "hamper", ...calls, action: drawCallFault(random, calls.verbs), ...drawLasting(random) },
        pick<Deed>(random, [
          { do: "order", host, order: "On" },
          { do: "crash", agent },
          { do: "resume", host },
          { do: "delete", name: host },
          { do: "bmc", host, is: "silent" },
        ]),
      ];
    },
    // An agent without a lease does not check for signs of this (docs/explanation/remediation.md).
    () => {
      const machine = shape.agents !== undefined;
      return [{ do: "suspend", agent, forMs: pick(random, [4_000, 12_000, 40_000, 120_000]), machine }];
    },
    // Only the agent's connection to the API fails: an agent may still act for a time while it cannot renew its lease.
    () => [
      { do: "hamper", agent, resource: "leases", verbs: READS_AND_WRITES, action: { kind: "hang" }, forMs: 20_000 },
      { do: "deleteLease" },
    ],
    () => [
      {
        do: "brownout",
        delayMs: pick(random, [1_000, 2_000, 3_000, 4_500, 6_000, 9_000]),
        forMs: pick(random, [10_000, 30_000, 70_000]),
      },
    ],
    () => [
      { do: "pauseFor", forMs: pick(random, [10_000, 60_000, 300_000]) },
      { do: "jumpServerClock", byMs: pick(random, [-300_000, -60_000, 60_000, 300_000]) },
    ],
    () => [{ do: "finalizers", name: host, how: pick(random, ["strip", "replace", "add"]) }],
    () => [
      { do: "finalizers", name: host, how: "replace" },
      { do: "delete", name: host },
    ],
    () => [{ do: "otherVersion", name: host, forMs: pick(random, [500, 5_000, 30_000]) }],
    () => [
      { do: "otherVersion", name: host, forMs: 30_000 },
      pick<Deed>(random, [
        { do: "delete", name: host },
        { do: "crash", agent },
        { do: "order", host, order: "On" },
      ]),
    ],
    () => [{ do: "silenceWatches", plural: pick(random, ["nodes", "leases", "pods", "ironfence", "configmaps"]) }],
    // If watches are cut as well, the view cannot be restored.
    () => {
      const action: FaultAction = { kind: "status", status: pick(random, [403, 500, 500]) };
      const lists: Deed = {
        do: "hamper",
        resource: pick(random, LISTED),
        verbs: READS,
        action,
        ...drawLasting(random),
      };
      return [lists, pick<Deed>(random, [{ do: "crash", agent }, { do: "cutWatches" }])];
    },
  ];
  return pick(random, draws)().map((deed) => ({ when, ...deed }));
}

const ERRORS: readonly BmcErrorCode[] = ["Unreachable", "Timeout", "Busy", "Refused", "BadResponse", "AuthFailed"];
const LIES: readonly Lie[] = ["slow", "late", "ignored", "staleOn", "changing", "unknown", "nobody"];

/** @param points the fault is at one of the first `points` effects, calls or events. */
export function drawFault(random: Random, shape: Shape, points = 60): Fault {
  const index = below(random, points);
  const times = pick(random, [1, 1, 3, 20]);
  const draws: (() => Fault)[] = [
    () => ({ at: "effect", index, how: "crash", place: pick(random, ["before", "between", "after"]) }),
    () => ({ at: "effect", index, how: "crash", place: pick(random, ["before", "between", "after"]) }),
    () => ({ at: "effect", index, how: pick(random, ["lost", "unavailable"]) }),
    () => ({ at: "call", index, times, error: pick(random, ERRORS) }),
    () => ({ at: "call", index, times, error: pick(random, ["Unreachable", "Timeout", "BadResponse"]), after: true }),
    () => ({ at: "call", index, times, lie: pick(random, LIES) }),
    () => ({
      at: "event",
      index,
      holdMs: pick(random, [100, 1_000, 10_000]),
      how: pick(random, ["show", "cut", "compact"]),
    }),
    () =>
      shape.agents === undefined
        ? { at: "effect", index, how: "crash", place: "between" }
        : {
            at: "effect",
            index,
            how: "stop",
            forMs: pick(random, [5_000, 14_000, 40_000]),
            answersFirst: below(random, 2) === 0,
          },
  ];
  return pick(random, draws)();
}

export function timeOf({ when }: Act): number {
  return "atMs" in when ? when.atMs : LENGTH_MS;
}

export function below(random: Random, bound: number): number {
  return Math.floor(random.next() * bound);
}

export function pick<const T>(random: Random, from: readonly T[]): T {
  const picked = from[below(random, from.length)];
  if (picked === undefined) throw new RangeError("nothing to pick from");
  return picked;
}
