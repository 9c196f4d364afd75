import type { KubeletLease } from "../../../nodes/leases/kubelet-leases.ts";

/** What the detector knows about a node whose host may be proven off before the duration is over. */
export interface EarlyFacts {
  /** The lease of the node, as this process has observed it; undefined until the leases of all nodes are read. */
  lease: KubeletLease | undefined;
  /** Now, on the monotonic clock. */
  monotonicMs: number;
  /** Now, by the clock of the API server that is furthest behind. */
  serverNowMs: number;
  /** Whether the renewal of another control plane node is overdue. */
  otherControlPlaneOverdue: boolean;
}
