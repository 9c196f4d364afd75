import { LEASES } from "../../api/core-types.ts";
import type { Lease, Node } from "../../api/core.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { parseTimeMs } from "../../runtime/time.ts";

// Signs of life that a node itself gives.

/** Whether the node controller holds the node for healthy. */
export function isReady(node: Node | undefined): boolean {
  return node?.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/** Whether the node's kubelet has renewed its lease within the time that the lease lasts. */
export async function hasFreshLease(runtime: KubeRuntime, nodeName: string, signal: AbortSignal): Promise<boolean> {
  try {
    const { spec } = await runtime.client.get<Lease>(LEASES, { namespace: "kube-node-lease", name: nodeName }, signal);
    const renewedMs = parseTimeMs(spec.renewTime);
    const { leaseDurationSeconds } = spec;
    if (renewedMs === undefined || leaseDurationSeconds === undefined) return false;
    return Math.abs(runtime.clock.nowMs() - renewedMs) <= leaseDurationSeconds * 1_000;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return false;
    throw error;
  }
}
