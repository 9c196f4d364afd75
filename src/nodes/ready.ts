import type { Node } from "../api/kubernetes/core.ts";

/** Whether Kubernetes reports the node as Ready. */
export function isReady(node: Node): boolean {
  return (node.status.conditions ?? []).some((condition) => condition.type === "Ready" && condition.status === "True");
}
