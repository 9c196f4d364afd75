import type { BareMetalRemediationStatus } from "../api/bare-metal-remediation.ts";
import type { Node } from "../api/core.ts";
import type { BootOverride, PowerState } from "../bmc/driver.ts";
import type { Plan } from "./plan.ts";
import type { MachineSeen } from "./resolve-subject.ts";
import type { DeviceProblem } from "./reasons.ts";
import type { Attempt, State } from "./state.ts";
import type { EtcdMember } from "./quorum.ts";
import type { InstalledHost, MachineLook, NodeMachine, ReplacementLook } from "./reprovision/looks.ts";
import type { FencedHost, HostOwner, IdentityVerdict, LookupFailure } from "./targets/host.ts";
import type { Away } from "./node-clusters.ts";
import type { Subject } from "./subject.ts";
import type { Turn } from "./turn.ts";

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
  /** Why the node's cluster cannot be worked with; undefined where it can be. */
  away: Away | undefined;
  /** Which cluster answers; undefined for the agent's own, and while it is away. */
  clusterUid: string | undefined;
  /** Which one the agent lives in; undefined until that was asked. */
  ownClusterUid: string | undefined;
  /** The node as watched: it may lag, so it wakes and informs, but nothing unsafe rests on it alone. */
  node: Node | undefined;
  host: { found: true; facts: HostFacts } | LookupFailure;
  /** Why no new power order may be sent. */
  stop: { reason: "Paused" | "Maintenance"; message: string } | undefined;
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

export type HostFacts = Pick<
  FencedHost,
  "ref" | "identity" | "owner" | "lastReboot" | "isPoweredByMark" | "takenBack" | "isInUse"
>;

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

/**
 * What this process has found out by itself about one remediation. All times are monotonic. It starts empty, so after a
 * restart or a change of leader everything that matters is looked at anew.
 */
export interface Seen {
  claim:
    | { owned: true; targetUid: string }
    | { owned: false; by: HostOwner; undoing: boolean; atMs: number }
    | undefined;
  /**
   * The live node at the start of this attempt, `undefined` inside where there is none; and why it is not to be believed to run on
   * the host.
   */
  examined: { node: Node | undefined; dispute?: string | undefined } | undefined;
  /** The subject's Machine as last seen, live or by a watch of its UID. */
  subjectMachine: (MachineSeen & { atMs: number }) | undefined;
  /** Whether the subject's Cluster is gone, by a live look while nothing can be done in it. */
  cluster: { gone: boolean; atMs: number } | undefined;
  /** The members of etcd, looked at live with a node that may run one. */
  members: readonly EtcdMember[];
  /** Used up by the next power order. */
  identity: { verdict: IdentityVerdict; atMs: number } | undefined;
  lease: LeaseSeen | undefined;
  /** The last order that this process sent. */
  order: SentOrder | undefined;
  power: PowerSeen;
  /** The last failure of the devices, until a call succeeds. */
  device: (DeviceProblem & { failures: number; retryAtMs: number }) | undefined;
  /** The last API failure, until a call succeeds. Refused: it does not pass by itself. */
  kube: { message: string; refused: boolean; failures: number; retryAtMs: number } | undefined;
  /** Whose out-of-service taint the node bore after our patch, and for which attempt. */
  taint: { attemptId: string; found: "Ours" | "Foreign" | "NoNode" } | undefined;
  quarantined: boolean;
  /** Whether this process knows that our out-of-service taint is off: it took it off, or saw none, and put none on since. */
  taintCleared: boolean;
  /** Whether all our marks were, since one was last put on. */
  marksCleared: boolean;
  /** Whether the out-of-service taint has made way for the quarantine since it was last put on. */
  swapped: boolean;
  /** Whether pods were deleted since they were last counted. */
  released: boolean;
  drain: { pods: number; attachments: number; atMs: number; checks: number } | undefined;
  override: BootOverride | undefined;
  backup: { status: NonNullable<BareMetalRemediationStatus["backup"]>; resourceVersion: string } | undefined;
  /** The node as deleted by us is gone. */
  nodeDeleted: boolean;
  rebootRecorded: boolean;
  /** UID of the new Node that has got its labels back. */
  restoredUid: string | undefined;
  quarantineLifted: boolean;
  devicesClosed: boolean;
  /** Whether it is this remediation's turn to have its Machine replaced; undefined where it has not asked. */
  replaceTurn: { granted: true } | { granted: false; by: string; atMs: number } | undefined;
  /** What the live node says of its Machine. */
  nodeMachine: NodeMachine | undefined;
  /** Live looks at what a reprovision acts on. */
  machine: MachineLook | undefined;
  installed: InstalledHost | undefined;
  replacement: ReplacementLook | undefined;
  /** The Machine's owner was told that the decision is its own. */
  handedToOwner: boolean;
  /** A live look at who waits for the host. */
  successor: { waiting: boolean; atMs: number } | undefined;
  hostReleased: boolean;
}

