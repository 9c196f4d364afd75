import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BoundedStrategy } from "../decision/strategy.ts";
import type { Observations } from "./observations.ts";
import type { Attempt, State } from "../decision/state.ts";
import type { Subject } from "../../../../nodes/subject.ts";
import type { Hold } from "./hold.ts";
import type { ClusterProblem } from "./cluster-problem.ts";
import type { HostFacts, LookupFailure } from "./host-facts.ts";

/** The two times that a decision needs: one for what users and other machines read, one for waits. */
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
    /** It is the child of a request of another kind, which reports to the requester. */
    isRequested: boolean;
    namespace: string;
    name: string;
    /**
     * Milliseconds since it was created, by the API server's clock, which stamped that; Infinity if the stamp cannot be
     * read.
     */
    ageMs: number;
    /** A backup tool has restored it. */
    isRestored: boolean;
    /** A user has confirmed this very object. */
    isConfirmed: boolean;
  };
  strategy: BoundedStrategy;
  state: State;
  /** As stored; the base of what is stored next. */
  status: BareMetalRemediationStatus;
  /** The name of the node. For a Machine that has no Node yet, a text that is not a valid name of a node. */
  nodeName: string;
  subject: Subject;
  /** The subject is known by its Machine alone, which has to be read first. */
  unresolved: boolean;
  /**
   * What the remediation needs and the agent cannot read, as a text, and for how long; undefined if everything is
   * read.
   */
  unread: { message: string; forMs: number } | undefined;
  /** Why the agent cannot work with the cluster of the node; undefined if it can. */
  clusterProblem: ClusterProblem | undefined;
  /** Which cluster answers; undefined for the agent's own, and while it cannot be reached. */
  clusterUid: string | undefined;
  /** The subject's cluster is the one that the operator has named as the agent's own. */
  isOwnCluster: boolean;
  /** The node as watched: it may lag, so it wakes and informs, but nothing unsafe rests on it alone. */
  node: Node | undefined;
  host: { found: true; facts: HostFacts } | LookupFailure;
  /** What holds power orders; undefined if they are not held. */
  hold: Hold | undefined;
  /** The answer to its request for an admission; undefined if it has not asked. */
  admission: Admission | undefined;
  /** The node's failure zone by its label. */
  zone: string | undefined;
  /** The agent itself runs on the node. */
  runsHere: boolean;
  /** Remediations of the same node in addition to this one. */
  siblings: readonly Sibling[];
  /**
   * For how long the host is still not to be powered on, nor off again if it comes back by itself, because the
   * remediation began before the duration of its node was over; 0 if it did not, or if that time is over.
   */
  earlyForMs: number;
  /**
   * Since when the lease of the node has been seen unchanged, on the monotonic clock, if the remediation began early;
   * undefined if it did not, or if that is not known.
   */
  leaseUnchanged: UnchangedLease | undefined;
  /** What is left of the present state's time on this process's own clock, which cannot jump. */
  remainingMs: number;
  /** When the intent of the last order was stored, on the monotonic clock; -Infinity without an attempt. */
  intentAtMs: number;
  /** When this process first saw that intent, monotonic: it was stored no later, whatever the clocks say. */
  intentSeenAtMs: number;
  /** When this process first saw that an AC cycle was ordered, monotonic; -Infinity if none was. */
  cycleSeenAtMs: number;
  /** An id that was never used before, for an attempt or order that this decision begins. */
  freshId: string;
  observations: Observations;
}

/** A lease of a node as the agent has seen it, whatever remediations there are. */
export interface UnchangedLease {
  uid: string;
  resourceVersion: string;
  /** Monotonic time at which this version was first seen. */
  sinceMs: number;
  durationMs: number;
  /** The last times between two renewals that were seen. */
  gapsMs: readonly number[];
}

export interface Sibling {
  uid: string;
  namespace: string;
  name: string;
  /** Not final, not ending, and it found the host busy. */
  waiting: boolean;
  succeeded: boolean;
  /** When its present attempt proved the host off. */
  offConfirmedAt: string | undefined;
}

/** A snapshot in a state that has an attempt, with that attempt. */
export interface AttemptSnapshot extends Snapshot {
  attempt: Attempt;
}

/** Whether a remediation may begin. If it may not, why, and its position in the queue. */
export type Admission =
  | { granted: true }
  | { granted: false; reason: "WaitingForTurn" | "ControlPlaneQuorum"; message: string };
