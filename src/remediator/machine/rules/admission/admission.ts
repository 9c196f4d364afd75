import { keepsQuorum, quorumMessage } from "./quorum.ts";
import type { EtcdMember } from "../../model/facts/observations.ts";
import type { Admission } from "../../model/facts/snapshot.ts";

/**
 * How many hosts may be remediated at the same time, from the check before the power-off until they read On.
 */
export interface AdmissionLimits {
  /** In all clusters together. */
  hosts: number;
  /** In one workload cluster. Only `hosts` limits the agent's own cluster. */
  perCluster: number;
  /** In one failure zone. Only the other two limit nodes without a zone. */
  perZone: number;
}

/** A remediation that is working on a host, or waits for admission. */
export interface Contender {
  uid: string;
  /** `namespace/name`, for messages. */
  name: string;
  /** `clusterKey` of its node's cluster. Each cluster has its own zones and its own etcd. */
  cluster: string;
  /** Undefined for a Machine that has no node yet. */
  node: string | undefined;
  zone: string | undefined;
  createdAtMs: number;
  /** Another remediation may have left the host off for this one. */
  inherits: boolean;
  /** How many power cycles it has begun. */
  attempts: number;
  /** Whether it occupies a slot. A remediation that has begun may have released its slot before its node is up. */
  holdsSlot: boolean;
}

/**
 * A remediation whose host was already power-cycled counts as this much younger. The time is limited, so that newer
 * remediations do not keep it waiting forever.
 */
const CYCLED_GIVES_WAY_MS = 600_000;
/** Maximum number of names in one message. */
const NAMES_MAX = 3;

/**
 * Decides which remediations are admitted. The order is:
 * - first, remediations that may have inherited a host that is off;
 * - then the zone with the fewest hosts that hold a slot, so that the failure of a whole rack does not delay a single
 *   host elsewhere;
 * - within a zone the oldest; a remediation whose host was already power-cycled counts as ten minutes younger.
 * A remediation that a limit or the quorum of etcd refuses does not block the ones behind it. For the quorum, every
 * remediation that has begun counts, because a node may still be down when its host is on. Pure.
 */
export function admit(
  underWay: readonly Contender[],
  waiting: readonly Contender[],
  limits: AdmissionLimits,
  members: (cluster: string) => readonly EtcdMember[],
): Map<string, Admission> {
  const admissions = new Map<string, Admission>();
  const busy = [...underWay];
  const held: { uid: string; why: NotAdmitted }[] = [];
  for (const next of inOrder(
    waiting,
    underWay.filter(({ holdsSlot }) => holdsSlot),
  )) {
    const why = admissionRefusal(next, busy, limits, members(next.cluster));
    if (why !== undefined) {
      held.push({ uid: next.uid, why });
      continue;
    }
    admissions.set(next.uid, { granted: true });
    busy.push({ ...next, holdsSlot: true });
  }
  for (const [index, { uid, why }] of held.entries()) {
    const message = `${why.message}; position ${index + 1} of ${held.length} in the queue`;
    admissions.set(uid, { granted: false, reason: why.reason, message });
  }
  return admissions;
}

/** The waiting remediations in the order in which they are admitted. */
function* inOrder(waiting: readonly Contender[], busy: readonly Contender[]): Generator<Contender> {
  const inZone = new Map<string | undefined, number>();
  const count = (contender: Contender): unknown => {
    const zone = zoneKey(contender);
    return inZone.set(zone, (inZone.get(zone) ?? 0) + 1);
  };
  busy.forEach(count);
  const queues = [...Map.groupBy(waiting.toSorted(byRank), zoneKey).values()].map((queue) => queue.values());
  const heads = new Map(queues.map((queue) => [queue, queue.next().value]));
  for (;;) {
    let first: { queue: (typeof queues)[number]; contender: Contender } | undefined;
    for (const [queue, contender] of heads) {
      if (contender === undefined) continue;
      if (first === undefined || goesBefore(contender, first.contender, inZone)) first = { queue, contender };
    }
    if (first === undefined) return;
    heads.set(first.queue, first.queue.next().value);
    count(first.contender);
    yield first.contender;
  }
}

function goesBefore(a: Contender, b: Contender, inZone: ReadonlyMap<string | undefined, number>): boolean {
  if (a.inherits !== b.inherits) return a.inherits;
  const [busyA, busyB] = [inZone.get(zoneKey(a)) ?? 0, inZone.get(zoneKey(b)) ?? 0];
  return busyA === busyB ? byRank(a, b) < 0 : busyA < busyB;
}

