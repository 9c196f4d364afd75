import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { ConditionWrite } from "../../../api/cluster-api/machine-conditions.ts";
import type { MachineHealthCheck, MachineHealthCheckStatus } from "../../../api/cluster-api/machine-health-check.ts";
import type { Announcement } from "../../shared/model/announcement.ts";
import type { CountedAttempt } from "../../shared/model/attempts.ts";
import type { RecordAttempts } from "../../shared/model/health-check-decision.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { Template, TemplateProblem } from "../../shared/model/template.ts";
import type { MachinePolicy } from "./policy.ts";
import type { MachineHealth } from "./observed-machine.ts";

// The input and the result of `decideMachineCheck` for one MachineHealthCheck.

/** Everything that a decision about one Machine depends on. */
export interface MachineFacts {
  machine: Machine;
  health: MachineHealth;
  /** The Machine's own requests of any kind, found by the UID of the Machine and not by its name. */
  requests: readonly Remediation[];
  /**
   * Text about an object that another controller created, and that has the name of the next request or remediates the
   * Machine.
   */
  foreign: string | undefined;
  /** The name of another health check that still finds the Machine unhealthy. */
  neededBy: string | undefined;
  /** The name of another Machine of the same control plane that is being remediated. */
  controlPlaneBusy: string | undefined;
  /** The recorded attempts with the same `attemptKey`. */
  attempts: readonly CountedAttempt[];
  deferral: Deferral | undefined;
  /** Since when its FencingTarget has been Ready; undefined if it is not Ready, or if no request has failed. */
  fenceableSinceMs: number | undefined;
}

/** Everything that a decision about one MachineHealthCheck depends on, at one moment. */
export interface MachineCheckSnapshot {
  check: MachineHealthCheck;
  policy: MachinePolicy;
  /** The names of the Machines that the health check covers, sorted. */
  machineNames: readonly string[];
  /** How many of them are healthy. */
  healthy: number;
  /** The name of the first of them that is being deleted. */
  deleting: string | undefined;
  /** The Machines that need a decision, sorted by name. */
  machines: readonly MachineFacts[];
  /** Undefined if the health check names no template. */
  template: Template | TemplateProblem | undefined;
  /**
   * Why nothing may start now although everything could be read, for example because a view is stale. Text for the
   * operator.
   */
  blocked: string | undefined;
  /** Why the Nodes of the Machines cannot be read. Text for the operator. */
  unreachable: string | undefined;
  /** Whether there is no room to record another attempt. If so, actions do not wait until attempts are recorded. */
  isHistoryFull: boolean;
}

export type MachineAction =
  /** Create a request from the template. */
  | { type: "request"; machine: Machine; template: Template }
  /** Delete a request because the Machine is healthy. A live read must confirm that. */
  | { type: "withdraw"; machine: Machine; request: Remediation }
  /** Delete a failed request, so that another one follows. */
  | { type: "renew"; machine: Machine; request: Remediation }
  /** Write the conditions `wanted`, and remove those of the types `unwanted`. A live read must confirm `health`. */
  | {
      type: "conditions";
      machine: Machine;
      health: MachineHealth["state"];
      wanted: readonly ConditionWrite[];
      unwanted: readonly string[];
      /** Whether an Event reports that the Machine is unhealthy. */
      marks: boolean;
    }
  /** Annotate the Machine. */
  | { type: "annotate"; machine: Machine; annotation: string }
  /** Delete the Machine. */
  | { type: "delete"; machine: Machine }
  | RecordAttempts;

export type MachineAnnouncement = Announcement<MachineEventReason>;

/** Reasons of Kubernetes Events. The first seven, and those that begin with Skipped, come from upstream. */
export type MachineEventReason =
  | "RemediationRestricted"
  | "MachineMarkedUnhealthy"
  | "MachineDeleted"
  | "MachineDeletionFailed"
  | "ExternalAnnotationAdded"
  | "ExternalAnnotationFailed"
  | "DetectedUnhealthy"
  | "RemediationSkipped"
  | "RemediationFailed"
  | "SkippedMaster"
  | "SkippedNoController"
  | "RemediationTemplateNotFound"
  | "RemediationTemplateInvalid"
  | "HealthCheckIncomplete"
  | "NoMachineSelected";

/** What was decided about one Machine, and why; for logs and `explain`. */
export interface MachineOutcome {
  name: string;
  /** One word for what is done, for example `remediating`. */
  outcome: string;
  reason: string;
}

export interface MachineCheckDecision {
  /** Why no new remediation may start for any Machine; undefined if one may start. */
  gate: { outcome: string; reason: string } | undefined;
  actions: MachineAction[];
  status: MachineHealthCheckStatus;
  /** The health check's own conditions. */
  conditions: readonly ConditionWrite[];
  /** The next time at which the decision may change without a change of its input, on the clock of `nowMs`. */
  nextCheckMs: number | undefined;
  standing: MachineAnnouncement[];
  transitions: readonly MachineAnnouncement[];
  machines: MachineOutcome[];
}
