import { parseTimeMs } from "../../runtime/time.ts";
import type { Node, NodeCondition } from "./core.ts";

/** One outage of a node. It ends when the Node is deleted, boots again, or changes its Ready condition. */
export interface Outage {
  nodeUID: string;
  bootID?: string | undefined;
  /** The transition time of Ready in the Node, compared as text, so that no clock is needed. */
  notReadySince: string;
}

/** The message of Ready=False from a kubelet that shuts its host down in order (kubelet, nodeshutdown manager). */
export const NODE_SHUTTING_DOWN = "node is shutting down";

/**
 * Whether the kubelet has posted Ready=False because it shuts its host down: a user or a program wants the host to be
 * off.
 */
export function isShuttingDown({ type, status, message }: NodeCondition): boolean {
  return type === "Ready" && status === "False" && message?.includes(NODE_SHUTTING_DOWN) === true;
}

/**
 * The outage that a node is in. Undefined if the node is Ready, if it shuts its host down, or if the time at which it
 * became not Ready is missing.
 */
export function outageOf(node: Node | undefined): Outage | undefined {
  const ready = node?.status.conditions?.find(({ type }) => type === "Ready");
  const isAway = ready?.status === "False" || ready?.status === "Unknown";
  if (node === undefined || !isAway || isShuttingDown(ready) || parseTimeMs(ready.lastTransitionTime) === undefined)
    return undefined;
  const { bootID } = node.status.nodeInfo ?? {};
  return {
    nodeUID: node.metadata.uid,
    notReadySince: ready.lastTransitionTime ?? "",
    ...(bootID !== undefined && { bootID }),
  };
}

/** Whether both are the same outage of the same node. */
export function isSameOutage(a: Outage | undefined, b: Outage | undefined): boolean {
  return a !== undefined && a.nodeUID === b?.nodeUID && a.bootID === b.bootID && a.notReadySince === b.notReadySince;
}
