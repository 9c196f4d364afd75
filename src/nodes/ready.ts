import type { Node } from "../api/kubernetes/core.ts";
import { NODE_READY_IN_BOOT } from "../api/names/annotations.ts";

/** Whether Kubernetes reports the node as Ready. */
export function isReady(node: Node): boolean {
  return (node.status.conditions ?? []).some((condition) => condition.type === "Ready" && condition.status === "True");
}

/** The annotation of a new BareMetalRemediation that records in which boot its node is Ready. */
export function readinessRecord(node: Node | undefined): Record<string, string> {
  if (node === undefined) return {};
  const bootID = isReady(node) ? node.status.nodeInfo?.bootID : "";
  return bootID === undefined ? {} : { [NODE_READY_IN_BOOT]: bootID };
}
