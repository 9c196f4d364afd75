import type { BareMetalRemediationStatus } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import { toMicroTime, toTime } from "../../../runtime/time.ts";
import type { Now, Snapshot } from "./facts/snapshot.ts";
import { VERSION } from "../../../runtime/version.ts";
import type { Attempt, Outcome, State } from "./decision/state.ts";
import { formatAttempt, STATE_VERSION } from "./decision/state.ts";
import type { Note } from "./decision/decision.ts";

/** Maximum length of `status.timeline`: the oldest entries are dropped. */
export const TIMELINE_MAX = 100;
/** Characters kept of a message in a status: Kubernetes allows 32,768 in a condition. */
const MESSAGE_MAX = 1_000;

export type ConditionType =
  | "Processing"
  | "Succeeded"
  | "Ready"
  | "Stalled"
  | "PermanentNodeDeletionExpected"
  | "IdentityVerified"
  | "PowerOffConfirmed"
  | "WorkloadsReleased"
  | "PoweredOn"
  | "NodeRestored";

export interface ConditionUpdate {
  type: ConditionType;
  status: Condition["status"];
  reason: string;
  message: string;
}

/** What a step changes in the status. */
export interface StatusStep {
  /** Unknown: the phase stays as another version has stored it. */
  to: State["name"];
  /** Name of the step in the timeline, and reason of the Kubernetes Event. */
  step: string;
  message: string;
  warning?: boolean;
  attempt?: Attempt;
  outcome?: Outcome;
  conditions?: readonly ConditionUpdate[];
  /** Other fields of the status. */
  fields?: Partial<
    Pick<
      BareMetalRemediationStatus,
      | "machine"
      | "retryCount"
      | "provenReboots"
      | "lastRemediated"
      | "node"
      | "target"
      | "backup"
      | "drain"
      | "installation"
      | "replacement"
      | "diagnostics"
      | "acCycle"
    >
  >;
}

/** The next status and its note; pure. */
export function changeStatus(
  snapshot: Pick<Snapshot, "status" | "remediation">,
  now: Now,
  change: StatusStep,
): { status: BareMetalRemediationStatus; notes: readonly Note[] } {
  const { status, remediation } = snapshot;
  const message = keptOf(change.message);
  const timeline = [...(status.timeline ?? [])];
  // Repeats of one step, such as a wait whose message changes, get one entry, so that they do not push others out.
  if (timeline.at(-1)?.step !== change.step) {
    timeline.push({ step: change.step, time: toMicroTime(now.epochMs), message });
  }
  const next: BareMetalRemediationStatus = {
    ...status,
    ...change.fields,
    ...(change.to !== "Unknown" && { phase: change.to, stateVersion: STATE_VERSION, writtenBy: VERSION }),
    conditions: withConditions(status.conditions ?? [], withProgress(change.conditions), remediation.generation, now),
    timeline: timeline.slice(-TIMELINE_MAX),
  };
  if (remediation.generation !== undefined) next.observedGeneration = remediation.generation;
  if (change.attempt !== undefined) next.attempt = formatAttempt(change.attempt);
  if (change.outcome !== undefined) next.outcome = change.outcome;
  return {
    status: next,
    notes: [{ type: change.warning === true ? "Warning" : "Normal", reason: change.step, message }],
  };
}

/**
 * Adds the conditions that generic tools (kstatus) wait for to those that health checks read: Ready when the
 * remediation has succeeded, Stalled when it has failed.
 */
function withProgress(changes: readonly ConditionUpdate[] = []): readonly ConditionUpdate[] {
  const succeeded = changes.find(({ type }) => type === "Succeeded");
  if (succeeded === undefined) return changes;
  const { status, reason, message } = succeeded;
  const isFailed = status === "False";
  return [
    ...changes,
    { type: "Ready", status: status === "True" ? "True" : "False", reason, message },
    { type: "Stalled", status: isFailed ? "True" : "False", reason, message: isFailed ? message : "" },
  ];
}

/** Applies `changes` to `conditions`. `lastTransitionTime` changes only together with the status of a condition. */
function withConditions(
  conditions: readonly Condition[],
  changes: readonly ConditionUpdate[],
  generation: number | undefined,
  now: Now,
): Condition[] {
  const next = new Map(conditions.map((condition) => [condition.type, condition]));
  for (const change of changes) {
    const previous = next.get(change.type);
    const unmoved = previous?.status === change.status;
    next.set(change.type, {
      type: change.type,
      status: change.status,
      reason: change.reason,
      message: keptOf(change.message),
      lastTransitionTime: unmoved ? previous.lastTransitionTime : toTime(now.epochMs),
      ...(generation !== undefined && { observedGeneration: generation }),
    });
  }
  return [...next.values()];
}

/** Whether a condition has this message, as far as a status keeps it. */
export function hasMessage(condition: Condition | undefined, message: string): boolean {
  return condition?.message === keptOf(message);
}

/** The API server would replace half of a surrogate pair, and the message would then not be the one that was sent. */
function keptOf(message: string): string {
  return message.slice(0, MESSAGE_MAX).toWellFormed();
}

/** One condition of a status. */
export function statusCondition(status: BareMetalRemediationStatus, type: ConditionType): Condition | undefined {
  return status.conditions?.find((condition) => condition.type === type);
}

/** The deleted Node exists again, so the health check no longer has to keep the remediation. */
export function nodeRejoined(message: string): ConditionUpdate {
  return { type: "PermanentNodeDeletionExpected", status: "False", reason: "NodeRejoined", message };
}

/** The conditions Processing and Succeeded of a remediation that has no verdict yet. */
export function processing(reason: string, message: string): ConditionUpdate[] {
  return [
    { type: "Processing", status: "True", reason, message },
    { type: "Succeeded", status: "Unknown", reason: "InProgress", message },
  ];
}
