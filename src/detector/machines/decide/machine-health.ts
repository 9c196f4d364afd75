import type { Cluster, Machine } from "../../../api/cluster-api/cluster-api.ts";
import { REMEDIATE_MACHINE_ANNOTATION } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheckSpec } from "../../../api/cluster-api/machine-health-check.ts";
import type { UnhealthyCondition } from "../../../api/schema/unhealthy-condition.ts";
import { formatDuration } from "../../../runtime/duration.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { matchConditions } from "../../shared/model/match-conditions.ts";
import type { Fault, MachineHealth, ObservedMachine } from "./observed-machine.ts";

/** The fields of a spec that define an unhealthy Machine. */
export type HealthCriteria = Pick<
  MachineHealthCheckSpec,
  "nodeStartupTimeoutMs" | "unhealthyNodeConditions" | "unhealthyMachineConditions"
>;

/**
 * Judges a Machine of Cluster API at `nowMs`, in the order and with the texts of upstream. Do not pass Machines that
 * are paused or skipped.
 */
export function judgeMachine(target: ObservedMachine, checks: HealthCriteria, nowMs: number): MachineHealth {
  const reported = findReported(target.machine);
  if (reported !== undefined) return { state: "unhealthy", fault: reported };
  const wait = findWait(target.machine, target.cluster);
  if (wait !== undefined) return { state: "unsettled", reason: wait };
  return judgeNode(target, checks, nowMs);
}

/** Judges a Machine by its Node and its conditions only. All vendors have this part in common. */
export function judgeNode(target: ObservedMachine, checks: HealthCriteria, nowMs: number): MachineHealth {
  const { machine, node } = target;
  if (node.state === "unknown") return { state: "unknown", reason: node.reason };

  const onMachine = judgeConditions(checks.unhealthyMachineConditions, machineConditions(machine), nowMs, (condition) =>
    parseTimeMs(condition.lastTransitionTime),
  );
  const machineFaults = onMachine.over.map((rule) => describe("Machine", rule));
  if (node.state === "gone") {
    const message = `Node ${machine.nodeName ?? ""} has been deleted`;
    return unhealthy([message], machineFaults, {
      reason: "NodeDeleted",
      v1beta1: { reason: "NodeNotFound", message: "" },
    });
  }
  if (node.state === "none") {
    if (machineFaults.length > 0) return unhealthy([], machineFaults);
    return judgeStartup(target, checks.nodeStartupTimeoutMs, onMachine.nextMs, nowMs);
  }
  const onNode = judgeConditions(
    checks.unhealthyNodeConditions,
    node.node.status.conditions ?? [],
    nowMs,
    target.nodeSinceMs,
  );
  const nodeFaults = onNode.over.map((rule) => describe("Node", rule));
  if (nodeFaults.length + machineFaults.length > 0) {
    return unhealthy(nodeFaults, machineFaults, { reason: "UnhealthyNode" });
  }
  const untilMs = Math.min(onNode.nextMs, onMachine.nextMs);
  if (untilMs !== Infinity) return { state: "waiting", reason: "an unhealthy condition is active", untilMs };
  return machine.metadata.deletionTimestamp === undefined
    ? { state: "healthy" }
    : { state: "unsettled", reason: "it is being deleted" };
}

/** A failure that the Machine itself reports. It makes the Machine unhealthy, whatever its Node reports. */
function findReported({ metadata, failureReason, failureMessage }: Machine): Fault | undefined {
  if (metadata.annotations?.[REMEDIATE_MACHINE_ANNOTATION] !== undefined) {
    return {
      reason: "HasRemediateAnnotation",
      message: `Health check failed: marked for remediation via ${REMEDIATE_MACHINE_ANNOTATION} annotation`,
      v1beta1: {
        reason: "HasRemediateMachineAnnotation",
        message: "Marked for remediation via remediate-machine annotation",
      },
    };
  }
  if (failureReason === undefined && failureMessage === undefined) return undefined;
  const message =
    failureReason === undefined ? `FailureMessage: ${failureMessage ?? ""}` : `FailureReason: ${failureReason}`;
  return {
    reason: "MachineHasFailure",
    message: `Health check failed:\n  * ${message}`,
    v1beta1: { reason: "MachineHasFailure", message },
  };
}

