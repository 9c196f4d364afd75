import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BoundedStrategy } from "../decision/strategy.ts";
import type { Observations } from "./observations.ts";
import type { Attempt, State } from "../decision/state.ts";
import type { NodeAtCreation } from "../../../../nodes/creation-record.ts";
import type { Subject } from "../../../../nodes/subject.ts";
import type { Hold } from "./hold.ts";
import type { ClusterProblem } from "./cluster-problem.ts";
import type { HostFacts, LookupFailure } from "./host-facts.ts";

/** The two clocks of a decision: `epochMs` for times that users and other processes read, `monotonicMs` for waits. */
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
    /** The health check has timed this remediation out. */
    timedOut: boolean;
    hasFinalizer: boolean;
    /** The node that its annotation names. */
    named: string | undefined;
    /** It is the child of a request of another kind; the request reports the result to the requester. */
    isRequested: boolean;
    namespace: string;
    name: string;
    /** Milliseconds since it was created, by the API server's clock; Infinity if creationTimestamp is not valid. */
    ageMs: number;
    /** A backup tool has restored it. */
    isRestored: boolean;
    /** A user has confirmed the object with this UID. */
    isConfirmed: boolean;
    /**
     * The boot in which the node was Ready when the remediation was created, empty if it was not Ready; undefined if
     * that is not recorded.
     */
    readyInBoot: string | undefined;
    /** The Node when the remediation was created; undefined if that is not recorded. */
    nodeAtCreation: NodeAtCreation | undefined;
  };
  strategy: BoundedStrategy;
  state: State;
  /** The stored status. The next status is built on it. */
  status: BareMetalRemediationStatus;
  /** The name of the node. For a Machine that has no Node yet, a text that is not a valid name of a node. */
  nodeName: string;
  subject: Subject;
  /** Only the Machine of the subject is known, so the agent must read it to find the node. */
  unresolved: boolean;
  /** What the remediation needs and the agent could not read for `forMs`; undefined if everything was read. */
  unread: { message: string; forMs: number } | undefined;
  /** Why the agent cannot work with the cluster of the node; undefined if it can. */
  clusterProblem: ClusterProblem | undefined;
  /** UID of the cluster that answers; undefined for the agent's own cluster, and while none can be reached. */
  clusterUid: string | undefined;
  /** The operator has declared that the subject's cluster is the one in which the agent runs. */
  isOwnCluster: boolean;
  /** The watched node. The watch may lag, so it alone never justifies a step that could be unsafe. */
  node: Node | undefined;
  host: { found: true; facts: HostFacts } | LookupFailure;
  /** What holds power orders; undefined if they are not held. */
  hold: Hold | undefined;
  /** The answer to this remediation's request for admission; undefined if it has not asked. */
  admission: Admission | undefined;
  /** The node's failure zone by its label. */
  zone: string | undefined;
  /** The agent itself runs on the node. */
  runsHere: boolean;
  /** Other remediations of the same node. */
  siblings: readonly Sibling[];
  /**
   * The time until the duration of the node is over, if the remediation began early; otherwise 0. Until then the agent
   * does not power the host on, and does not power it off again if it comes back by itself.
   */
  earlyForMs: number;
  /** The unchanged lease of the node if the remediation began early; undefined if it did not, or if it is not known. */
  leaseUnchanged: UnchangedLease | undefined;
  /** The time until the deadline of the state, by the monotonic clock of this process; negative after the deadline. */
  remainingMs: number;
  /** When the intent of the last order was stored, on the monotonic clock; -Infinity without an attempt. */
  intentAtMs: number;
  /** Monotonic time at which this process first saw that intent. It was stored no later, even if clocks differ. */
  intentSeenAtMs: number;
  /** Monotonic time at which this process first saw that an AC cycle was ordered; -Infinity if none was. */
  cycleSeenAtMs: number;
  /** An unused id, for an attempt or order that this decision begins. */
  freshId: string;
  observations: Observations;
}

/** The lease of a node as the agent has seen it, whether or not a remediation existed. */
export interface UnchangedLease {
  uid: string;
  resourceVersion: string;
  /** Monotonic time at which this version was first seen. */
  sinceMs: number;
  durationMs: number;
  /** The most recent intervals between two observed renewals. */
  gapsMs: readonly number[];
}

export interface Sibling {
  uid: string;
  namespace: string;
  name: string;
  /** It has no verdict, is not being deleted, and waits because another remediation owns the host. */
  waiting: boolean;
  succeeded: boolean;
  /** When its current attempt proved the host off. */
  offConfirmedAt: string | undefined;
}

/** A snapshot in a state that has an attempt, with that attempt. */
export interface AttemptSnapshot extends Snapshot {
  attempt: Attempt;
}

/** Whether a remediation may begin. If not, `message` says why and gives its position in the queue. */
export type Admission =
  | { granted: true }
  | { granted: false; reason: "WaitingForTurn" | "ControlPlaneQuorum"; message: string };
