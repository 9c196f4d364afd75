import type {
  BareMetalRemediation,
  BareMetalRemediationSpec,
  BareMetalRemediationStatus,
} from "../../api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../api/ironfence/bare-metal-remediation.ts";
import type { Machine } from "../../api/cluster-api/cluster-api.ts";
import { selects } from "../../api/schema/label-selector.ts";
import type { MachineHealthCheck } from "../../api/cluster-api/machine-health-check.ts";
import type { BareMetalHost } from "../../api/metal3/metal3.ts";
import { NODE_ANNOTATIONS_BACKUP, NODE_LABELS_BACKUP } from "../../api/metal3/metal3-remediation.ts";
import { EXTERNAL_REMEDIATION_ANNOTATION } from "../../api/okd/okd-machine.ts";
import type { JsonPatchOperation } from "../../kube/client.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { pointer } from "../../kube/objects/json-pointer.ts";
import { formatDuration } from "../../runtime/duration.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { backupAnnotations } from "./node-backup.ts";

// OKD's external-baremetal: a health check asks for power fencing by an annotation on the Machine, and the remediator
// removes the annotation when it is done. The fence itself is that of a BareMetalRemediation.

/** On a Machine, by OKD's own remediator: it has powered the host off. Ours never writes it. */
export const POWERED_OFF_BY_OKD = "remediation.metal3.io/powered-off-for-remediation";
/** On a BareMetalHost, by OKD's own remediator, of today and of old: it keeps the host off. */
const POWER_OFF_REQUESTS_BY_OKD: readonly string[] = [
  "reboot.metal3.io/capbm-requested-power-off",
  "reboot.metal3.io/machine-remediation",
];

/** How long the node may take to come back after the power-on if no health check sets a time: the default of OKD. */
const REJOIN_TIMEOUT_MS = 20 * 60_000;

/**
 * The time from a failure until the Machine is tried again, because OKD does not repeat a request. A host that was
 * never powered off waited for its BMC, or for the operator to fix the cause. A host that was powered off is tried
 * again later, so that it is not power-cycled all day.
 */
const RETRY_MS = 10 * 60_000;
const RETRY_AFTER_POWER_OFF_MS = 2 * 3_600_000;

/** What is known of one Machine. */
export interface OkdMachineSnapshot {
  machine: Machine;
  /** Its remediation, whether or not it is wanted any more. */
  child: BareMetalRemediation | undefined;
  /** Whether the live Node that the Machine names is Ready; undefined if there is none. */
  nodeReady: boolean | undefined;
  /** What shows that OKD's own remediator is at work, in words. */
  otherActor: string | undefined;
  /** By the wall clock. */
  nowMs: number;
}

export type OkdMachineStep =
  /** Nothing, until something changes. */
  | { do: "wait" }
  /** The operator has to act. */
  | { do: "hold"; reason: "ConflictingController" | "RemediationFailed"; message: string }
  | { do: "create" }
  /** The child is deleted, and undoes what it has begun. */
  | { do: "remove"; reason: "MachineDeleted" | "ConflictingController" | "TriedAgain"; message: string }
  /** The Machine is changed; then it is checked again. */
  | { do: "patch"; operations: readonly JsonPatchOperation[]; done: boolean };

/** What to do next for a Machine; pure. Each step can be repeated, and leads to the next by what it changes. */
export function decideOkdMachine(snapshot: OkdMachineSnapshot): OkdMachineStep {
  const { machine, child, otherActor } = snapshot;
  if (!isRequested(machine)) return withdrawn(snapshot);
  if (child?.metadata.deletionTimestamp !== undefined) return { do: "wait" };
  if (machine.metadata.deletionTimestamp !== undefined) return terminating(child);
  if (otherActor !== undefined) {
    const message = `${otherActor}. Let only one of both remediate: see docs/reference/okd.md`;
    return child === undefined || isEnded(child)
      ? { do: "hold", reason: "ConflictingController", message }
      : { do: "remove", reason: "ConflictingController", message };
  }
  if (child === undefined) return { do: "create" };
  if (child.status?.phase === "Succeeded") return finish(machine);
  if (child.status?.phase === "Failed") return failed(snapshot, child.status);
  return mirror(machine, child);
}

function finish(machine: Machine): OkdMachineStep {
  return { do: "patch", operations: removals(machine, [EXTERNAL_REMEDIATION_ANNOTATION, ...BACKUPS]), done: true };
}

/** Waits for the node to come back by itself, or for another try. */
function failed({ machine, nodeReady, nowMs }: OkdMachineSnapshot, status: BareMetalRemediationStatus): OkdMachineStep {
  const conditionOf = (type: string) => status.conditions?.find((condition) => condition.type === type);
  const verdict = conditionOf("Succeeded");
  const hold: OkdMachineStep = {
    do: "hold",
    reason: "RemediationFailed",
    message: verdict?.message ?? "see its status",
  };
  // The child gives the Node its labels back when it joins again, and has the only copy of them.
  if (conditionOf("PermanentNodeDeletionExpected")?.status === "True") return hold;
  // One that was Ready all along has not recovered: it was found unhealthy by something else.
  if (nodeReady === true && status.node?.wasReady !== true) return finish(machine);
  const pauseMs = (status.provenReboots ?? 0) > 0 ? RETRY_AFTER_POWER_OFF_MS : RETRY_MS;
  const failedMs = parseTimeMs(verdict?.lastTransitionTime) ?? nowMs;
  if (nowMs - failedMs < pauseMs) return hold;
  // Whether a Ready node is still unhealthy is the health check's to say: it asks again.
  if (nodeReady === true) return finish(machine);
  return {
    do: "remove",
    reason: "TriedAgain",
    message: `it is tried again ${formatDuration(pauseMs)} after it failed`,
  };
}

