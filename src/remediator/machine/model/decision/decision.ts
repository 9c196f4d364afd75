import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { BootOverride } from "../../../../bmc/interface/driver.ts";

/** One call that the shell makes, one at a time. It reports events, which `observe` adds to the observations. */
export type Effect =
  | { do: "addFinalizer" }
  /** Reads the Machine that owns the remediation, to find its node. */
  | { do: "resolveSubject" }
  /** Reads whether the outage of an old or restored remediation is over. */
  | { do: "examineRequest" }
  /** Reads whether the Cluster of the subject still exists. */
  | { do: "findCluster" }
  /** Asks for admission. */
  | { do: "askForAdmission" }
  | { do: "withdrawAdmission" }
  /** Hands the agent lease over to another agent, because this one runs on the node. */
  | { do: "handOver" }
  | { do: "claimHost" }
  /** Reads the node, its lease, its Machine, the host's identity and what holds power orders. */
  | { do: "examine" }
  /** Reads only the host's identity and what holds power orders. */
  | { do: "verifyIdentity" }
  /** Reads live what holds power orders. */
  | { do: "readHolds" }
  | { do: "readLease"; withinMs?: number }
  | { do: "quarantine"; attemptId: string }
  /** Changes the quarantine's signature to see whether etcd accepts writes, and then reads the lease. */
  | { do: "proveWritable" }
  /** Sends an NMI. The status already records it, so that it is never sent twice. */
  | { do: "sendNmi"; withinMs: number }
  /** Orders an AC cycle. The status already records it, so that it is never sent twice. */
  | { do: "acCycle"; attemptId: string; withinMs: number }
  | { do: "forceOff"; attemptId: string }
  /** `withinMs` bounds the time of the reading. */
  | { do: "readPower"; withinMs?: number }
  /** Begins to read what the BMC shows about why the host died, and does not wait for the result. */
  | { do: "beginEvidence" }
  /** Reads the power of all devices, because any of them may have been turned off. */
  | { do: "readWhole" }
  | { do: "taint"; attemptId: string }
  /** Takes our out-of-service taint off. */
  | { do: "untaint" }
  /** Deletes pods, no longer than `withinMs`. */
  | { do: "releasePods"; withinMs: number }
  | { do: "checkDrained" }
  /** Removes the out-of-service taint and adds the quarantine taint in one patch. */
  | { do: "swapMarks"; attemptId: string }
  | { do: "setBootOverride"; override: BootOverride }
  | { do: "backupNode" }
  | { do: "deleteNode" }
  /** `outletsOnly`: no device but the outlets of the host gets the order. */
  | { do: "powerOn"; attemptId: string; outletsOnly?: boolean }
  | { do: "recordReboot"; offConfirmedAtMs: number; onOrderedAtMs: number }
  /** Takes the quarantine off if the live node is in a new boot. */
  | { do: "liftQuarantine" }
  | { do: "restoreNode" }
  /** Reads which Machine the node names. */
  | { do: "findMachine" }
  /** Reads the Machine, its owner and its host. */
  | { do: "examineMachine" }
  | { do: "askToReplace" }
  /** Informs the owner of the Machine that it decides about the Machine. */
  | { do: "handToOwner"; message: string }
  | { do: "deleteMachine" }
  /** Reads which Machine and Node have replaced the old ones, and whether the host may be released. */
  | { do: "checkReplacement" }
  /** Reads what is installed on the BareMetalHost. */
  | { do: "examineHost" }
  /** Removes the image of the BareMetalHost and the annotation that keeps the host off. */
  | { do: "takeImageOff" }
  | { do: "putImageBack" }
  /** The remediation deletes itself. */
  | { do: "deleteSelf" }
  | { do: "closeDevices" }
  | { do: "checkSuccessor" }
  | { do: "clearMarks" }
  /** `asItIs`: the release leaves the power of the host as it is, on or off. */
  | { do: "releaseHost"; asItIs: boolean }
  | { do: "dropFinalizer" };

/** A Kubernetes Event for the operator. */
export interface Note {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/**
 * What to do next. The shell stores `status` first, with a guard, and then runs the effects in order. If there is
 * neither, it decides again after `nextCheckMs` or after a change, or only after a change if `nextCheckMs` is absent.
 */
export interface Decision {
  status?: BareMetalRemediationStatus;
  notes: readonly Note[];
  effects: readonly Effect[];
  nextCheckMs?: number;
}
