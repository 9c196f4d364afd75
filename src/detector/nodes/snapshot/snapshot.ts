import { BARE_METAL_REMEDIATIONS } from "../../../api/bare-metal-remediation.ts";
import type { Node } from "../../../api/core.ts";
import type { UnhealthyNode } from "../../../api/node-health-check.ts";
import type { ObjectKey } from "../../../kube/client.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { Census } from "../decide/threshold.ts";
import { takeCensus } from "../decide/threshold.ts";
import { isHistoryFull, readAttempts } from "../../shared/model/attempts.ts";
import type { NodeCheckState } from "./check-state.ts";
import type { NodeFacts, Snapshot, PlatformFacts } from "../decide/decision.ts";
import type { HealthCheckObject } from "./health-check.ts";
import { isOlder } from "./health-check.ts";
import type { Health } from "../decide/health.ts";
import type { FencingTargetWatch } from "../../shared/views/fencing-target-watch.ts";
import type { NodeTracker } from "./node-tracker.ts";
import type { Policy } from "../decide/policy.ts";
import type { ListedNodes } from "../../shared/views/current-nodes.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { isForControlPlane, isOwnedBy } from "../../shared/model/remediation.ts";
import { readDisabled } from "../decide/status.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";

/** One health check and what is remembered of it. */
export interface Peer {
  check: HealthCheckObject;
  state: NodeCheckState;
}

/** What a snapshot is taken of. */
export interface World {
  check: HealthCheckObject;
  policy: Policy;
  tracker: NodeTracker;
  state: NodeCheckState;
  /** The other health checks. */
  peers: readonly Peer[];
  nodes: Pick<Watched<Node>, "get">;
  /** The nodes by a live list, if the view may be behind. */
  listed: ListedNodes | undefined;
  /** Every remediation CR there is, whoever owns it. */
  remediations: readonly Remediation[];
  /** Nodes for which a CR is being created at this moment, and by which health check. */
  starting: ReadonlyMap<string, string>;
  /** What is wrong with a node's transition times, in words. */
  skewOf?: (nodeName: string, matters: (conditionType: string) => boolean) => string | undefined;
  /** How far this process' clock is off, in words. */
  clockSkew?: string | undefined;
  templates: Snapshot["templates"];
  platform: PlatformFacts;
  canSee: Snapshot["canSee"];
  blocked: string | undefined;
  /** What is known of hosts' power, for health checks that ask. */
  fencingTargets: Pick<FencingTargetWatch, "hostOf" | "problem" | "fenceableSinceMs">;
}

const HEALTHY: Health = { state: "healthy" };

/** Gathers everything that a decision about one health check depends on. */
export function takeSnapshot(world: World, nowMs: number): Snapshot {
  const { check, policy, tracker, state, remediations } = world;
  tracker.advance(nowMs);
  const own = groupByNode(remediations.filter(({ object }) => isOwnedBy(object, check.metadata.uid)));
  const previous = new Map((check.status.unhealthyNodes ?? []).map((entry) => [entry.name, entry]));
  const names = new Set([
    ...tracker.notable.keys(),
    ...previous.keys(),
    ...own.keys(),
    // A node that recovered while its lease was being taken has only its lease.
    ...state.leaseRenewals.keys(),
  ]);
  const peerChecks = new PeerChecks(world);
  const attempts = readAttempts(check);
  const fencingTargets = policy.skipsDurationIfOff ? world.fencingTargets : undefined;
  const attemptsOfOthers = world.peers.map((peer) => readAttempts(peer.check));
  const nodes = [...names].map((name): NodeFacts => {
    const node = world.nodes.get({ name });
    const selected = node !== undefined && tracker.selects(name);
    const ownRemediations = own.get(name) ?? [];
    return {
      name,
      node,
      selected,
      health: node === undefined ? HEALTHY : (tracker.notable.get(name)?.health ?? tracker.judge(node, nowMs)),
      previous: previous.get(name),
      remediations: ownRemediations,
      attempts: attempts.get(name) ?? [],
      attemptsOfOthers: attemptsOfOthers.flatMap((book) => book.get(name) ?? []),
      peerCheck: peerChecks.of(name, ownRemediations.length > 0),
      deferral: state.deferrals.get(name),
      leaseRenewAtMs: state.leaseRenewals.get(name),
      skew: world.skewOf?.(name, (type) => policy.rules.some((rule) => rule.type === type)),
      host: fencingTargets?.hostOf(name),
      fenceableSinceMs: mayRetry(previous.get(name)) ? world.fencingTargets.fenceableSinceMs(name) : undefined,
    };
  });
  return {
    name: check.metadata.name,
    generation: check.metadata.generation,
    status: check.status,
    policy,
    templates: world.platform.conflict ?? world.templates,
    platform: world.platform,
    isHistoryFull: isHistoryFull(check),
    selectedNodes: tracker.selectedNodes,
    nodes,
    liveCensus: world.listed && takeLiveCensus(check, tracker, world.listed, remediations, nowMs),
    controlPlaneBusy: controlPlaneBusy(world),
    isForeign: (template, name) =>
      remediations.some(
        ({ object }) =>
          object.kind === template.type.kind &&
          object.metadata.name === name &&
          object.metadata.namespace === template.namespace &&
          !isOwnedBy(object, check.metadata.uid),
      ),
    canSee: world.canSee,
    clockSkew: world.clockSkew,
    hostProblem: fencingTargets?.problem,
    blocked:
      check.metadata.deletionTimestamp === undefined
        ? (world.blocked ?? world.platform.unknown)
        : "the health check is being deleted",
  };
}

