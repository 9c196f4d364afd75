import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import { nameOf } from "../../../kube/watched.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { TimePassed } from "../../shared/model/time-passed.ts";
import type { MachineAnnouncement, MachineEventReason } from "./decision.ts";

/** What this process has observed about one Machine, in addition to the objects that it watches. */
export interface MachineObservations {
  readonly deferral: Deferral | undefined;
}

export const NOTHING_OBSERVED_OF_MACHINE: MachineObservations = { deferral: undefined };

/** The result of an action: what it has done, or why it did nothing. */
export type MachineActionEvent =
  /** No remediation starts for now. */
  | { type: "deferred"; machine: Machine; deferral: Deferral }
  /** The Machine as it is after a write. */
  | { type: "written"; machine: Machine }
  | { type: "markedUnhealthy"; machine: Machine }
  | { type: "annotated"; machine: Machine }
  | { type: "annotationFailed"; machine: Machine; message: string }
  | { type: "deleted"; machine: Machine }
  | { type: "deletionFailed"; machine: Machine; message: string }
  /** A remediation started: `remedy` was created or requested. */
  | { type: "started"; machine: Machine; remedy: string; because: string }
  /** The Machine no longer needs a remediation. */
  | { type: "recovered"; machine: Machine };

/** An event that changes the observations of a Machine. Watches and trackers show everything else. */
export type MachineCheckEvent = Extract<MachineActionEvent, { type: "deferred" }> | TimePassed;

/** Adds an event to the observations of its Machine. */
export function observeMachine(observations: MachineObservations, event: MachineCheckEvent): MachineObservations {
  if (event.type === "deferred") return { deferral: event.deferral };
  const { deferral } = observations;
  return deferral !== undefined && deferral.untilMs <= event.nowMs ? NOTHING_OBSERVED_OF_MACHINE : observations;
}

/** The Kubernetes Events to record for the result of an action, with the texts of upstream. */
export function announceMachineEvent(check: MachineHealthCheck, event: MachineActionEvent): MachineAnnouncement[] {
  const { machine } = event;
  const name = nameOf(machine);
  switch (event.type) {
    case "markedUnhealthy": {
      const note = `Machine ${name} has been marked as unhealthy by ${nameOf(check)}`;
      return [announce("Normal", "MachineMarkedUnhealthy", note, machine)];
    }
    case "annotated": {
      const note = `Requesting external remediation of node associated with machine ${name}`;
      return [announce("Normal", "ExternalAnnotationAdded", note, machine)];
    }
    case "annotationFailed": {
      const note = `Requesting external remediation of node associated with machine ${name} failed: ${event.message}`;
      return [announce("Warning", "ExternalAnnotationFailed", note, machine)];
    }
    case "deleted": {
      const note = `Machine ${name} has been remediated by requesting to delete Machine object`;
      return [announce("Normal", "MachineDeleted", note, machine)];
    }
    case "deletionFailed": {
      const note = `Machine ${name} remediation failed: unable to delete Machine object: ${event.message}`;
      return [announce("Warning", "MachineDeletionFailed", note, machine)];
    }
    case "deferred":
    case "written":
    case "started":
    case "recovered":
      return [];
    default:
      return event satisfies never;
  }
}

function announce(
  type: MachineAnnouncement["type"],
  reason: MachineEventReason,
  note: string,
  about: Machine,
): MachineAnnouncement {
  return { key: `${about.metadata.uid}/${note}`, type, reason, note, about };
}
