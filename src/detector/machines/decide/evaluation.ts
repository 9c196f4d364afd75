import { nameOf } from "../../../kube/watched.ts";
import type { CountedAttempt } from "../../shared/model/attempts.ts";
import type { MachineCheckDecision, MachineEventReason, MachineCheckSnapshot, MachineFacts } from "./decision.ts";
import type { MachineHealthCheckKind } from "./kind.ts";

/** One evaluation by `decideMachineCheck`: its input, and its results so far. */
export interface MachineCheckEvaluation {
  readonly kind: MachineHealthCheckKind;
  readonly snapshot: MachineCheckSnapshot;
  readonly nowMs: number;
  /** Why no new remediation may start, as text for the operator. */
  readonly gate: string | undefined;
  /** Attempts by their key that include those of this evaluation. They replace the recorded ones. */
  readonly attempts: Map<string, readonly CountedAttempt[]>;
  /** The name of the control plane Machine that gets a request in this evaluation. */
  controlPlaneStarts: string | undefined;
  readonly decision: Pick<MachineCheckDecision, "actions" | "standing" | "machines" | "nextCheckMs">;
}

/** Skips a Machine, and announces the reason. */
export function skipMachine(evaluation: MachineCheckEvaluation, facts: MachineFacts, reason: string): string {
  announceMachine(
    evaluation,
    facts,
    "Warning",
    "RemediationSkipped",
    `Machine ${nameOf(facts.machine)} is not remediated: ${reason}`,
  );
  return reason;
}

/** Adds a standing announcement about a Machine. */
export function announceMachine(
  evaluation: MachineCheckEvaluation,
  { machine }: MachineFacts,
  type: "Normal" | "Warning",
  reason: MachineEventReason,
  note: string,
): void {
  evaluation.decision.standing.push({ key: `${machine.metadata.uid}/${note}`, type, reason, note, about: machine });
}

/** Records the decision about a Machine. */
export function concludeMachine(
  evaluation: MachineCheckEvaluation,
  { machine }: MachineFacts,
  outcome: string,
  reason: string,
): void {
  evaluation.decision.machines.push({ name: machine.metadata.name, outcome, reason });
}