/** Whether a remediation of our own kind is on record: what it may have failed for shows in the node's FencingTarget. */
function mayRetry(entry: UnhealthyNode | undefined): boolean {
  const { kind } = BARE_METAL_REMEDIATIONS;
  return entry?.remediations?.some(({ resource }) => resource.kind === kind) === true;
}

/** Counts a health check's nodes as they are at this moment, without a whole snapshot. */
export function takeCensusNow(
  check: HealthCheckObject,
  tracker: NodeTracker,
  nodes: World["nodes"],
  remediations: readonly Remediation[],
  nowMs: number,
): Census {
  tracker.advance(nowMs);
  const own = groupByNode(remediations.filter(({ object }) => isOwnedBy(object, check.metadata.uid)));
  const names = new Set([...tracker.notable.keys(), ...own.keys()]);
  const counted = [...names].map((name) => ({
    selected: nodes.get({ name }) !== undefined && tracker.selects(name),
    health: tracker.notable.get(name)?.health ?? HEALTHY,
    remediations: own.get(name) ?? [],
  }));
  return takeCensus(tracker.selectedNodes, counted);
}

/** The same by a live list. */
export function takeLiveCensus(
  check: HealthCheckObject,
  tracker: NodeTracker,
  listed: ListedNodes,
  remediations: readonly Remediation[],
  nowMs: number,
): Census {
  const nodes = { get: ({ name }: ObjectKey) => listed.get(name) };
  return takeCensusNow(check, tracker.over(listed.values(), nowMs), nodes, remediations, nowMs);
}

/** Which other health check handles a node. */
class PeerChecks {
  readonly #world: World;
  /** Names of other health checks by node that they have a CR for. */
  readonly #remediating = new Map<string, string>();

  constructor(world: World) {
    this.#world = world;
    for (const { nodeName, object } of world.remediations) {
      const owner = world.peers.find(({ check }) => isOwnedBy(object, check.metadata.uid));
      if (owner !== undefined) this.#remediating.set(nodeName, owner.check.metadata.name);
    }
  }

  of(nodeName: string, hasOwnRemediation: boolean): string | undefined {
    const { check, peers, starting } = this.#world;
    const remediating = this.#remediating.get(nodeName) ?? starting.get(nodeName);
    if (remediating !== undefined && remediating !== check.metadata.name) {
      return `NodeHealthCheck ${remediating} is remediating it`;
    }
    // A health check finishes what it has begun, even if another one is older.
    if (hasOwnRemediation) return undefined;
    const older = peers.find(
      (peer) =>
        "tracker" in peer.state.compiled &&
        peer.state.compiled.tracker.selects(nodeName) &&
        peer.check.metadata.deletionTimestamp === undefined &&
        readDisabled(peer.check.status) !== true &&
        isOlder(peer.check, check),
    );
    return older === undefined ? undefined : `the older NodeHealthCheck ${older.check.metadata.name} selects it too`;
  }
}

/** Control plane nodes in remediation by whatever health check: by their CRs, by any status, and by what is just starting. */
function controlPlaneBusy(world: World): Set<string> {
  const isControlPlaneNode = (name: string) => {
    const node = world.nodes.get({ name });
    return node !== undefined && isControlPlane(node);
  };
  const busy = new Set<string>();
  for (const { object, nodeName } of world.remediations) {
    if (isForControlPlane(object) || isControlPlaneNode(nodeName)) busy.add(nodeName);
  }
  for (const name of world.starting.keys()) if (isControlPlaneNode(name)) busy.add(name);
  for (const { check } of world.peers) {
    for (const { name, remediations = [] } of check.status.unhealthyNodes ?? []) {
      if (remediations.length > 0 && isControlPlaneNode(name)) busy.add(name);
    }
  }
  return busy;
}

function groupByNode(remediations: readonly Remediation[]): Map<string, Remediation[]> {
  const groups = new Map<string, Remediation[]>();
  for (const remediation of remediations) {
    const group = groups.get(remediation.nodeName);
    if (group === undefined) groups.set(remediation.nodeName, [remediation]);
    else group.push(remediation);
  }
  return groups;
}
