import { REFUSED, SERVED_BY } from "../../api/names/annotations.ts";
import type { BareMetalRemediation, BareMetalRemediationSpec } from "../../api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalHost } from "../../api/metal3/metal3.ts";
import type { Metal3Phase, Metal3Remediation } from "../../api/metal3/metal3-remediation.ts";
import {
  METAL3_POWER_OFF_PREFIX,
  METAL3_REMEDIATION_FINALIZER,
  NODE_ANNOTATIONS_BACKUP,
  NODE_LABELS_BACKUP,
} from "../../api/metal3/metal3-remediation.ts";
import { OKD_MACHINE_GROUP } from "../../api/okd/okd-machine.ts";
import type { OwnerReference } from "../../kube/resource.ts";
import { parseDurationMs } from "../../runtime/duration.ts";
import { groupOf, machineOwners } from "../../nodes/subject.ts";
import { backupAnnotations } from "./node-backup.ts";

/** What is known of one Metal3Remediation. */
export interface Metal3Snapshot {
  request: Metal3Remediation;
  child: BareMetalRemediation | undefined;
  /** The BareMetalHost of the Machine, read live; undefined if there is none. */
  host: BareMetalHost | undefined;
}

/** Why ironfence does not serve a request, or no longer serves it. docs/reference/metal3.md lists them. */
export const REFUSALS = [
  "ConflictingController",
  "InvalidStrategy",
  "NoMachine",
  "HostOffline",
  "RemediationRemoved",
] as const;
export type RequestRefusal = (typeof REFUSALS)[number];

/** The values that the fields of a request must have. */
export interface Metal3Mirror {
  phase: Metal3Phase;
  retryCount: number;
  lastRemediated: string | undefined;
  /** Undefined removes the annotation. */
  backups: Record<string, string | undefined>;
  /** Why, for the operator. */
  message: string;
}

export type Metal3Step =
  /** Nothing, until something changes. */
  | { do: "wait" }
  /** Marks the request as served by ironfence, and adds the finalizer. */
  | { do: "begin" }
  | { do: "create"; spec: BareMetalRemediationSpec; machine: OwnerReference }
  | { do: "remove" }
  | { do: "refuse"; reason: RequestRefusal; message: string }
  /** Sets the phase of the request to Failed. */
  | { do: "fail"; message: string }
  /** Hands the Machine over to its owner, then writes the mirror. */
  | { do: "escalate"; mirror: Metal3Mirror; machine: OwnerReference }
  | { do: "mirror"; mirror: Metal3Mirror }
  | { do: "letGo" };

/**
 * Decides the next step for a Metal3Remediation; pure. Each step can be repeated, and its changes lead to the next
 * step. ironfence never stores a status that is ahead of the child, so such a status comes from another controller.
 */
export function decideMetal3(snapshot: Metal3Snapshot): Metal3Step {
  const { request, child } = snapshot;
  const { annotations = {}, finalizers = [], deletionTimestamp } = request.metadata;
  const refused = annotations[REFUSED];
  const inConflict = refused?.startsWith("ConflictingController") === true;
  if (deletionTimestamp !== undefined) {
    if (child !== undefined) return { do: "remove" };
    // The other controller needs the request until it has powered the host on again.
    return finalizers.includes(METAL3_REMEDIATION_FINALIZER) && !inConflict ? { do: "letGo" } : { do: "wait" };
  }
  if (refused !== undefined) {
    if (child !== undefined) return { do: "remove" };
    return inConflict || isEnded(request) ? { do: "wait" } : { do: "fail", message: refused };
  }
  const other = otherController(snapshot);
  if (other !== undefined) {
    const message = `${other}: two controllers must not serve one request; make the Metal3 provider's controller ignore requests (docs/reference/metal3.md), then delete this one`;
    return { do: "refuse", reason: "ConflictingController", message };
  }
  if (annotations[SERVED_BY] === undefined) return isEnded(request) ? { do: "wait" } : begin(snapshot);
  const machine = machineOf(request);
  if (machine === undefined) return refuseWithoutMachine();
  if (child === undefined) return create(request, machine);
  // Another party has deleted the child. Its undo comes first, and the next decision follows when it is gone.
  if (child.metadata.deletionTimestamp !== undefined) return { do: "wait" };
  return mirror(request, child, machine);
}

