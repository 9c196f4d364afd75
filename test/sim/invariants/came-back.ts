import { CONFIRM } from "../../../src/api/names/annotations.ts";
import type { ConfigMap, Node } from "../../../src/api/kubernetes/core.ts";
import { RESTORED_BY_VELERO } from "../../../src/api/names/labels.ts";
import { stops } from "../../../src/api/ironfence/stop-switch.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { isReady } from "../../../src/nodes/ready.ts";
import { parseTimeMs } from "../../../src/runtime/time.ts";
import type { Invariant } from "./facts.ts";

// Rules about the moment of an order: what the cluster reported by then must have been read.

/**
 * How long what is stored may be unknown to an order: what an order rests on is looked at no more than 5 s before it is
 * sent, by a clock that may run a fifth too slowly. The rest is the time that the read and the order take.
 */
export const ORDER_GRACE_MS = 10_000;

/**
 * S11. A node that has come back, by itself or by a person, is not powered off for the outage that is over: one that is
 * Ready in another boot than when the remediation began, unless it was Ready then. A host that is off already loses
 * nothing by an order, whatever is still stored of its node: an order that took effect late may have just turned it
 * off.
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
    const isReturned = begun.bootID !== undefined && ready.bootID !== begun.bootID;
    const forMs = atMs - ready.sinceMs;
    return isReturned && forMs > ORDER_GRACE_MS
      ? `${host} was ordered off although node ${begun.node} has been Ready in a new boot for ${forMs} ms`
      : undefined;
  },
};

/**
 * S12. The stop switch holds power-offs, and maintenance of a target every order, from the moment they are stored,
 * whatever a watch shows. A host is not left off for a target that cannot be read.
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
 * S13. A remediation that a restore has brought back, or that no agent has read for ten minutes, powers off no node
 * that was Ready when it began, unless a person has confirmed it or a health check lists the node as unhealthy.
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

/** How old a remediation is, by the true time, that comes back without status. */
const STALE_MS = 600_000;

/** Whether a remediation that has no status yet is of long ago, or was restored. */
export function isStale({ metadata }: KubeObject, epochMs: number): boolean {
  const createdAtMs = parseTimeMs(metadata.creationTimestamp) ?? epochMs;
  return metadata.labels?.[RESTORED_BY_VELERO] !== undefined || epochMs - createdAtMs >= STALE_MS;
}

/** The key of the stop switch among what holds orders; the others are names of targets. */
export const PAUSED = "the stop switch";

/** Whether a stop switch as it is stored stops, until its own end (`pauseEndMs`). */
export function isPaused({ data }: ConfigMap): boolean {
  return stops(data, 0);
}

/** When a pause ends by itself; never where it does not say. */
export function pauseEndMs({ data }: ConfigMap): number {
  return parseTimeMs(data?.["until"]) ?? Infinity;
}

/** The boot in which a node is Ready; undefined where it is not. */
export function readyBoot(node: Node): string | undefined {
  return isReady(node) ? (node.status.nodeInfo?.bootID ?? "unknown") : undefined;
}
