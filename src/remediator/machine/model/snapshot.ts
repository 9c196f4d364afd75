import type { BareMetalRemediationStatus } from "../../../api/bare-metal-remediation.ts";
import type { Node } from "../../../api/core.ts";
import type { BootOverride } from "../../../bmc/driver.ts";
import type { Plan } from "./strategy.ts";
import type { Seen } from "./observations.ts";
import type { Attempt, State } from "./state.ts";
import type { FencedHost, LookupFailure } from "../../hosts/host.ts";
import type { Away } from "../../clusters/node-clusters.ts";
import type { Subject } from "../../../nodes/subject.ts";
import type { Turn } from "../rules/admission.ts";

/** The two times that a decision needs: one for what people and other machines read, one for waits. */
export interface Now {
  epochMs: number;
  monotonicMs: number;
}

/** All that a decision about one remediation may depend on. */
export interface Snapshot {
  remediation: {
    uid: string;
    generation: number | undefined;
    /** deletionTimestamp is set. */
    deleting: boolean;
    /** The health check has given this remediation up. */
    timedOut: boolean;
    hasFinalizer: boolean;
    /** The node that its annotation names. */
    named: string | undefined;
    /** It is the child of a request of another kind, which tells whoever asked. */
    isRequested: boolean;
    namespace: string;
    name: string;
    createdAtMs: number;
    /** A backup tool has restored it. */
    isRestored: boolean;
    /** A person has confirmed this very object. */
    isConfirmed: boolean;
  };
  plan: Plan;
  state: State;
  /** As stored; the base of what is stored next. */
  status: BareMetalRemediationStatus;
  /** The node's name; for a Machine that has not become a node words in its place, which are no node's name. */
  nodeName: string;
  subject: Subject;
  /** The subject is known by its Machine alone, which has to be read first. */
  unresolved: boolean;
  /** What cannot be read that the remediation needs, in words, and for how long that is so; undefined where all is read. */
  unread: { message: string; forMs: number } | undefined;
  /** Why the node's cluster cannot be worked with; undefined where it can be. */
  away: Away | undefined;
  /** Which cluster answers; undefined for the agent's own, and while it is away. */
  clusterUid: string | undefined;
  /** The subject's cluster is the one that the operator has named as the agent's own. */
  isOwnCluster: boolean;
  /** The node as watched: it may lag, so it wakes and informs, but nothing unsafe rests on it alone. */
  node: Node | undefined;
  host: { found: true; facts: HostFacts } | LookupFailure;
  /** What holds power orders; undefined where nothing does. */
  stop: Stop | undefined;
  /** What it was told when it asked for its turn; undefined where it has not. */
  turn: Turn | undefined;
  /** The node's failure zone by its label. */
  zone: string | undefined;
  /** The agent itself runs on the node. */
  runsHere: boolean;
  /** Remediations of the same node beside this one. */
  siblings: readonly Sibling[];
  /** What is left of the present state's time on this process's own clock, which cannot jump. */
  remainingMs: number;
  /** An id nobody has used, for whatever this decision begins. */
  freshId: string;
  seen: Seen;
}

/** Why power orders are held. Paused: no new power-off is sent. Maintenance: no order at all, an On included. */
export interface Stop {
  reason: "Paused" | "Maintenance";
  message: string;
  /** Nobody is known to have paused: what would say so cannot be read. */
  isUnread?: true;
}

export type HostFacts = Pick<
  FencedHost,
  "ref" | "identity" | "owner" | "lastReboot" | "isPoweredByMark" | "isInUse"
> & { takenBack: ReturnType<FencedHost["takenBack"]> };

export interface Sibling {
  uid: string;
  namespace: string;
  name: string;
  /** Not final, not ending, and told that the host is busy. */
  waiting: boolean;
  succeeded: boolean;
  /** When its present attempt proved the host off. */
  offConfirmedAt: string | undefined;
}

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

/** A snapshot in a state that has an attempt. */
export interface Walk extends Snapshot {
  attempt: Attempt;
}
