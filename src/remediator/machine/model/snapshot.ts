import type { BareMetalRemediationStatus } from "../../../api/bare-metal-remediation.ts";
import type { Node } from "../../../api/core.ts";
import type { Plan } from "./strategy.ts";
import type { Seen } from "./observations.ts";
import type { Attempt, State } from "./state.ts";
import type { Subject } from "../../../nodes/subject.ts";
import type { Stop } from "./hold.ts";
import type { Away } from "./away.ts";
import type { HostFacts, LookupFailure } from "./host-facts.ts";

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

/** A snapshot in a state that has an attempt. */
export interface Walk extends Snapshot {
  attempt: Attempt;
}

/** Whether a remediation may begin, and if not, why: with its place among those that wait. */
export type Turn =
  | { granted: true }
  | { granted: false; reason: "WaitingForTurn" | "ControlPlaneQuorum"; message: string };