function byRank(a: Contender, b: Contender): number {
  if (a.inherits !== b.inherits) return a.inherits ? -1 : 1;
  const [queuedA, queuedB] = [queuedAtMs(a), queuedAtMs(b)];
  if (queuedA !== queuedB) return queuedA - queuedB;
  return a.uid < b.uid ? -1 : 1;
}

/**
 * The time by which a remediation is ordered. The workloads of a host that was already power-cycled are released, so
 * other remediations are more urgent.
 */
function queuedAtMs({ attempts, createdAtMs }: Contender): number {
  return createdAtMs + (attempts > 0 ? CYCLED_GIVES_WAY_MS : 0);
}

/** A zone of the same name in another cluster is another zone. */
function zoneKey({ cluster, zone }: Contender): string | undefined {
  return zone === undefined ? undefined : `${cluster} ${zone}`;
}

/**
 * Why one remediation is not admitted while others are under way; undefined if it is. Remediations that have released
 * their slot count only for the quorum. Pure.
 */
export function admissionRefusal(
  next: Contender,
  underWay: readonly Contender[],
  limits: AdmissionLimits,
  members: readonly EtcdMember[],
): NotAdmitted | undefined {
  const holders = underWay.filter(({ holdsSlot }) => holdsSlot);
  return refusedByQuorum(next, underWay, members) ?? refusedByLimit(next, holders, limits);
}

export type NotAdmitted = { reason: "WaitingForTurn" | "ControlPlaneQuorum"; message: string };

function refusedByLimit(next: Contender, busy: readonly Contender[], limits: AdmissionLimits): NotAdmitted | undefined {
  const { zone, cluster } = next;
  if (busy.length >= limits.hosts) {
    const message = `${busy.length} of ${limits.hosts} hosts are being remediated: ${namesOf(busy, next.cluster)}`;
    return { reason: "WaitingForTurn", message };
  }
  const inCluster = cluster === "" ? [] : busy.filter((other) => other.cluster === cluster);
  if (cluster !== "" && inCluster.length >= limits.perCluster) {
    const message = `${inCluster.length} of ${limits.perCluster} hosts of cluster ${cluster} are being remediated: ${namesOf(inCluster, cluster)}`;
    return { reason: "WaitingForTurn", message };
  }
  if (zone === undefined) return undefined;
  const inSame = busy.filter((other) => zoneKey(other) === zoneKey(next));
  if (inSame.length < limits.perZone) return undefined;
  const message = `${inSame.length} of ${limits.perZone} hosts of zone ${zone} are being remediated: ${namesOf(inSame, next.cluster)}`;
  return { reason: "WaitingForTurn", message };
}

/**
 * Why the quorum refuses a remediation; undefined if it does not. A member whose host is being remediated will come
 * back, so that is a wait for admission. A member that is down may not come back: then the reason is
 * ControlPlaneQuorum.
 */
function refusedByQuorum(
  { cluster, node }: Contender,
  busy: readonly Contender[],
  members: readonly EtcdMember[],
): NotAdmitted | undefined {
  if (node === undefined) return undefined;
  const inWork = busy.filter(
    (other) => other.cluster === cluster && other.node !== node && members.some((member) => member.node === other.node),
  );
  const nodes = new Set(inWork.map((other) => other.node));
  const left = members.map((member) => ({ ...member, up: member.up && !nodes.has(member.node) }));
  if (keepsQuorum(left, node)) return undefined;
  const later = members.map((member) => ({ ...member, up: member.up || nodes.has(member.node) }));
  if (keepsQuorum(later, node)) {
    const message = `etcd needs the node while other control plane nodes are being remediated: ${namesOf(inWork, cluster)}`;
    return { reason: "WaitingForTurn", message };
  }
  return { reason: "ControlPlaneQuorum", message: quorumMessage(left, node) };
}

/** Names remediations of the same cluster, and only counts the others: the users of one cluster read the message. */
function namesOf(contenders: readonly Contender[], cluster: string): string {
  const same = contenders.filter((contender) => contender.cluster === cluster);
  const names = same.slice(0, NAMES_MAX).map(({ name }) => name);
  if (same.length > NAMES_MAX) names.push("…");
  const others = contenders.length - same.length;
  if (others > 0) names.push(`${others} of other clusters`);
  return names.join(", ");
}
