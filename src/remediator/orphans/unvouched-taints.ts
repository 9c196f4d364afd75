import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../api/kubernetes/taints.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { ClusterControllers } from "../clusters/cluster-controllers.ts";
import {
  isSignedForNothing,
  isTaintOfFirstVersion,
  markPatch,
  signedTaint,
  signersOf,
} from "../machine/node-patches/marks.ts";
import type { RemediatorMetrics } from "../telemetry/metrics.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import { patchNode } from "../clusters/node-writes.ts";
import type { ObservedPower } from "../machine/model/facts/observations.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import type { NodeId } from "../../nodes/subject.ts";
import { clusterKey, nodeKey, parseNodeKey, subjectOf } from "../../nodes/subject.ts";
import { POWER_PROOF_AGE_MAX_MS, PROOF_LAPSED_MS } from "../machine/model/decision/timings.ts";

// The out-of-service taint may be on a node only while a proof shows that the host is off. A remediation renews its
// proof itself for as long as it can continue. All other out-of-service taints of ironfence are removed here. Only the
// node has to be readable for that.

export interface UnvouchedDeps {
  runtime: KubeRuntime;
  clusters: NodeClusters;
  remediations: Watched<BareMetalRemediation>;
  /** What each session of this process has read about the power of that node's host. */
  powerOf(node: NodeId): Iterable<ObservedPower>;
  /** Called when our taint was removed from the node. */
  onTakenOff(node: NodeId): void;
  metrics: RemediatorMetrics;
}

/** The longest backoff after a failed write: the taint has to be off soon. */
const RETRY_MAX_MS = 2_000;

/** The time until a taint that was removed is checked again. Usually the watch shows the change earlier. */
const RECHECK_MS = 1_000;

/**
 * How many nodes of a cluster are checked at the same time, so that a slow answer for one does not delay the others.
 */
const CONCURRENCY = 50;

/** How long the first try may take, so that a call that hangs ends soon. Each further try has twice the time. */
const TRY_MS = 3_000;
const TRY_MAX_MS = 24_000;

/**
 * Takes our out-of-service taint off each node whose host this process has not proven off, until `signal` aborts. A new
 * process first has the time that a proof lasts to make its own. No view has to be synced: a node is found by its
 * taint, or by a remediation whose status says that it may have one.
 */
export async function tendUnvouchedTaints(deps: UnvouchedDeps, signal: AbortSignal): Promise<void> {
  const { runtime, clusters, remediations } = deps;
  /** Until when a taint may be on a node without a proof, by node. */
  const grace = new Map<string, number>();
  /** Nodes that may have a taint according to a stored status, and that were not read live yet. */
  const suspects = new Set<string>();
  /** The time that the next try may take, by node, after a failed try. */
  const tryMs = new Map<string, number>();
  const controller = new ClusterControllers(runtime, {
    name: "unvouched-taints",
    concurrency: CONCURRENCY,
    maxBackoffMs: RETRY_MAX_MS,
    reconcile: async (key, running) => {
      const id = parseNodeKey(key);
      const watched = clusters.of(id.cluster).nodes.get({ name: id.name });
      if (watched !== undefined && isSignedForNothing(watched, id.cluster)) await takeLeftOver(deps, id, running);
      const mayBear = isOurs(watched, id.cluster) || suspects.has(key);
      if (!mayBear) {
        grace.delete(key);
        tryMs.delete(key);
        return undefined;
      }
      const nowMs = runtime.clock.monotonicMs();
      const vouchedUntilMs = provenUntilMs(deps.powerOf(id));
      const dueMs = vouchedUntilMs ?? grace.get(key) ?? nowMs + POWER_PROOF_AGE_MAX_MS;
      grace.set(key, dueMs);
      if (nowMs < dueMs) return { requeueAfterMs: dueMs - nowMs };
      if (clusters.of(id.cluster).problem !== undefined) return undefined;
      const withinMs = tryMs.get(key) ?? TRY_MS;
      tryMs.set(key, Math.min(withinMs * 2, TRY_MAX_MS));
      await withDeadline(
        runtime.clock,
        `removing the out-of-service taint from node ${key}`,
        withinMs,
        running,
        (signal) => takeOff(deps, id, signal),
      );
      tryMs.delete(key);
      suspects.delete(key);
      return isOurs(watched, id.cluster) ? { requeueAfterMs: RECHECK_MS } : undefined;
    },
  });
  const unsubscribe = [
    clusters.subscribe({
      onNode: (cluster, { object }) => {
        const node = { cluster, name: object.metadata.name };
        if (isOurs(object, cluster) || isSignedForNothing(object, cluster) || grace.has(nodeKey(node)))
          controller.enqueue(nodeKey(node));
      },
      onConnection: () => {
        for (const key of suspects) controller.enqueue(key);
      },
    }),
    remediations.subscribe(({ type, object }) => {
      const { cluster, nodeName: name } = subjectOf(object);
      if (type !== "added" || name === undefined || !mayHaveTainted(object)) return;
      const key = nodeKey({ cluster, name });
      suspects.add(key);
      controller.enqueue(key);
    }),
  ];
  try {
    await controller.run(signal);
  } finally {
    for (const stop of unsubscribe) stop();
  }
}

