import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../api/ironfence/fencing-target.ts";
import { OUT_OF_SERVICE, QUARANTINE } from "../../api/kubernetes/taints.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { keyOf } from "../../kube/watched.ts";
import { ClusterControllers } from "../clusters/cluster-controllers.ts";
import { LostBackups } from "./lost-backups.ts";
import { isReady } from "../../nodes/ready.ts";
import { isMarked, markPatch, signersOf } from "../machine/node-patches/marks.ts";
import type { RemediatorMetrics } from "../telemetry/metrics.ts";
import { getNode, patchNode } from "../clusters/node-writes.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import type { NodeId } from "../../nodes/subject.ts";
import { nodeKey, parseNodeKey, subjectOf } from "../../nodes/subject.ts";
import type { Backup } from "../machine/node-patches/node-backup.ts";
import { restorePatch } from "../machine/node-patches/node-backup.ts";
import { statusCondition } from "../machine/model/status.ts";
import { releaseTarget } from "../hosts/fencing-target/target-store.ts";
import type { HostOwner } from "../machine/model/facts/host-facts.ts";

// A remediation whose finalizer was removed by force, or that was restored without one, may disappear in the middle of
// its work. Its marks then stay, and its host may be off. This finds what such remediations have left.

export interface OrphanDeps {
  runtime: KubeRuntime;
  clusters: NodeClusters;
  targets: Watched<FencingTarget>;
  remediations: Watched<BareMetalRemediation>;
  /** Whether a remediation works on that node, or the session of a deleted one has not ended yet. */
  isServed(node: NodeId): boolean;
  /**
   * Calls `listener` when the session of a remediation of that node has ended. The watch may show the deletion earlier.
   */
  onSessionEnd(listener: (node: NodeId) => void): () => void;
  metrics: RemediatorMetrics;
}

/**
 * A cluster without a kubeconfig for this time counts as deleted, and its nodes too. If one of them still exists, the
 * agent finds its marks when it connects to the cluster again.
 */
const CLUSTER_GONE_MS = 600_000;

/** The most characters of labels in an Event. */
const LABELS_CHARS_MAX = 400;
/** Labels that a kubelet sets by itself. */
const KUBELET_LABELS = /^(?:beta\.)?kubernetes\.io\/(?:arch|hostname|os)$/u;

/** The time until a node that is still served is checked again. Usually a change triggers the check earlier. */
const SERVED_RECHECK_MS = 5_000;

/**
 * Handles nodes that a remediation has left unfinished, until `signal` aborts. All views must be synced. Such a node
 * is reported once. Its out-of-service taint is removed at once, because the host is no longer proven off. The
 * quarantine and the ownership of the host stay until the node is Ready, so that a restart forgets neither. No power
 * order is sent, because the strategy and the intent of the remediation that is gone are not known.
 */
