import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { RemediationRecord, UnhealthyNode } from "../../../api/ironfence/node-health-check.ts";
import type { ObjectKey } from "../../../kube/client.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { NodeCounts } from "../decide/threshold.ts";
import { countNodes } from "../decide/threshold.ts";
import { isHistoryFull, readAttempts } from "../../shared/model/attempts.ts";
import type { NodeCheckState } from "./check-state.ts";
import type {
  ForeignRemediation,
  NodeFacts,
  NodeCheckSnapshot,
  PlatformFacts,
  RemediationKind,
} from "../decide/decision.ts";
import type { HealthCheckObject } from "./health-check.ts";
import { isOlder } from "./health-check.ts";
import type { NodeHealth } from "../decide/health.ts";
import type { FencingTargetWatch } from "../../shared/views/fencing-target-watch.ts";
import type { OverdueNodes } from "../../shared/views/overdue-nodes.ts";
import type { NodeTracker } from "./node-tracker.ts";
import type { NodePolicy } from "../decide/policy.ts";
import type { LiveNodes } from "../../shared/views/watched-nodes/current-nodes.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { isForControlPlane, isOwnedBy } from "../../shared/model/remediation.ts";
import { readDisabled } from "../decide/status.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";

/** Another health check, and its state. */
export interface Peer {
  check: HealthCheckObject;
  state: NodeCheckState;
}

/** The sources of a snapshot. */
export interface NodeSnapshotSources {
  check: HealthCheckObject;
  policy: NodePolicy;
  tracker: NodeTracker;
  state: NodeCheckState;
  /** The other health checks. */
  peers: readonly Peer[];
  nodes: Pick<Watched<Node>, "get">;
  /** The nodes of a live list; undefined if the view is up to date. */
  liveNodes: LiveNodes | undefined;
  /** All remediation CRs, with any owner. */
  remediations: readonly Remediation[];
  /** The nodes for which a CR is being created at this moment, each with the name of its health check. */
  starting: ReadonlyMap<string, string>;
  /** What is wrong with the transition times of a node, as text for the operator. */
  skewOf?: (nodeName: string, matters: (conditionType: string) => boolean) => string | undefined;
  /** How far the clock of this process is wrong, as text for the operator. */
  clockSkew?: string | undefined;
  templates: NodeCheckSnapshot["templates"];
  platform: PlatformFacts;
  /** Whether the kind of a recorded CR can be read now. */
  canSee: (record: Pick<RemediationRecord, "resource">) => boolean;
  blocked: string | undefined;
  /** What is known about the power of hosts, for health checks that need it. */
  fencingTargets: Pick<FencingTargetWatch, "hostOf" | "problem" | "fenceableSinceMs" | "provenEarly">;
  /** Which nodes do not renew their node leases; undefined if node leases are not watched. */
  overdue?: OverdueNodes | undefined;
}

const HEALTHY: NodeHealth = { state: "healthy" };