/** The Machine that a request is about, of Cluster API or of OKD. */
export function machineOf({ metadata }: Metal3Remediation): OwnerReference | undefined {
  return machineOwners(metadata.ownerReferences)[0];
}

/**
 * What shows that the Metal3 provider's own controller serves this request, as a text; undefined if nothing shows
 * that.
 */
function otherController({ request, child, host }: Metal3Snapshot): string | undefined {
  const { annotations = {}, finalizers = [], uid } = request.metadata;
  const key = `${METAL3_POWER_OFF_PREFIX}${uid}`;
  if (host?.metadata.annotations?.[key] !== undefined) {
    return `BareMetalHost ${host.metadata.namespace}/${host.metadata.name} has the annotation ${key}`;
  }
  const { phase, lastRemediated } = request;
  if (annotations[SERVED_BY] === undefined) {
    if (phase === undefined || isEnded(request)) return undefined;
    return `status.phase is ${phase}, which ironfence did not write`;
  }
  if (!finalizers.includes(METAL3_REMEDIATION_FINALIZER)) return "its finalizer was removed";
  if (child === undefined) return undefined;
  const { phase: state, lastRemediated: poweredOnAt, retryCount = 0, attempt } = child.status ?? {};
  // The controller of Metal3 writes this before its first power-off, and ironfence after the first power-on.
  if (lastRemediated !== undefined && poweredOnAt === undefined) {
    return "status.lastRemediated is set, although ironfence has not powered the host on yet";
  }
  const isAhead =
    (phase === "Deleting machine" && state !== "Failed" && attempt?.kind !== "Reprovision") ||
    (phase === "Waiting" && poweredOnAt === undefined && retryCount === 0 && !mayHaveWaited(child));
  return isAhead ? `status.phase is ${phase}, which ironfence did not write` : undefined;
}

/** Whether ironfence may have set the phase of the request to Waiting, now or before the undo of the child. */
function mayHaveWaited(child: BareMetalRemediation): boolean {
  const { phase, attempt } = child.status ?? {};
  // Two kinds of remediations reach Waiting without a lastRemediated: one that failed before the host read On, and one
  // that restores a node that came back by itself.
  const hasWaited = attempt?.offConfirmedAt !== undefined || attempt?.action !== "ForceOff";
  return (phase === "Undoing" && hasWaited) || phaseOf(child, undefined) !== "Running";
}

function begin({ request, host }: Metal3Snapshot): Metal3Step {
  if (machineOf(request) === undefined) return refuseWithoutMachine();
  const { strategy } = request;
  const invalid = (message: string): Metal3Step => ({ do: "refuse", reason: "InvalidStrategy", message });
  if (strategy === undefined) return invalid("spec.strategy is missing: set its type to Reboot");
  if (strategy.type !== "Reboot") {
    return invalid(`spec.strategy.type is ${strategy.type ?? "missing"}: only Reboot is known`);
  }
  if (strategy.timeout !== undefined && parseDurationMs(strategy.timeout) === undefined) {
    return invalid(`spec.strategy.timeout "${strategy.timeout}" is not a duration`);
  }
  if (host !== undefined && !host.online) {
    const { namespace, name } = host.metadata;
    const message = `BareMetalHost ${namespace}/${name} has spec.online false: it is meant to be off, so it is not rebooted`;
    return { do: "refuse", reason: "HostOffline", message };
  }
  return { do: "begin" };
}

function refuseWithoutMachine(): Metal3Step {
  const message = "no ownerReference names a Machine, so it is not known which host is meant";
  return { do: "refuse", reason: "NoMachine", message };
}

/** Whether the phase of the request is final. */
function isEnded({ phase }: Metal3Remediation): boolean {
  return phase === "Deleting machine" || phase === "Failed";
}

/** More reboots would wear the hardware out; upstream has no bound. */
const RETRIES_MAX = 10;

