import type { BareMetalRemediationStatus } from "../../../api/ironfence/bare-metal-remediation.ts";
import { serverTimeMs } from "../../../kube/server-time.ts";
import type { KubeletLeases } from "../../../nodes/leases/kubelet-leases.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { NodeCluster } from "../../clusters/node-clusters.ts";
import type { LeaseVersion } from "../../machine/model/decision/strategy.ts";
import type { Now } from "../../machine/model/facts/snapshot.ts";
import type { Downtime } from "../../telemetry/metrics.ts";

/** What the downtime of a node depends on. */
interface DownNode {
  readonly nodeName: string | undefined;
  readonly cluster: NodeCluster;
  readonly provenLease: LeaseVersion | undefined;
  readonly status: BareMetalRemediationStatus;
  now(): Now;
}

/** How long the node of a remediation has been down, for metrics. */
export class NodeDowntime {
  /**
   * When the node left Ready before it was fenced, by the clock of its API server; undefined if this process has not
   * seen it.
   */
  #downSinceMs: number | undefined;
  /** When the lease was last renewed before an early remediation, by the monotonic clock. */
  #silentSinceMs: number | undefined;

  /**
   * The downtime until now; undefined if this process has not seen the beginning, or if the node was Ready and renewed
   * its lease when it was fenced.
   *
   * @param leases of all nodes, if they are watched.
   */
  measure(node: DownNode, leases: Pick<KubeletLeases, "of"> | undefined): Downtime | undefined {
    const { nodeName, cluster, provenLease, status } = node;
    if (nodeName === undefined) return undefined;
    if (provenLease !== undefined) {
      const lease = leases?.of(nodeName);
      const isProven = lease?.uid === provenLease.uid && lease.resourceVersion === provenLease.resourceVersion;
      // Without gaps, this process has seen no renewal: `sinceMs` is then the time at which it first saw the lease.
      if (isProven && lease.gapsMs.length > 0) this.#silentSinceMs = lease.sinceMs;
      if (this.#silentSinceMs === undefined) return undefined;
      return { since: "renewal", seconds: (node.now().monotonicMs - this.#silentSinceMs) / 1_000 };
    }
    const watched = cluster.nodes.get({ name: nodeName });
    const ready = watched?.status.conditions?.find(({ type }) => type === "Ready");
    const sinceMs = ready?.status === "True" ? undefined : parseTimeMs(ready?.lastTransitionTime);
    // A node that was Ready when its fence began left Ready because of the fence.
    const isOfFence = status.attempt !== undefined && (sinceMs ?? 0) > (parseTimeMs(status.attempt.startedAt) ?? 0);
    if (!isOfFence) this.#downSinceMs ??= sinceMs;
    if (this.#downSinceMs === undefined) return undefined;
    return {
      since: "notReady",
      seconds: Math.max(0, serverTimeMs(cluster.runtime) - this.#downSinceMs) / 1_000,
    };
  }
}
