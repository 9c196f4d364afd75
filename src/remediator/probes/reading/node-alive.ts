import { LEASES, NODE_LEASE_NAMESPACE } from "../../../api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../../api/kubernetes/core.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { parseTimeMs } from "../../../runtime/time.ts";

// Whether the kubelet of a node is alive.

/** Whether the node's kubelet has renewed its lease within the time that the lease lasts. */
export async function hasFreshLease(runtime: KubeRuntime, nodeName: string, signal: AbortSignal): Promise<boolean> {
  const lease = await readLease(runtime, nodeName, signal);
  return lease !== undefined && Math.abs(runtime.clock.nowMs() - lease.renewedMs) <= lease.durationMs;
}

/**
 * Whether the kubelet of a node that is not Ready is alive nevertheless: it renews its lease and reports that it is
 * not Ready, or it has renewed its lease after the cluster had set Ready=Unknown.
 */
export async function showsLife(runtime: KubeRuntime, node: Node, signal: AbortSignal): Promise<boolean> {
  const ready = node.status.conditions?.find(({ type }) => type === "Ready");
  const { name } = node.metadata;
  if (ready?.status !== "Unknown") return hasFreshLease(runtime, name, signal);
  const lease = await readLease(runtime, name, signal);
  return lease !== undefined && lease.renewedMs > (parseTimeMs(ready.lastTransitionTime) ?? -Infinity);
}

async function readLease(
  runtime: KubeRuntime,
  name: string,
  signal: AbortSignal,
): Promise<{ renewedMs: number; durationMs: number } | undefined> {
  try {
    const { spec } = await runtime.client.get<Lease>(LEASES, { namespace: NODE_LEASE_NAMESPACE, name }, signal);
    const renewedMs = parseTimeMs(spec.renewTime);
    const { leaseDurationSeconds } = spec;
    if (renewedMs === undefined || leaseDurationSeconds === undefined) return undefined;
    return { renewedMs, durationMs: leaseDurationSeconds * 1_000 };
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
