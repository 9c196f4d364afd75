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

/** On a Machine: OKD's own remediator has powered the host off. ironfence never writes it. */
export const POWERED_OFF_BY_OKD = "remediation.metal3.io/powered-off-for-remediation";
/** On a BareMetalHost: OKD's own remediator, in its present and an older version, keeps the host off. */
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
  /** Its remediation, even if the request was withdrawn. */
  child: BareMetalRemediation | undefined;
  /** Whether the live Node that the Machine names is Ready; undefined if there is none. */
  nodeReady: boolean | undefined;
  /** What shows that OKD's own remediator acts on the Machine, as a text; undefined if nothing shows that. */
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
  /** Deletes the child, which then undoes its changes. */
  | { do: "remove"; reason: "MachineDeleted" | "ConflictingController" | "TriedAgain"; message: string }
  /** Changes the Machine, whose change starts the next check. */
  | { do: "patch"; operations: readonly JsonPatchOperation[]; done: boolean };

/** Decides the next step for a Machine; pure. Each step can be repeated, and its changes lead to the next step. */
export function decideOkdMachine(snapshot: OkdMachineSnapshot): OkdMachineStep {
  const { machine, child, otherActor } = snapshot;
  if (!isRequested(machine)) return withdrawn(snapshot);
  if (child?.metadata.deletionTimestamp !== undefined) return { do: "wait" };
  if (machine.metadata.deletionTimestamp !== undefined) return terminating(child);
  if (otherActor !== undefined) {
    const message = `${otherActor}. Let only one of the two remediate: see docs/reference/okd.md`;
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

/** Decides after a failure: waits for the node to come back by itself, or for the time of another try. */
function failed({ machine, nodeReady, nowMs }: OkdMachineSnapshot, status: BareMetalRemediationStatus): OkdMachineStep {
  const conditionOf = (type: string) => status.conditions?.find((condition) => condition.type === type);
  const verdict = conditionOf("Succeeded");
  const hold: OkdMachineStep = {
    do: "hold",
    reason: "RemediationFailed",
    message: verdict?.message ?? "see the status of the remediation",
  };
  // The child has the only copy of the deleted Node's labels, and restores them when the Node joins again.
  if (conditionOf("PermanentNodeDeletionExpected")?.status === "True") return hold;
  // A node that was Ready all the time has not recovered: something other than its Ready condition made it unhealthy.
  if (nodeReady === true && status.node?.wasReady !== true) return finish(machine);
  const pauseMs = (status.provenReboots ?? 0) > 0 ? RETRY_AFTER_POWER_OFF_MS : RETRY_MS;
  const failedMs = parseTimeMs(verdict?.lastTransitionTime) ?? nowMs;
  if (nowMs - failedMs < pauseMs) return hold;
  // The health check decides whether a Ready node is still unhealthy, and if so asks again.
  if (nodeReady === true) return finish(machine);
  return {
    do: "remove",
    reason: "TriedAgain",
    message: `the remediation is tried again ${formatDuration(pauseMs)} after it failed`,
  };
}

/** Whether a Machine has any annotation of a request for power fencing. */
export function concerns({ metadata }: Pick<KubeObject, "metadata">): boolean {
  return [EXTERNAL_REMEDIATION_ANNOTATION, ...BACKUPS].some((key) => metadata.annotations?.[key] !== undefined);
}

/**
 * The remediation of a Machine: reboots with the Node deleted in between, then the Machine is deleted, so that its
 * owner creates a new one. A Machine of the control plane, or one without a controller, is only rebooted.
 *
 * @param checks the health checks of the Machine's namespace. Their startup timeout bounds how long the node may take
 * to come back, as in OKD.
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

/** The longest startup timeout of the health checks that cover the Machine. A check without one does not count. */
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
 * Handles a withdrawn request: removes the backup. Without the annotation and a backup the Machine is no longer a
 * request, and its child is deleted.
 */
function withdrawn({ machine, child }: OkdMachineSnapshot): OkdMachineStep {
  // Without a child, the backup is OKD's own.
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
 * Copies the backup of a deleted Node to its Machine, for the operator and for OKD's own remediator if it takes over.
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