export interface LeaseSeen {
  /** UID of the lease; `none` where there is none. */
  uid: string;
  /** Resource version in which its last renewal was seen; empty where there is no lease. */
  resourceVersion: string;
  /** Wall-clock time of the node's own last renewal, by the node's clock. */
  renewTimeMs: number | undefined;
  durationMs: number;
  /** When a renewal was last seen to happen by this process. */
  renewedAtMs: number | undefined;
  /** When the lease was last read live. */
  readAtMs: number;
}

export interface SentOrder {
  attemptId: string;
  action: "ForceOff" | "On";
  /** Uncertain: the answer was lost, so it may have taken effect. Rejected: it has not. */
  outcome: "Acknowledged" | "Uncertain" | "Rejected";
  /** Why it was rejected; kept until a further order is sent, whatever other calls to the device say meanwhile. */
  problem?: DeviceProblem;
  atMs: number;
}

export interface PowerSeen {
  /** `runs` is told where all devices were read (`readWhole`): then `On` is all of them, and `Off` is any of them. */
  last: { state: PowerState; raw: string; atMs: number; runs?: boolean } | undefined;
  /** Off readings in a row since the last power-off order of this process, or since it started. */
  offReads: number;
  /** When the host was last read Off. */
  offAtMs: number | undefined;
  /** When the second Off reading in a row was made. */
  provenAtMs: number | undefined;
}

/** One thing to do, by the shell, one at a time. What it finds goes into `Seen`. */
export type Effect =
  | { do: "addFinalizer" }
  /** Reads the Machine that owns the remediation. */
  | { do: "resolveSubject" }
  /** Looks whether the Cluster of the subject is there still. */
  | { do: "findCluster" }
  /** Asks for the turn to begin. */
  | { do: "askForTurn" }
  | { do: "leaveTurn" }
  /** Hands the lease over to another agent, since this one runs on the node. */
  | { do: "handOver" }
  | { do: "claimHost" }
  /** Reads node, lease, Machine and identity at once. */
  | { do: "examine" }
  | { do: "verifyIdentity" }
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

/** What a stored step makes of what was seen: a new attempt looks at everything anew, and so on. Pure. */
export function seenAfter(seen: Seen, from: State, to: State): Seen {
  const begins = from.name !== to.name;
  switch (to.name) {
    case "Verifying": {
      const again = from.name === "Verifying" && from.attempt.id === to.attempt.id;
      return again ? seen : { ...seen, ...nothingSeenOfAttempt() };
    }
    case "Releasing":
      return begins ? { ...seen, released: false, drain: undefined } : seen;
    case "Undoing":
      if (!begins) return seen;
      // Another owner's plans for the host may have changed since it was last asked.
      return {
        ...seen,
        claim: seen.claim?.owned === true ? seen.claim : undefined,
        // An On of one device says nothing of the others, which may have been turned off.
        power: nothingSeenOfAttempt().power,
        taintCleared: false,
        marksCleared: false,
      };
    default:
      return seen;
  }
}

/** What a process knows when it sees a remediation for the first time. */
export function nothingSeen(): Seen {
  return {
    claim: undefined,
    lease: undefined,
    kube: undefined,
    hostReleased: false,
    replaceTurn: undefined,
    ...nothingSeenOfAttempt(),
  };
}

/** The part of `Seen` that a new attempt starts without. */
function nothingSeenOfAttempt(): Omit<Seen, "claim" | "lease" | "kube" | "hostReleased" | "replaceTurn"> {
  return {
    examined: undefined,
    subjectMachine: undefined,
    cluster: undefined,
    members: [],
    identity: undefined,
    order: undefined,
    power: { last: undefined, offReads: 0, offAtMs: undefined, provenAtMs: undefined },
    device: undefined,
    taint: undefined,
    quarantined: false,
    taintCleared: false,
    marksCleared: false,
    swapped: false,
    released: false,
    drain: undefined,
    override: undefined,
    backup: undefined,
    nodeDeleted: false,
    rebootRecorded: false,
    restoredUid: undefined,
    quarantineLifted: false,
    devicesClosed: false,
    nodeMachine: undefined,
    machine: undefined,
    installed: undefined,
    replacement: undefined,
    handedToOwner: false,
    successor: undefined,
  };
}
