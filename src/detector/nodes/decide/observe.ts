import type { KubeObject } from "../../../kube/resource.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { RemediationObject } from "../../shared/model/remediation.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { TimePassed } from "../../shared/model/time-passed.ts";
import type { NodeAnnouncement } from "./decision.ts";
import type { SkippedDuration } from "./health.ts";

/** What this process has observed about one node, in addition to the objects that it watches. */
export interface NodeObservations {
  readonly deferral: Deferral | undefined;
  /** When the remediation lease that the agent holds must be renewed. */
  readonly leaseRenewAtMs: number | undefined;
}

export const NOTHING_OBSERVED_OF_NODE: NodeObservations = { deferral: undefined, leaseRenewAtMs: undefined };

/** The result of an action: what it has done, or why it did nothing. */
export type NodeActionEvent =
  | { type: "leaseTaken"; nodeName: string; renewAtMs: number }
  /** The agent is about to send the request to release the lease. */
  | { type: "leaseReleased"; nodeName: string }
  /** Another holder has the lease. A remediation in progress continues, and the agent requests the lease again. */
  | { type: "leaseRefused"; nodeName: string; deferral: Deferral }
  /** No remediation starts for now. */
  | { type: "deferred"; nodeName: string; deferral: Deferral }
  | {
      type: "created";
      node: Node;
      remediation: KubeObject;
      because: string;
      atMs: number;
      skipped: SkippedDuration | undefined;
    }
  | { type: "deleted"; remediation: RemediationObject }
  | { type: "markedOld" | "confirmationConsumed"; nodeName: string };

/**
 * An event that may change the observations of a node. The creation or deletion of a CR is none: watches show those.
 */
export type NodeCheckEvent =
  | Extract<NodeActionEvent, { nodeName: string }>
  /** The watch has reported another version of the node. */
  | { type: "nodeChanged" }
  /** The spec of the health check has changed. */
  | { type: "specChanged" }
  | TimePassed;

/** Adds an event to the observations of its node. */
export function observeNode(observations: NodeObservations, event: NodeCheckEvent): NodeObservations {
  const { deferral } = observations;
  switch (event.type) {
    case "leaseTaken":
      return { ...observations, leaseRenewAtMs: event.renewAtMs };
    case "leaseReleased":
      return { ...observations, leaseRenewAtMs: undefined };
    case "leaseRefused":
      return { deferral: event.deferral, leaseRenewAtMs: event.deferral.untilMs };
    case "deferred":
      return { ...observations, deferral: event.deferral };
    case "nodeChanged":
      return deferral?.cause === "staleView" ? withoutDeferral(observations) : observations;
    case "specChanged":
      return withoutDeferral(observations);
    case "timePassed":
      return deferral !== undefined && deferral.untilMs <= event.nowMs ? withoutDeferral(observations) : observations;
    case "markedOld":
    case "confirmationConsumed":
      return observations;
    default:
      return event satisfies never;
  }
}

function withoutDeferral(observations: NodeObservations): NodeObservations {
  return { ...observations, deferral: undefined };
}

/** The Kubernetes Events to record for the result of an action. */
export function announceNodeEvent(event: NodeActionEvent): NodeAnnouncement[] {
  if (event.type === "created") return announceCreation(event);
  return event.type === "deleted" ? [announceDeletion(event.remediation)] : [];
}

function announceCreation({ node, atMs, skipped }: Extract<NodeActionEvent, { type: "created" }>): NodeAnnouncement[] {
  const { name, uid } = node.metadata;
  const created = `Created remediation object for node ${name}`;
  const first: NodeAnnouncement = {
    key: `${uid}/created`,
    type: "Normal",
    reason: "RemediationCreated",
    note: created,
    about: node,
  };
  if (skipped === undefined) return [first];
  const seconds = Math.max(0, Math.round((skipped.durationUntilMs - atMs) / 1_000));
  const note = `Node ${name} is remediated ${seconds} s before its duration is over: ${skipped.proof}`;
  return [first, { key: `${uid}/skipped`, type: "Normal", reason: "DurationSkipped", note, about: node }];
}

function announceDeletion(remediation: RemediationObject): NodeAnnouncement {
  const { kind, metadata } = remediation;
  const note = `Deleted remediation CR of kind ${kind} with name ${metadata.name}`;
  return { key: `${metadata.uid}/deleted`, type: "Normal", reason: "RemediationRemoved", note, about: remediation };
}