/** Gathers everything that a decision about one health check depends on. */
export function takeNodeSnapshot(sources: NodeSnapshotSources, nowMs: number): NodeCheckSnapshot {
  const { check, policy, tracker, state, remediations } = sources;
  tracker.advance(nowMs);
  const own = groupByNode(remediations.filter(({ object }) => isOwnedBy(object, check.metadata.uid)));
  const foreign = groupByName(remediations.filter(({ object }) => !isOwnedBy(object, check.metadata.uid)));
  const previous = new Map((check.status.unhealthyNodes ?? []).map((entry) => [entry.name, entry]));
  const names = new Set([
    ...tracker.notable.keys(),
    ...previous.keys(),
    ...own.keys(),
    // If a node recovers while its remediation lease is being taken, nothing else refers to the node, and the lease
    // must be released.
    ...namesOfLeased(state),
  ]);
  const isFollowed = policy.beginsEarly && sources.overdue !== undefined;
  const peerChecks = new PeerChecks(sources);
  const attempts = readAttempts(check);
  const attemptsOfOthers = sources.peers.map((peer) => readAttempts(peer.check));
  const provenEarly = new Set(isFollowed ? sources.fencingTargets.provenEarly() : []);
  for (const name of provenEarly) names.add(name);
  const nodes = [...names].map((name): NodeFacts => {
    const node = sources.nodes.get({ name });
    const selected = node !== undefined && tracker.selects(name);
    const ownRemediations = own.get(name) ?? [];
    const { deferral, leaseRenewAtMs } = state.observations.of(name);
    return {
      name,
      node,
      selected,
      health: node === undefined ? HEALTHY : (tracker.notable.get(name)?.health ?? tracker.judge(node, nowMs)),
      previous: previous.get(name),
      remediations: ownRemediations,
      foreign: foreign.get(name) ?? [],
      attempts: attempts.get(name) ?? [],
      attemptsOfOthers: attemptsOfOthers.flatMap((history) => history.get(name) ?? []),
      peerCheck: peerChecks.of(name, ownRemediations.length > 0),
      deferral,
      leaseRenewAtMs,
      skew: sources.skewOf?.(name, (type) => policy.unhealthyConditions.some((rule) => rule.type === type)),
      host: policy.skipsDurationIfOff || provenEarly.has(name) ? sources.fencingTargets.hostOf(name) : undefined,
      early: provenEarly.has(name) || isEarly(ownRemediations) ? sources.overdue?.factsOf(name) : undefined,
      fenceableSinceMs: mayRetry(previous.get(name)) ? sources.fencingTargets.fenceableSinceMs(name) : undefined,
    };
  });
  return {
    name: check.metadata.name,
    generation: check.metadata.generation,
    status: check.status,
    policy,
    templates: sources.platform.conflict ?? sources.templates,
    platform: sources.platform,
    isHistoryFull: isHistoryFull(check),
    selectedNodes: tracker.selectedNodes,
    nodes,
    overdueNodes: provenEarly.size > 0 ? countOverdue(tracker, own, sources.overdue) : 0,
    liveCounts: sources.liveNodes && countLiveNodes(check, tracker, sources.liveNodes, remediations, nowMs),
    controlPlaneBusy: controlPlaneBusy(sources),
    unseenKinds: findUnseenKinds(sources, nodes),
    clockSkew: sources.clockSkew,
    hostProblem: policy.skipsDurationIfOff ? sources.fencingTargets.problem : undefined,
    blocked:
      check.metadata.deletionTimestamp === undefined
        ? (sources.blocked ?? sources.platform.unknown)
        : "the health check is being deleted",
  };
}

function namesOfLeased({ observations }: NodeCheckState): string[] {
  return [...observations.entries()].flatMap(([name, { leaseRenewAtMs }]) =>
    leaseRenewAtMs === undefined ? [] : [name],
  );
}

/** Whether a remediation began early. */
function isEarly(remediations: readonly Remediation[]): boolean {
  return remediations.some(({ powerOnNotBeforeMs }) => powerOnNotBeforeMs !== undefined);
}

/** How many nodes count as healthy although the renewals of their leases are overdue. */
export function countOverdue(
  tracker: NodeTracker,
  own: ReadonlyMap<string, readonly Remediation[]>,
  overdue: OverdueNodes | undefined,
): number {
  const counts = (name: string): boolean => tracker.selects(name) && !tracker.isNotHealthy(name) && !own.has(name);
  return (overdue?.names() ?? []).filter((name) => counts(name)).length;
}

/**
 * Whether a BareMetalRemediation is recorded. For this kind, the FencingTarget of the node shows whether the cause of a
 * failure is fixed.
 */
function mayRetry(entry: UnhealthyNode | undefined): boolean {
  const { kind } = BARE_METAL_REMEDIATIONS;
  return entry?.remediations?.some(({ resource }) => resource.kind === kind) === true;
}

/** Counts the nodes of a health check now, without taking a snapshot. */
export function countNodesNow(
  check: HealthCheckObject,
  tracker: NodeTracker,
  nodes: NodeSnapshotSources["nodes"],
  remediations: readonly Remediation[],
  nowMs: number,
): NodeCounts {
  tracker.advance(nowMs);
  const own = groupByNode(remediations.filter(({ object }) => isOwnedBy(object, check.metadata.uid)));
  const names = new Set([...tracker.notable.keys(), ...own.keys()]);
  const counted = [...names].map((name) => ({
    selected: nodes.get({ name }) !== undefined && tracker.selects(name),
    health: tracker.notable.get(name)?.health ?? HEALTHY,
    remediations: own.get(name) ?? [],
  }));
  return countNodes(tracker.selectedNodes, counted);
}