export async function tendOrphans(deps: OrphanDeps, signal: AbortSignal): Promise<void> {
  const { clusters, targets, remediations } = deps;
  /** Nodes that were reported and are not Ready yet. */
  const left = new Set<string>();
  const lost = new LostBackups(deps.runtime.clock);
  /** Functions that release the hold on a cluster, by the node for which the cluster stays connected. */
  const holds = new Map<string, () => void>();
  const controller: ClusterControllers = new ClusterControllers(deps.runtime, {
    name: "orphans",
    concurrency: 1,
    reconcile: async (key, running) => {
      // If this check was requested during the previous one, the end of that one released the hold.
      hold(key);
      const again = await tend(deps, { left, lost }, key, running);
      if (again === undefined && !left.has(key)) {
        holds.get(key)?.();
        holds.delete(key);
      }
      return again;
    },
  });
  const hold = (key: string): void => {
    if (holds.has(key)) return;
    // `clusters.hold` reports all nodes of a connected cluster before it returns, and this node is among them. The
    // placeholder ends the recursion.
    holds.set(key, () => undefined);
    holds.set(key, clusters.hold(parseNodeKey(key).cluster));
  };
  const enqueue = (node: NodeId): void => {
    const key = nodeKey(node);
    hold(key);
    controller.enqueue(key);
  };
  const unsubscribe = [
    clusters.subscribe({
      onNode: (cluster, { object }) => {
        const node = { cluster, name: object.metadata.name };
        const key = nodeKey(node);
        if (isMarked(object) || left.has(key) || lost.get(key) !== undefined) enqueue(node);
      },
      onConnection: () => undefined,
    }),
    targets.subscribe(({ object: { spec, status } }) => {
      if (status?.owner !== undefined) enqueue({ cluster: spec.clusterRef, name: spec.nodeName });
    }),
    remediations.subscribe(({ type, object }) => {
      const { cluster, nodeName: name } = subjectOf(object);
      if (name === undefined) return;
      const owed = type === "deleted" ? owedBackup(object) : undefined;
      if (owed !== undefined) lost.keep(nodeKey({ cluster, name }), owed);
      if (type === "deleted" || left.has(nodeKey({ cluster, name }))) enqueue({ cluster, name });
    }),
    deps.onSessionEnd(enqueue),
  ];
  try {
    await controller.run(signal);
  } finally {
    for (const stop of unsubscribe) stop();
    for (const release of holds.values()) release();
  }
}

async function tend(
  deps: OrphanDeps,
  { left, lost }: { left: Set<string>; lost: LostBackups },
  key: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const { runtime, clusters, metrics } = deps;
  const id = parseNodeKey(key);
  const cluster = clusters.of(id.cluster);
  const settle = (isLeft: boolean): void => {
    if (isLeft) left.add(key);
    else left.delete(key);
    metrics.orphaned(left.size);
  };
  if (deps.isServed(id)) {
    settle(false);
    const watched = cluster.nodes.get({ name: id.name });
    return watched !== undefined && isMarked(watched) ? { requeueAfterMs: SERVED_RECHECK_MS } : undefined;
  }
  if (runtime.clock.nowMs() - (cluster.missingSinceMs ?? Infinity) >= CLUSTER_GONE_MS) {
    settle(false);
    return undefined;
  }
  // Watches lag behind each other, so everything is read live from here on.
  const node = await getNode(cluster.runtime.client, id.name, signal);
  const backup = lost.get(key);
  if (backup !== undefined && node !== undefined && node.metadata.uid !== backup.nodeUID) {
    await patchNode(cluster.runtime.client, id.name, (present) => restorePatch(present, backup), signal);
    runtime.logger.warn({ node: key }, "restored the saved fields of a node whose remediation is gone");
    lost.drop(key);
  }
  const owned = await ownedTargets(deps, id, signal);
  const signers = node === undefined ? [] : signersOf(node, id.cluster);
  const gone = await withoutRemediation(runtime, [...signers, ...owned.map(({ owner }) => owner.uid)], signal);
  if (gone.size === 0) {
    settle(false);
    return undefined;
  }
  const ready = node !== undefined && isReady(node);
  for (const uid of gone) await takeMarksOff(cluster.runtime, id.name, uid, signal);
  if (ready) {
    for (const { target, owner } of owned) {
      if (gone.has(owner.uid)) await releaseTarget(runtime, refOf(target), owner, undefined, signal);
    }
  }
  if (!left.has(key)) {
    // Events are recorded in the cluster of the remediation. The Node is only there if it belongs to the same cluster.
    const regarding = (id.cluster === undefined ? node : undefined) ?? owned[0]?.target;
    report(runtime, key, regarding, ready, [...gone], backup);
  }
  settle(!ready);
  return undefined;
}

