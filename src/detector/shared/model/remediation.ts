import { isDeepStrictEqual } from "node:util";
import { NHC_TIMED_OUT, NODE_NAME, REFUSED, SERVED_BY, TEMPLATE_NAME } from "../../../api/names/annotations.ts";
import { IS_CONTROL_PLANE_NODE } from "../../../api/names/labels.ts";
import { METAL3_REMEDIATION_KIND } from "../../../api/metal3/metal3-remediation.ts";
import { trimMeta } from "../../../api/kubernetes/trim.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { KEPT_REMEDIATION_ANNOTATIONS } from "../../../nodes/trim.ts";
import { parseTimeMs } from "../../../runtime/time.ts";

/** The fields of a remediation CR of any kind that the detector keeps. */
export interface RemediationObject extends KubeObject {
  /** The conditions that health checks use. */
  conditions: readonly {
    type: string;
    status: string;
    lastTransitionTime?: string;
    reason?: string;
    message?: string;
  }[];
  /**
   * Whether its remediator reports a power order, which it stores before it sends the order: `status.attempt.action` of
   * a BareMetalRemediation.
   */
  powerOrdered: boolean;
  /** `spec.powerOnNotBefore` of a BareMetalRemediation, if it began early. */
  powerOnNotBefore?: string;
  /** The boot of the node when it began (`status.node.bootIDAtStart`), if it began early. */
  bootIDAtStart?: string;
  /** Whether it is a Metal3Remediation that has failed: that kind has no conditions. */
  phaseFailed: boolean;
  /** When the status of such a Metal3Remediation was last written (RFC 3339), from `managedFields`. */
  failedAt: string | undefined;
}

/** A remediation CR of any vendor, as the detector uses it. */
export interface Remediation {
  object: RemediationObject;
  uid: string;
  /** The node to remediate. */
  nodeName: string;
  templateName: string | undefined;
  createdMs: number | undefined;
  /** Whether it has a deletionTimestamp: its remediator is undoing it. */
  terminating: boolean;
  /** The status of its condition Succeeded. */
  succeeded: string | undefined;
  /** Why it failed, as its remediator reports. */
  failure: string | undefined;
  /** Since when `succeeded` has that value. */
  succeededSinceMs: number | undefined;
  /** Whether its remediator reports a power order. It has no meaning for kinds that do not report orders. */
  powerOrdered: boolean;
  /**
   * When the duration is over, on the clock of the API server, if the remediation began early. Only a
   * BareMetalRemediation may begin early.
   */
  powerOnNotBeforeMs: number | undefined;
  /** The boot of the node when it began, if it began early and has reported that. */
  bootIDAtStart: string | undefined;
  /** Whether its remediator will delete the Node. The CR must then stay when the Node is deleted. */
  nodeDeletionExpected: boolean;
  /** When a health check gave up on it. */
  timedOut: string | undefined;
}

/** With those of the remediator, so that both halves share the metadata of a remediation. */
const KEPT_ANNOTATIONS: readonly string[] = [...KEPT_REMEDIATION_ANNOTATIONS, REFUSED, SERVED_BY];
/** How much of a remediator's message is kept. */
const MESSAGE_LENGTH_MAX = 512;
const SUCCEEDED = "Succeeded";
const NODE_DELETION_EXPECTED = "PermanentNodeDeletionExpected";
const KEPT_CONDITIONS: readonly string[] = [SUCCEEDED, NODE_DELETION_EXPECTED];
/** Actions of an attempt for which no order was sent. */
const NO_ORDER: readonly string[] = ["None", "Inherited"];
const HEALTH_CHECK_KIND = "NodeHealthCheck";

/**
 * Keeps the fields of a CR that `readRemediation` needs. Malformed fields of another vendor's status count as absent.
 */
export function trimForHealthCheck(raw: KubeObject): RemediationObject {
  const status = field(raw, "status");
  const action = field(field(status, "attempt"), "action");
  const powerOnNotBefore =
    raw.kind === BARE_METAL_REMEDIATIONS.kind ? field(field(raw, "spec"), "powerOnNotBefore") : undefined;
  const bootIDAtStart = field(field(status, "node"), "bootIDAtStart");
  const phaseFailed = raw.kind === METAL3_REMEDIATION_KIND && field(status, "phase") === "Failed";
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: trimMeta(raw.metadata, KEPT_ANNOTATIONS),
    conditions: readConditions(field(status, "conditions")),
    powerOrdered: typeof action === "string" && !NO_ORDER.includes(action),
    ...(typeof powerOnNotBefore === "string" && { powerOnNotBefore }),
    ...(typeof powerOnNotBefore === "string" && typeof bootIDAtStart === "string" && { bootIDAtStart }),
    phaseFailed,
    failedAt: phaseFailed ? statusWrittenAt(raw) : undefined,
  };
}