/** Counts the nodes of a live list. */
export function countLiveNodes(
  check: HealthCheckObject,
  tracker: NodeTracker,
  liveNodes: LiveNodes,
  remediations: readonly Remediation[],
  nowMs: number,
): NodeCounts {
  const nodes = { get: ({ name }: ObjectKey) => liveNodes.get(name) };
  return countNodesNow(check, tracker.over(liveNodes.values(), nowMs), nodes, remediations, nowMs);
}

/** Which other health check handles a node. */
class PeerChecks {
  readonly #sources: NodeSnapshotSources;
  /** The name of another health check with a CR for the node, by node. */
  readonly #remediating = new Map<string, string>();

  constructor(sources: NodeSnapshotSources) {
    this.#sources = sources;
    for (const { nodeName, object } of sources.remediations) {
      const owner = sources.peers.find(({ check }) => isOwnedBy(object, check.metadata.uid));
      if (owner !== undefined) this.#remediating.set(nodeName, owner.check.metadata.name);
    }
  }

  of(nodeName: string, hasOwnRemediation: boolean): string | undefined {
    const { check, peers, starting } = this.#sources;
    const remediating = this.#remediating.get(nodeName) ?? starting.get(nodeName);
    if (remediating !== undefined && remediating !== check.metadata.name) {
      return `NodeHealthCheck ${remediating} is remediating it`;
    }
    // A health check continues its own remediation, even if an older one selects the node.
    if (hasOwnRemediation) return undefined;
    const older = peers.find(
      (peer) =>
        "tracker" in peer.state.compiled &&
        peer.state.compiled.tracker.selects(nodeName) &&
        peer.check.metadata.deletionTimestamp === undefined &&
        readDisabled(peer.check.status) !== true &&
        isOlder(peer.check, check),
    );
    return older === undefined ? undefined : `the older NodeHealthCheck ${older.check.metadata.name} also selects it`;
  }
}

/**
 * The control plane nodes that any health check is remediating, according to the CRs, the statuses of the health
 * checks, and the remediations that are being created.
 */
function controlPlaneBusy(sources: NodeSnapshotSources): string[] {
  const isControlPlaneNode = (name: string) => {
    const node = sources.nodes.get({ name });
    return node !== undefined && isControlPlane(node);
  };
  const busy = new Set<string>();
  for (const { object, nodeName } of sources.remediations) {
    if (isForControlPlane(object) || isControlPlaneNode(nodeName)) busy.add(nodeName);
  }
  for (const name of sources.starting.keys()) if (isControlPlaneNode(name)) busy.add(name);
  for (const { check } of sources.peers) {
    for (const { name, remediations = [] } of check.status.unhealthyNodes ?? []) {
      if (remediations.length > 0 && isControlPlaneNode(name)) busy.add(name);
    }
  }
  return [...busy];
}

/** The kinds of recorded remediations that cannot be read now. */
function findUnseenKinds({ canSee }: NodeSnapshotSources, nodes: readonly NodeFacts[]): RemediationKind[] {
  const kinds: RemediationKind[] = [];
  const add = ({ apiVersion = "", kind = "" }: { [field in keyof RemediationKind]?: string | undefined }): void => {
    if (!kinds.some((known) => known.kind === kind && known.apiVersion === apiVersion))
      kinds.push({ apiVersion, kind });
  };
  for (const { previous, remediations } of nodes) {
    for (const { resource } of previous?.remediations ?? []) add(resource);
    for (const { object } of remediations) add(object);
  }
  return kinds.filter((resource) => !canSee({ resource }));
}

function groupByName(remediations: readonly Remediation[]): Map<string, ForeignRemediation[]> {
  const groups = new Map<string, ForeignRemediation[]>();
  for (const { object } of remediations) {
    const { name, namespace } = object.metadata;
    groups.set(name, [...(groups.get(name) ?? []), { kind: object.kind, namespace }]);
  }
  return groups;
}

export function groupByNode(remediations: readonly Remediation[]): Map<string, Remediation[]> {
  const groups = new Map<string, Remediation[]>();
  for (const remediation of remediations) {
    const group = groups.get(remediation.nodeName);
    if (group === undefined) groups.set(remediation.nodeName, [remediation]);
    else group.push(remediation);
  }
  return groups;
}