/** The targets of a node that a remediation owns, read live. */
async function ownedTargets(
  { runtime, targets }: OrphanDeps,
  node: NodeId,
  signal: AbortSignal,
): Promise<{ target: FencingTarget; owner: HostOwner }[]> {
  const owned: { target: FencingTarget; owner: HostOwner }[] = [];
  for (const watched of targets.values()) {
    const { clusterRef: cluster, nodeName: name } = watched.spec;
    if (nodeKey({ cluster, name }) !== nodeKey(node) || watched.status?.owner === undefined) continue;
    try {
      const target = await runtime.client.get<FencingTarget>(FENCING_TARGETS, keyOf(watched), signal);
      const owner = target.status?.owner;
      if (owner?.kind === BARE_METAL_REMEDIATIONS.kind) owned.push({ target, owner });
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
    }
  }
  return owned;
}

/** The `uids` for which a live list shows no remediation, in any state. */
async function withoutRemediation(
  { client }: KubeRuntime,
  uids: readonly string[],
  signal: AbortSignal,
): Promise<Set<string>> {
  const gone = new Set(uids);
  if (gone.size === 0) return gone;
  const { items } = await client.list<KubeObject>(BARE_METAL_REMEDIATIONS, {}, signal);
  for (const { metadata } of items) gone.delete(metadata.uid);
  return gone;
}

/** Removes the marks of this remediation: the taint at once, and the quarantine if the live node is Ready. */
async function takeMarksOff(runtime: KubeRuntime, nodeName: string, uid: string, signal: AbortSignal): Promise<void> {
  const patchFor: Parameters<typeof patchNode>[2] = (node) =>
    markPatch(node, { outOfService: "off", ...(isReady(node) && { quarantine: "off" }) }, "", uid);
  await patchNode(runtime.client, nodeName, patchFor, signal);
}

function refOf({ kind, metadata }: FencingTarget): { kind: string; namespace: string; name: string; uid: string } {
  const { namespace = "", name, uid } = metadata;
  return { kind, namespace, name, uid };
}

function report(
  runtime: KubeRuntime,
  nodeName: string,
  regarding: KubeObject | undefined,
  ready: boolean,
  uids: readonly string[],
  backup: Backup | undefined,
): void {
  const what = `BareMetalRemediation ${uids.join(", ")} of node ${nodeName} was deleted and its changes were not undone`;
  const next = ready
    ? "the node is Ready: its marks are removed and its host is released"
    : `the host may be OFF, and its next boot may be from the network: check both (ironfence power status), then power it on or remediate the node again; the ${OUT_OF_SERVICE.key} taint of that remediation is removed, ${QUARANTINE.key} stays until the node is Ready`;
  runtime.logger.error({ node: nodeName, uids, ready, next }, "a remediation is gone without an undo");
  if (regarding === undefined) return;
  const saved = backup === undefined ? "" : `; ${labelsOf(nodeName, backup)}`;
  const note = `${what}${saved}; ${next}`;
  runtime.events.record({ regarding, type: "Warning", reason: "RemediationLost", action: "Tend", note });
}

/**
 * The backup of a deleted Node that may still join again; undefined if its Machine was deleted, because it then never
 * joins.
 */
function owedBackup({ status = {} }: BareMetalRemediation): Backup | undefined {
  const isAwaited = statusCondition(status, "PermanentNodeDeletionExpected")?.status === "True";
  return isAwaited && status.replacement?.deletedAt === undefined ? status.backup : undefined;
}

/**
 * A text for the operator: the labels that the deleted Node gets back when it joins again, and the command to use if
 * this agent ends before that.
 */
function labelsOf(nodeName: string, { labels = {} }: Backup): string {
  const words = Object.entries(labels)
    .filter(([label]) => !KUBELET_LABELS.test(label))
    .map(([label, value]) => `${label}=${value}`);
  const text = words.join(" ").slice(0, LABELS_CHARS_MAX);
  return `its Node was deleted; this agent restores its labels, annotations and taints when it joins again; if the agent ends before that, run: kubectl label node ${nodeName} ${text}`;
}
