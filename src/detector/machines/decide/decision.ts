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
   * Text about an object that has the name of the next request, or that remediates the Machine for another controller.
   */
  foreign: string | undefined;
  /** Another health check that still finds the machine unhealthy; its name. */
  neededBy: string | undefined;
  /** Another machine of its control plane that is in remediation; its name. */
  controlPlaneBusy: string | undefined;
  /** The recorded attempts that count together with this one; see `attemptKey`. */
  attempts: readonly CountedAttempt[];
  deferral: Deferral | undefined;
  /** Since when its FencingTarget has been Ready; undefined if it is not, or if nothing has failed. */
  fenceableSinceMs: number | undefined;
}

/** Everything that a decision about one MachineHealthCheck depends on, at one moment. */
export interface MachineCheckSnapshot {
  check: MachineHealthCheck;
  policy: MachinePolicy;
  /** Machines that it covers, sorted by name. */
  machineNames: readonly string[];
  /** Those of them that are healthy. */
  healthy: number;
  /** The first machine that it covers and that is being deleted; its name. */
  deleting: string | undefined;
  /** Every Machine that needs a decision, sorted by name. */
  machines: readonly MachineFacts[];
  /** Undefined if the health check names none. */
  template: Template | TemplateProblem | undefined;
  /**
   * Why nothing may start now although everything could be read, for example because a view is stale. Text for the
   * operator.
   */
  blocked: string | undefined;
  /** Why the Nodes of the Machines cannot be read. Text for the operator. */
  unreachable: string | undefined;
  /** Whether there is no room to record another attempt. If so, nothing waits for the record. */
  isHistoryFull: boolean;
}

export type MachineAction =
  /** Make a request from the template. */
  | { type: "request"; machine: Machine; template: Template }
  /** Delete a request because the machine is healthy, which a live read must confirm. */
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
      /** Whether an Event reports that the machine is unhealthy. */
      marks: boolean;
    }
  /** Annotate the machine. */
  | { type: "annotate"; machine: Machine; annotation: string }
  /** Delete the machine. */
  | { type: "delete"; machine: Machine }
  | RecordAttempts;

export type MachineAnnouncement = Announcement<MachineEventReason>;

/** Reasons of events; the first six, and those that begin with Skipped, are upstream's. */
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

/** The decision about one machine, and why; for logs and `explain`. */
export interface MachineOutcome {
  name: string;
  /** One word for what is done, for example `remediating`. */
  outcome: string;
  reason: string;
}

export interface MachineCheckDecision {
  /** Why nothing new may start, whatever the machine; undefined if it may. */
  gate: { outcome: string; reason: string } | undefined;
  actions: MachineAction[];
  status: MachineHealthCheckStatus;
  /** The health check's own conditions. */
  conditions: readonly ConditionWrite[];
  /** When the decision changes although no input changes, on the clock of `nowMs`. */
  nextCheckMs: number | undefined;
  standing: MachineAnnouncement[];
  transitions: readonly MachineAnnouncement[];
  machines: MachineOutcome[];
}
