import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { BootOverride } from "../../../../bmc/interface/driver.ts";

/** One call that the shell makes, one at a time. It returns an event, which `observe` adds to the observations. */
export type Effect =
  | { do: "addFinalizer" }
  /** Reads the Machine that owns the remediation. */
  | { do: "resolveSubject" }
  /** Reads whether an old remediation is still wanted: the node may be healthy again. */
  | { do: "examineRequest" }
  /** Reads whether the Cluster of the subject still exists. */
  | { do: "findCluster" }
  /** Asks for admission. */
  | { do: "askForAdmission" }
  | { do: "withdrawAdmission" }
  /** Hands the lease over to another agent, since this one runs on the node. */
  | { do: "handOver" }
  | { do: "claimHost" }
  /** Reads node, lease, Machine, identity and what holds power orders at once. */
  | { do: "examine" }
  /** The same without the node. */
  | { do: "verifyIdentity" }
  /** Reads live what holds power orders. */
  | { do: "readHolds" }
  | { do: "readLease"; withinMs?: number }
  | { do: "quarantine"; attemptId: string }
  /**
   * Changes the quarantine's signature, so that it is known whether etcd takes writes, and reads the lease after that.
   */
  | { do: "proveWritable" }
  /** Sends an NMI. What is stored says so already. */
  | { do: "sendNmi"; withinMs: number }
  /** Orders an AC cycle. What is stored says so already. */
  | { do: "acCycle"; attemptId: string; withinMs: number }
  | { do: "forceOff"; attemptId: string }
  /** `withinMs` bounds the time of the reading. */
  | { do: "readPower"; withinMs?: number }
  /** Begins to read what the BMC shows of why the host died. Nothing waits for it. */
  | { do: "beginEvidence" }
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
  /** Reads which Machine and Node have replaced the old ones, and the state of the host that is given up. */
  | { do: "checkReplacement" }
  /** Reads what is installed on the BareMetalHost. */
  | { do: "examineHost" }
  /** Takes off what is installed on the BareMetalHost, and what keeps it off. */
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

/** Something to report to the operator, as an Event. */
export interface Note {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/**
 * What to do next. A `status` is stored first, with a guard. Then the effects run in order. With neither, the
 * remediation waits for `nextCheckMs` milliseconds, or only for a change if `nextCheckMs` is absent.
 */
export interface Decision {
  status?: BareMetalRemediationStatus;
  notes: readonly Note[];
  effects: readonly Effect[];
  nextCheckMs?: number;
}