/** Whether a Machine has anything of a request for power fencing. */
export function concerns({ metadata }: Pick<KubeObject, "metadata">): boolean {
  return [EXTERNAL_REMEDIATION_ANNOTATION, ...BACKUPS].some((key) => metadata.annotations?.[key] !== undefined);
}

/**
 * The remediation of a Machine: reboots with the Node deleted in between, then the Machine is deleted, so that its
 * owner creates a new one. A Machine of the control plane, or one without a controller, is only rebooted.
 *
 * @param checks of the namespace of the Machine: the node has as long to come back as they let nodes start, as in OKD.
 */
export function remediationSpec(machine: Machine, checks: readonly MachineHealthCheck[]): BareMetalRemediationSpec {
  const replaceable = !machine.isControlPlane && hasController(machine);
  return bareMetalRemediationSpecSchema.parse({
    strategy: {
      type: replaceable ? "Escalate" : "Reboot",
      via: "MachineDeletion",
      workloadRelease: "DeleteNode",
      timeout: formatDuration(rejoinTimeoutMs(machine, checks)),
    },
  });
}

/** By the most patient of the health checks that cover the Machine; one without a limit does not say. */
function rejoinTimeoutMs({ metadata }: Machine, checks: readonly MachineHealthCheck[]): number {
  const timeoutsMs = checks
    .filter(({ spec }) => selects(spec.selector, metadata.labels))
    .map(({ spec }) => spec.nodeStartupTimeoutMs)
    .filter((timeoutMs) => timeoutMs > 0);
  return timeoutsMs.length === 0 ? REJOIN_TIMEOUT_MS : Math.max(...timeoutsMs);
}

/** What shows that OKD's own remediator acts on a Machine, as a text; undefined if nothing shows that. */
export function otherRemediator(machine: Machine, host: BareMetalHost | undefined): string | undefined {
  const key = POWER_OFF_REQUESTS_BY_OKD.find((key) => host?.metadata.annotations?.[key] !== undefined);
  if (key !== undefined) {
    return `annotation ${key} on BareMetalHost ${host?.metadata.name ?? ""}: OKD's own machine controller keeps the host off`;
  }
  if (machine.metadata.annotations?.[POWERED_OFF_BY_OKD] === undefined) return undefined;
  return `annotation ${POWERED_OFF_BY_OKD} on the Machine: OKD's own machine controller remediates it`;
}

const BACKUPS = [NODE_LABELS_BACKUP, NODE_ANNOTATIONS_BACKUP];

/**
 * The request was withdrawn: removes the backup first. A Machine without the annotation and a backup asks for nothing,
 * and its child is deleted with it.
 */
function withdrawn({ machine, child }: OkdMachineSnapshot): OkdMachineStep {
  // Without our own child the backup is OKD's own.
  const operations = child === undefined ? [] : removals(machine, BACKUPS);
  return operations.length === 0 ? { do: "wait" } : { do: "patch", operations, done: false };
}

/** A Machine that is being deleted belongs to OKD's machine controller, unless the remediation itself replaces it. */
function terminating(child: BareMetalRemediation | undefined): OkdMachineStep {
  if (child === undefined || isEnded(child) || child.status?.phase === "Provisioning") return { do: "wait" };
  return { do: "remove", reason: "MachineDeleted", message: "the Machine is being deleted" };
}

/** Whether there is a request for power fencing. */
export function isRequested({ metadata }: Machine): boolean {
  return metadata.annotations?.[EXTERNAL_REMEDIATION_ANNOTATION] !== undefined;
}

function isEnded({ status }: BareMetalRemediation): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/**
 * The backup of a deleted Node stands on its Machine too, for the operator and for OKD's own remediator if it takes
 * over.
 */
function mirror({ metadata }: Machine, { status }: BareMetalRemediation): OkdMachineStep {
  const wanted = Object.entries(backupAnnotations(status?.backup));
  const operations = wanted.flatMap(([key, value]): JsonPatchOperation[] =>
    metadata.annotations?.[key] === value ? [] : [{ op: "add", path: annotationPath(key), value }],
  );
  return operations.length === 0 ? { do: "wait" } : { do: "patch", operations, done: false };
}

function removals({ metadata }: Machine, keys: readonly string[]): JsonPatchOperation[] {
  return keys
    .filter((key) => metadata.annotations?.[key] !== undefined)
    .map((key) => ({ op: "remove", path: annotationPath(key) }));
}

function hasController({ metadata }: Machine): boolean {
  return metadata.ownerReferences?.some(({ controller }) => controller === true) === true;
}

function annotationPath(key: string): string {
  return pointer("metadata", "annotations", key);
}
