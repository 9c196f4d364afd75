import { parseTimeMs } from "../../runtime/time.ts";
import type { Node } from "./core.ts";

/** One outage of a node: it ends with the Node, with another boot, and whenever the Ready condition moves. */
export interface Outage {
  nodeUID: string;
  bootID?: string | undefined;
  /** Transition time of Ready, as the Node has it: compared as text, so that no clock matters. */
  notReadySince: string;
}

/** The outage that a node is in; undefined while it is Ready, and if it does not show since when it is not. */
export function outageOf(node: Node | undefined): Outage | undefined {
  const ready = node?.status.conditions?.find(({ type }) => type === "Ready");
  const isAway = ready?.status === "False" || ready?.status === "Unknown";
  if (node === undefined || !isAway || parseTimeMs(ready.lastTransitionTime) === undefined) return undefined;
  const { bootID } = node.status.nodeInfo ?? {};
  return {
    nodeUID: node.metadata.uid,
    notReadySince: ready.lastTransitionTime ?? "",
    ...(bootID !== undefined && { bootID }),
  };
}

/** Whether both are one outage of one node. */
export function isSameOutage(a: Outage | undefined, b: Outage | undefined): boolean {
  return a !== undefined && a.nodeUID === b?.nodeUID && a.bootID === b.bootID && a.notReadySince === b.notReadySince;
}
