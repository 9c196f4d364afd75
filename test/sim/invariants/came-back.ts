import { CONFIRM } from "../../../src/api/names/annotations.ts";
import type { ConfigMap, Node } from "../../../src/api/kubernetes/core.ts";
import { RESTORED_BY_VELERO } from "../../../src/api/names/labels.ts";
import { stops } from "../../../src/api/ironfence/stop-switch.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { isReady } from "../../../src/nodes/ready.ts";
import { parseTimeMs } from "../../../src/runtime/time.ts";
import type { Invariant } from "./facts.ts";

// Rules about the time of an order: the agent must have read what the cluster reported before.

/**
 * How old the state may be on which an order depends. It is read at most 5 s before the order is sent, by a clock that
 * may run a fifth too slowly. The rest is the time of the read and of the order.
 */
export const ORDER_GRACE_MS = 10_000;

/**
 * S11. A node that has come back is not powered off for the past outage. It has come back if it was not Ready when the
 * remediation was created or began, and is Ready: in another boot than then, or since before an agent began it. An
 * order to a host that is already off is allowed: an order that took effect late may just have turned it off.
 */
export const noOffOfReturned: Invariant = {
  name: "S11",
  says: "no power-off of a node that is Ready in a boot after the outage, unless it was Ready when the remediation began",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.order !== "ForceOff" || step.record.outcome !== "Started")
      return undefined;
    const { atMs, host, remediation } = step.record;
    const begun = facts.begun.get(remediation ?? "");
    const ready = facts.readySince.get(begun?.node ?? "");
    if (begun === undefined || begun.wasReady || ready === undefined) return undefined;
    if (facts.hosts.get(host)?.power === "Off") return undefined;
    const isRebooted = begun.bootID !== undefined && ready.bootID !== begun.bootID;
    const wasBackBefore = ready.sinceMs + ORDER_GRACE_MS < begun.atMs;
    const forMs = atMs - ready.sinceMs;
    if (forMs <= ORDER_GRACE_MS || !(isRebooted || wasBackBefore)) return undefined;
    const boot = isRebooted ? " in a new boot" : " again";
    return `${host} was ordered off although node ${begun.node} has been Ready${boot} for ${forMs} ms`;
  },
};

/**
 * S12. From the time when they are stored, the stop switch holds power-offs and maintenance of a target holds every
 * order, whatever a watch shows. A host does not stay off because its target cannot be read.
 */
export const holdsFromStored: Invariant = {
  name: "S12",
  says: "pause and maintenance hold from the moment they are stored",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.outcome === "Refused") return undefined;
    const { atMs, host, order } = step.record;
    const unreadMs = facts.hamperedAtMs("get fencingtargets") ?? -Infinity;
    if (order === "On" && atMs - unreadMs <= ORDER_GRACE_MS) return undefined;
    const holds = order === "ForceOff" ? [PAUSED, host] : [host];
    for (const hold of holds) {
      const sinceMs = facts.heldSinceMs.get(hold);
      if (sinceMs !== undefined && atMs - sinceMs > ORDER_GRACE_MS) {
        const what = hold === PAUSED ? "the stop switch is on" : "its target is in maintenance";
        return `${host} was ordered ${order} although ${what} for ${atMs - sinceMs} ms`;
      }
    }
    return undefined;
  },
};

/**
 * S13. A remediation that a restore has created again, or that no agent has read for ten minutes, powers off no node
 * that was Ready when it began, unless a user has confirmed it or a health check lists the node as unhealthy.
 */
export const noOffForStale: Invariant = {
  name: "S13",
  says: "a remediation that came back without status powers no Ready node off unless that is confirmed",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.order !== "ForceOff" || facts.isServerClockSet) return undefined;
    const { host, remediation: uid = "" } = step.record;
    const { isStale, wasReady, node } = facts.begun.get(uid) ?? {};
    if (isStale !== true || wasReady !== true) return undefined;
    const { annotations = {} } = facts.remediations.get(uid)?.metadata ?? {};
    const isListed = [...facts.checks.values()].some(({ status }) =>
      status?.unhealthyNodes?.some(({ name }) => name === node),
    );
    return annotations[CONFIRM] === uid || isListed
      ? undefined
      : `${host} was ordered off, Ready as its node was, for a remediation that came back without status`;
  },
};

/** The age, by the real time, from which a remediation without status is stale. */
const STALE_MS = 600_000;

/** Whether a remediation without status is old or was restored. */
export function isStale({ metadata }: KubeObject, epochMs: number): boolean {
  const createdAtMs = parseTimeMs(metadata.creationTimestamp) ?? epochMs;
  return metadata.labels?.[RESTORED_BY_VELERO] !== undefined || epochMs - createdAtMs >= STALE_MS;
}

/** The key of the stop switch in the map of holds. The other keys are names of targets. */
export const PAUSED = "the stop switch";

/** Whether a stored stop switch is on. `pauseEndMs` is its end. */
export function isPaused({ data }: ConfigMap): boolean {
  return stops(data, 0);
}

/** The end of a pause; Infinity if it has none. */
export function pauseEndMs({ data }: ConfigMap): number {
  return parseTimeMs(data?.["until"]) ?? Infinity;
}

/** The boot in which a node is Ready; undefined if it is not Ready. */
export function readyBoot(node: Node): string | undefined {
  return isReady(node) ? (node.status.nodeInfo?.bootID ?? "unknown") : undefined;
}
