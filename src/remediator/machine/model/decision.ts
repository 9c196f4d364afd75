import type { BareMetalRemediationStatus } from "../../../api/bare-metal-remediation.ts";
import type { BootOverride } from "../../../bmc/driver.ts";

/** One thing to do, by the shell, one at a time. What it finds goes into `Seen`. */
export type Effect =
  | { do: "addFinalizer" }
  /** Reads the Machine that owns the remediation. */
  | { do: "resolveSubject" }
  /** Looks whether a remediation that may be of long ago is wanted still. */
  | { do: "examineRequest" }
  /** Looks whether the Cluster of the subject is there still. */
  | { do: "findCluster" }
  /** Asks for the turn to begin. */
  | { do: "askForTurn" }
  | { do: "leaveTurn" }
  /** Hands the lease over to another agent, since this one runs on the node. */
  | { do: "handOver" }
  | { do: "claimHost" }
  /** Reads node, lease, Machine, identity and what holds power orders at once. */
  | { do: "examine" }
  /** The same without the node. */
  | { do: "verifyIdentity" }
  /** Reads live what holds power orders. */
  | { do: "lookAtStops" }
  | { do: "readLease" }
  | { do: "quarantine"; attemptId: string }
  | { do: "forceOff"; attemptId: string }
  /** `withinMs` bounds the reading where it must not be late. */
  | { do: "readPower"; withinMs?: number }
  /** Reads the power of all devices, of which any may have been turned off. */
  | { do: "readWhole" }
  | { do: "taint"; attemptId: string }
  /** Takes our out-of-service taint off. */
  | { do: "untaint" }
  /** Deletes pods, no longer than `withinMs`. */
  | { do: "releasePods"; withinMs: number }
  | { do: "checkDrained" }
  /** Out-of-service taint off and quarantine on in one patch. */
  | { do: "swapMarks"; attemptId: string }
  | { do: "setBootOverride"; override: BootOverride }
  | { do: "backupNode" }
  | { do: "deleteNode" }
  | { do: "powerOn"; attemptId: string }
  | { do: "recordReboot"; offConfirmedAtMs: number; onOrderedAtMs: number }
  /** Takes the quarantine off if the live node is in a new boot. */
  | { do: "liftQuarantine" }
  | { do: "restoreNode" }
  /** Reads which Machine the node says that it is. */
  | { do: "findMachine" }
  /** Reads the Machine, its owner and its host. */
  | { do: "examineMachine" }
  | { do: "askToReplace" }
  /** Leaves the Machine to its owner. */
  | { do: "handToOwner"; message: string }
  | { do: "deleteMachine" }
  /** Looks for the Machine and the Node that have taken the place, and at the host that is given up. */
  | { do: "checkReplacement" }
  /** Reads what is installed on the BareMetalHost. */
  | { do: "examineHost" }
  /** Takes off what is installed on the BareMetalHost, and what holds it off. */
  | { do: "takeImageOff" }
  | { do: "putImageBack" }
  /** The remediation deletes itself. */
  | { do: "deleteSelf" }
  | { do: "closeDevices" }
  | { do: "checkSuccessor" }
  | { do: "clearMarks" }
  /** `asItIs`: on or off, it stays so. */
  | { do: "releaseHost"; asItIs: boolean }
  | { do: "dropFinalizer" };

/** Something to tell people, as an Event. */
export interface Note {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/**
 * What to do next: `status`, where there is one, is stored first and guarded; then the effects run in order. With neither,
 * the remediation waits `nextCheckMs`, or for something to change where that is absent too.
 */
export interface Decision {
  status?: BareMetalRemediationStatus;
  notes: readonly Note[];
  effects: readonly Effect[];
  nextCheckMs?: number;
}
