import type { KubeObject } from "../../../kube/resource.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { RemediationObject } from "../../shared/model/remediation.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { NodeAnnouncement } from "../decide/decision.ts";
import type { SkippedDuration } from "../decide/health.ts";
import type { NodeCheckState } from "./check-state.ts";

/** The result of an action: what it has done, or why it did nothing. */
export type NodeActionEvent =
  | { type: "leaseTaken"; nodeName: string; renewAtMs: number }
  /** The request to release it is being sent. */
  | { type: "leaseReleased"; nodeName: string }
  /** Another holder has the lease. A remediation that is in progress continues, and the lease is requested again. */
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

/** Adds the result of an action to the state. @returns the Kubernetes Events to record for it. */
export function observeNodeCheck(
  { deferrals, leaseRenewals }: Pick<NodeCheckState, "deferrals" | "leaseRenewals">,
  event: NodeActionEvent,
): NodeAnnouncement[] {
  switch (event.type) {
    case "leaseTaken":
      leaseRenewals.set(event.nodeName, event.renewAtMs);
      return [];
    case "leaseReleased":
      leaseRenewals.delete(event.nodeName);
      return [];
    case "leaseRefused":
      leaseRenewals.set(event.nodeName, event.deferral.untilMs);
      deferrals.set(event.nodeName, event.deferral);
      return [];
    case "deferred":
      deferrals.set(event.nodeName, event.deferral);
      return [];
    case "created":
      return announceCreation(event);
    case "deleted":
      return [announceDeletion(event.remediation)];
    case "markedOld":
    case "confirmationConsumed":
      return [];
    default:
      return event satisfies never;
  }
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