function create(request: Metal3Remediation, machine: OwnerReference): Metal3Step {
  if (request.phase !== undefined) {
    const message = `${request.metadata.annotations?.[SERVED_BY] ?? "its BareMetalRemediation"} was deleted, and the host is not rebooted again for this request`;
    return isEnded(request) ? { do: "wait" } : { do: "refuse", reason: "RemediationRemoved", message };
  }
  const { retryLimit = 1, timeout } = request.strategy ?? {};
  // OKD has no condition that hands a Machine over to its owner, so the remediator deletes it, as upstream does.
  const isOkd = groupOf(machine.apiVersion) === OKD_MACHINE_GROUP;
  const spec = bareMetalRemediationSpecSchema.parse({
    strategy: {
      ...(isOkd ? { type: "Escalate", via: "MachineDeletion" } : { type: "Reboot" }),
      retryLimit: Math.min(Math.max(retryLimit, 0), RETRIES_MAX),
      ...(timeout !== undefined && { timeout: canonicalDuration(timeout) }),
    },
  });
  return { do: "create", spec, machine };
}

/** The duration in the form of our CRD. Go's form also allows signs and a bare zero. */
function canonicalDuration(text: string): string {
  return `${Math.max(Math.ceil((parseDurationMs(text) ?? 0) / 1_000), 0)}s`;
}

function mirror(request: Metal3Remediation, child: BareMetalRemediation, machine: OwnerReference): Metal3Step {
  const { status = {} } = child;
  const wanted: Metal3Mirror = {
    phase: phaseOf(child, request.phase),
    retryCount: status.retryCount ?? 0,
    lastRemediated: status.lastRemediated,
    backups: backupsOf(child),
    message: `BareMetalRemediation ${child.metadata.name}: ${progressText(child)}`,
  };
  const { annotations = {} } = request.metadata;
  const isUpToDate =
    wanted.phase === request.phase &&
    wanted.retryCount === (request.retryCount ?? 0) &&
    wanted.lastRemediated === request.lastRemediated &&
    Object.entries(wanted.backups).every(([key, value]) => annotations[key] === value);
  if (isUpToDate) return { do: "wait" };
  return wanted.phase === "Deleting machine"
    ? { do: "escalate", mirror: wanted, machine }
    : { do: "mirror", mirror: wanted };
}

/** The phase that upstream would report. `previous` may stay while the child is undone. */
function phaseOf({ status = {} }: BareMetalRemediation, previous: string | undefined): Metal3Phase {
  switch (status.phase) {
    case "Provisioning":
      return status.replacement?.deletedAt === undefined ? "Running" : "Deleting machine";
    case "PoweringOn":
    case "Rejoining":
    case "Restoring":
      return "Waiting";
    case "Succeeded":
      return status.replacement === undefined ? "Waiting" : "Deleting machine";
    case "Undoing":
      return previous === "Waiting" || previous === "Deleting machine" ? previous : "Running";
    case "Failed":
      return isProven(status) ? "Deleting machine" : "Failed";
    default:
      return "Running";
  }
}

/**
 * Whether each reboot proved the host off. Only then is its Machine given up: a host must not be installed again
 * because its BMC was unreachable or its identity was unknown.
 */
function isProven({ provenReboots = 0, retryCount = 0 }: NonNullable<BareMetalRemediation["status"]>): boolean {
  return provenReboots > retryCount;
}

/** The backup of a deleted Node's labels and annotations, until they are restored. */
function backupsOf({ status = {} }: BareMetalRemediation): Metal3Mirror["backups"] {
  const none = { [NODE_ANNOTATIONS_BACKUP]: undefined, [NODE_LABELS_BACKUP]: undefined };
  return status.phase === "Succeeded" ? none : { ...none, ...backupAnnotations(status.backup) };
}

function progressText({ status = {} }: BareMetalRemediation): string {
  const ended = status.phase === "Succeeded" || status.phase === "Failed";
  const condition = status.conditions?.find(({ type }) => type === (ended ? "Succeeded" : "Processing"));
  return condition === undefined ? "is about to begin" : `${condition.reason}: ${condition.message}`;
}