/** When the status of an object was last written; undefined if it is not recorded. */
function statusWrittenAt({ metadata }: KubeObject): string | undefined {
  const entries = (metadata.managedFields ?? []).filter(({ subresource }) => subresource === "status");
  return entries
    .flatMap(({ time }) => time ?? [])
    .toSorted()
    .at(-1);
}

export function readRemediation(object: RemediationObject): Remediation {
  const { uid, name, annotations = {}, creationTimestamp, deletionTimestamp } = object.metadata;
  const condition = (type: string) => object.conditions.find((candidate) => candidate.type === type);
  const succeeded = condition(SUCCEEDED);
  return {
    object,
    uid,
    nodeName: annotations[NODE_NAME] ?? name,
    templateName: annotations[TEMPLATE_NAME],
    createdMs: parseTimeMs(creationTimestamp),
    terminating: deletionTimestamp !== undefined,
    succeeded: object.phaseFailed ? "False" : succeeded?.status,
    failure: object.phaseFailed
      ? (annotations[REFUSED] ?? whoSaysWhy(annotations[SERVED_BY]))
      : succeeded?.status === "False"
        ? failureOf(succeeded)
        : undefined,
    succeededSinceMs: parseTimeMs(object.phaseFailed ? object.failedAt : succeeded?.lastTransitionTime),
    powerOrdered: object.powerOrdered,
    powerOnNotBeforeMs: parseTimeMs(object.powerOnNotBefore),
    bootIDAtStart: object.bootIDAtStart,
    nodeDeletionExpected: condition(NODE_DELETION_EXPECTED)?.status === "True",
    timedOut: annotations[NHC_TIMED_OUT],
  };
}

/**
 * Whether any field that health checks use differs. A remediator stores each of its steps, but health checks need few
 * of them. The others must not cause an evaluation.
 */
export function remediationDiffers(before: RemediationObject, after: RemediationObject): boolean {
  return !isDeepStrictEqual(unversioned(before), unversioned(after));
}

/** Whether its remediator still has work to do, an undo included. */
export function isInProgress({ succeeded, terminating }: Remediation): boolean {
  return terminating || (succeeded !== "True" && succeeded !== "False");
}

/** Whether it has ended: its remediator has stored a verdict, or a health check has given up on it. */
export function hasEnded(remediation: Remediation): boolean {
  return remediation.timedOut !== undefined || !isInProgress(remediation);
}

/**
 * A Metal3Remediation has no field for the reason of a failure. Its BareMetalRemediation in the same namespace has the
 * reason.
 */
function whoSaysWhy(child: string | undefined): string | undefined {
  return child === undefined ? undefined : `BareMetalRemediation ${child} says why`;
}

function failureOf({ reason, message }: RemediationObject["conditions"][number]): string | undefined {
  const known = [reason, message].filter((part) => part !== undefined && part !== "");
  return known.length > 0 ? known.join(": ") : undefined;
}

function unversioned(object: RemediationObject): RemediationObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: "" } };
}

/**
 * Whether the health check of this UID made the CR. The name does not prove it, because a new health check may have the
 * name of a deleted one.
 */
export function isOwnedBy(object: KubeObject, uid: string): boolean {
  return (object.metadata.ownerReferences ?? []).some((owner) => owner.kind === HEALTH_CHECK_KIND && owner.uid === uid);
}

/** Whether the CR is marked as one for a control plane node. */
export function isForControlPlane(object: KubeObject): boolean {
  return object.metadata.labels?.[IS_CONTROL_PLANE_NODE] !== undefined;
}

/** Why a remediation cannot be created: its name is in use. */
export function foreignText(kind: string, name: string): string {
  return `a ${kind} named ${name} exists already, and it has another owner`;
}

function readConditions(value: unknown): RemediationObject["conditions"] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((condition: unknown) => {
    const type = field(condition, "type");
    const status = field(condition, "status");
    const lastTransitionTime = field(condition, "lastTransitionTime");
    // Only the message of a failure is kept. Other messages may change with each step, and each change would cause an
    // evaluation.
    const failed = type === SUCCEEDED && status === "False";
    const reason = failed ? field(condition, "reason") : undefined;
    const message = failed ? field(condition, "message") : undefined;
    if (typeof type !== "string" || typeof status !== "string" || !KEPT_CONDITIONS.includes(type)) return [];
    // `Unknown` means the same as a missing condition: nothing has ended. It is left out, because thousands of
    // remediations may get it at once, and each change would cause an evaluation.
    if (type === SUCCEEDED && status !== "True" && status !== "False") return [];
    return [
      {
        type,
        status,
        ...(typeof lastTransitionTime === "string" && { lastTransitionTime }),
        ...(typeof reason === "string" && { reason }),
        ...(typeof message === "string" && { message: message.slice(0, MESSAGE_LENGTH_MAX).toWellFormed() }),
      },
    ];
  });
}

/** A field of a value that may be anything. */
export function field(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}