/** The time until which the newest proof of a host holds; undefined if there is no proof. */
function provenUntilMs(readings: Iterable<ObservedPower>): number | undefined {
  const until = [...readings].flatMap(({ provenAtMs, offAtMs }) =>
    provenAtMs === undefined || offAtMs === undefined ? [] : [offAtMs + POWER_PROOF_AGE_MAX_MS + PROOF_LAPSED_MS],
  );
  return until.length === 0 ? undefined : Math.max(...until);
}

/** Whether the node has our out-of-service taint, put on by a remediation of its own cluster. */
function isOurs(node: Node | undefined, cluster: ClusterRef | undefined): boolean {
  return node !== undefined && signedTaint(node) && signersOf(node, cluster).length > 0;
}

/**
 * Removes an ownership taint without an out-of-service taint. With it, an out-of-service taint that a user adds later
 * would look like ours.
 */
async function takeLeftOver({ runtime, clusters }: UnvouchedDeps, id: NodeId, signal: AbortSignal): Promise<void> {
  const { runtime: nodeRuntime, problem } = clusters.of(id.cluster);
  if (problem !== undefined) return;
  const patchFor: Parameters<typeof patchNode>[2] = (node) =>
    isSignedForNothing(node, id.cluster) ? markPatch(node, { outOfService: "off" }, "") : [];
  await patchNode(nodeRuntime.client, id.name, patchFor, signal);
  runtime.logger.info({ node: nodeKey(id) }, "removed an ownership taint without an out-of-service taint");
}

function mayHaveTainted({ status }: BareMetalRemediation): boolean {
  return status?.attempt !== undefined && !isFinal(status.phase);
}

async function takeOff(deps: UnvouchedDeps, id: NodeId, signal: AbortSignal): Promise<void> {
  const { runtime, clusters, remediations, metrics } = deps;
  const { runtime: nodeRuntime } = clusters.of(id.cluster);
  let taken: Node | undefined;
  const patchFor: Parameters<typeof patchNode>[2] = (node) => {
    // A proof may have been made while the node was being read.
    const isVouched = (provenUntilMs(deps.powerOf(id)) ?? -Infinity) > runtime.clock.monotonicMs();
    const isOfFirstVersion = [...remediations.values()].some((stored) => isTaintOfFirstVersion(stored, node));
    if (isVouched || !(isOurs(node, id.cluster) || isOfFirstVersion)) return [];
    const putOn = { outOfService: isOfFirstVersion, quarantine: false };
    const patch = markPatch(node, { outOfService: "off" }, "", undefined, putOn);
    if (patch.length > 0) taken = node;
    return patch;
  };
  // A live read may fail, so the watched node is used for the first try if it shows our taint. A watch that shows none
  // may be late.
  const watched = clusters.of(id.cluster).nodes.get({ name: id.name });
  const known = isOurs(watched, id.cluster) ? watched : undefined;
  await patchNode(nodeRuntime.client, id.name, patchFor, signal, known);
  if (taken === undefined) return;
  deps.onTakenOff(id);
  metrics.unvouchedTaint();
  const signers = signersOf(taken, id.cluster);
  const remediation = [...remediations.values()].find(({ metadata }) => signers.includes(metadata.uid));
  const note = `the ${OUT_OF_SERVICE.key} taint is removed from node ${nodeKey(id)}: it was put on by BareMetalRemediation ${signers.join(", ")}, and this agent has no proof that the host is off`;
  runtime.logger.warn({ node: nodeKey(id), signers }, "an unvouched taint is removed");
  // Events are recorded in the cluster of the remediation. The Node is only there if it belongs to the same cluster.
  const regarding = remediation ?? (clusterKey(id.cluster) === "" ? taken : undefined);
  if (regarding === undefined) return;
  runtime.events.record({ regarding, type: "Warning", reason: "TaintNotVouchedFor", action: "Tend", note });
}
