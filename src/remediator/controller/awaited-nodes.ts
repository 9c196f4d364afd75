import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import { isNodeAwaited } from "../machine/states/undoing.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import { clusterKey, subjectOf } from "../../nodes/subject.ts";

/**
 * Keeps a cluster connected while a remediation with a verdict waits for its deleted Node to join again. The agent then
 * sees the Node return and restores its labels.
 */
export class AwaitedNodes {
  readonly #clusters: Pick<NodeClusters, "hold">;
  readonly #held = new Map<string, { cluster: string; release: () => void }>();

  constructor(clusters: Pick<NodeClusters, "hold">) {
    this.#clusters = clusters;
  }

  /**
   * Call it after each reconcile of a remediation, before its session releases the cluster. Undefined stands for a
   * remediation that was deleted.
   */
  follow(key: string, remediation: BareMetalRemediation | undefined): void {
    const isAwaited =
      remediation !== undefined &&
      remediation.metadata.deletionTimestamp === undefined &&
      isFinal(remediation.status?.phase) &&
      isNodeAwaited({ status: remediation.status ?? {} });
    const ref = isAwaited ? subjectOf(remediation).cluster : undefined;
    const previous = this.#held.get(key);
    const cluster = clusterKey(ref);
    if (cluster === (previous?.cluster ?? "")) return;
    this.#held.delete(key);
    if (cluster !== "") this.#held.set(key, { cluster, release: this.#clusters.hold(ref) });
    previous?.release();
  }

  /** The keys of remediations that wait for a Node of that cluster. */
  in(cluster: ClusterRef): string[] {
    return [...this.#held].flatMap(([key, held]) => (held.cluster === clusterKey(cluster) ? [key] : []));
  }

  close(): void {
    for (const { release } of this.#held.values()) release();
    this.#held.clear();
  }
}
