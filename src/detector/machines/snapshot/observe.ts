import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import { nameOf } from "../../../kube/watched.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { MachineAnnouncement, MachineEventReason } from "../decide/decision.ts";
import type { MachineCheckState } from "./check-state.ts";

/** The result of an action: what it has done, or why it did nothing. */
export type MachineActionEvent =
  /** No remediation starts for now. */
  | { type: "deferred"; machine: Machine; deferral: Deferral }
  /** The machine as it is now, after a write. */
  | { type: "written"; machine: Machine }
  | { type: "markedUnhealthy"; machine: Machine }
  | { type: "annotated"; machine: Machine }
  | { type: "annotationFailed"; machine: Machine; message: string }
  | { type: "deleted"; machine: Machine }
  | { type: "deletionFailed"; machine: Machine; message: string }
  /** A remediation: `remedy` was created or asked for. */
  | { type: "started"; machine: Machine; remedy: string; because: string }
  /** It needs no remediation any more. */
  | { type: "recovered"; machine: Machine };

/** Adds the result of an action to the state. @returns the Kubernetes Events to record, with upstream's texts. */
export function observeMachineCheck(
  { deferrals, compiled }: Pick<MachineCheckState, "deferrals" | "compiled">,
  check: MachineHealthCheck,
  event: MachineActionEvent,
): MachineAnnouncement[] {
  const { machine } = event;
  const name = nameOf(machine);
  switch (event.type) {
    case "deferred":
      deferrals.set(machine.metadata.uid, event.deferral);
      return [];
    case "written":
      if ("tracker" in compiled) compiled.tracker.observe({ type: "updated", object: machine, previous: machine });
      return [];
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