/**
 * Why the Machine is not judged yet. Control plane Machines do not wait for the control plane, because one of them may
 * be the reason why it is not initialized.
 */
function findWait({ isControlPlane }: Machine, cluster: Cluster | undefined): string | undefined {
  if (cluster === undefined) return undefined;
  if (!cluster.controlPlaneInitialized && !isControlPlane) return "the cluster's control plane is not initialized yet";
  return cluster.infrastructureReady ? undefined : "the cluster's infrastructure is not ready";
}

function judgeStartup(target: ObservedMachine, timeoutMs: number, conditionMs: number, nowMs: number): MachineHealth {
  const reason = "it has no node yet";
  if (timeoutMs === 0) {
    return conditionMs === Infinity
      ? { state: "unsettled", reason }
      : { state: "waiting", reason: "an unhealthy condition is active", untilMs: conditionMs };
  }
  const sinceMs = startupSinceMs(target);
  // Without a time, nothing proves that the timeout is over.
  if (sinceMs === undefined) return { state: "unsettled", reason };
  const untilMs = sinceMs + timeoutMs;
  if (untilMs > nowMs) return { state: "waiting", reason, untilMs: Math.min(untilMs, conditionMs) };
  const message = `Node failed to report startup in ${formatDuration(timeoutMs)}`;
  return unhealthy([message], [], { reason: "NodeStartupTimeout" });
}

/** Since when the node of the Machine is expected: the latest of several times. Not every vendor has all of them. */
function startupSinceMs({ machine, cluster }: ObservedMachine): number | undefined {
  const times = [
    machine.metadata.creationTimestamp,
    machine.lastUpdated,
    cluster?.infrastructureReadySince,
    cluster?.controlPlaneInitializedSince,
    machine.infrastructureReadySince,
  ].flatMap((time) => parseTimeMs(time) ?? []);
  return times.length === 0 ? undefined : Math.max(...times);
}

/** The conditions of v1beta2, and those of v1beta1 with other types. An unhealthy condition may name either. */
function machineConditions({ conditions, v1beta1Conditions }: Machine) {
  const types = new Set(conditions.map(({ type }) => type));
  return [...conditions, ...v1beta1Conditions.filter(({ type }) => !types.has(type))];
}

/** The unhealthy conditions whose duration is over, and when the next duration is over. */
function judgeConditions<C extends { type: string; status: string }>(
  unhealthyConditions: readonly UnhealthyCondition[],
  conditions: readonly C[],
  nowMs: number,
  sinceOf: (condition: C) => number | undefined,
): { over: UnhealthyCondition[]; nextMs: number } {
  const matches = matchConditions(unhealthyConditions, conditions, sinceOf);
  const [over, running] = [matches.filter(({ dueMs }) => dueMs <= nowMs), matches.filter(({ dueMs }) => dueMs > nowMs)];
  return {
    over: over.map(({ unhealthy: condition }) => condition),
    nextMs: Math.min(...running.map(({ dueMs }) => dueMs)),
  };
}

function describe(where: "Machine" | "Node", { type, status, durationMs }: UnhealthyCondition): string {
  return `Condition ${type} on ${where} is reporting status ${status} for more than ${formatDuration(durationMs)}`;
}

/** If a condition of the Machine itself is unhealthy, the reason is UnhealthyMachine, also if its Node is unhealthy. */
function unhealthy(
  faults: readonly string[],
  machineFaults: readonly string[],
  own?: { reason: string; v1beta1?: Fault["v1beta1"] },
): MachineHealth {
  const messages = [...faults, ...machineFaults];
  const reason = own === undefined || machineFaults.length > 0 ? "UnhealthyMachine" : own.reason;
  const v1beta1 = machineFaults.length > 0 ? undefined : own?.v1beta1;
  return {
    state: "unhealthy",
    fault: {
      reason,
      message: ["Health check failed:", ...messages.map((message) => `  * ${message}`)].join("\n"),
      v1beta1: v1beta1 ?? { reason, message: messages.join("; ") },
    },
  };
}
