import type { Node } from "../../../api/kubernetes/core.ts";
import type { NodeHealthCheckStatus, UnhealthyNode } from "../../../api/ironfence/node-health-check.ts";
import type { Announcement } from "../../shared/model/announcement.ts";
import type { CountedAttempt } from "../../shared/model/attempts.ts";
import type { NodeCounts } from "./threshold.ts";
import type { NodeHealth, SkippedDuration } from "./health.ts";
import type { NodePolicy } from "./policy.ts";
import type { RecordAttempts } from "../../shared/model/health-check-decision.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { EarlyFacts } from "../../shared/model/early-facts.ts";
import type { ObservedHost } from "../../shared/model/observed-host.ts";
import type { Disabled } from "./status.ts";
import type { Template } from "../../shared/model/template.ts";

// The input and the result of `decideNodeCheck`.

/**
 * Reasons of the events on a NodeHealthCheck; all but ClockSkew, DurationSkipped, OffProofUnavailable and
 * RemediationFailed are upstream's.
 */
export type NodeEventReason =
  | "Enabled"
  | "Disabled"
  | "DetectedUnhealthy"
  | "RemediationCreated"
  | "RemediationRemoved"
  | "RemediationSkipped"
  | "InvalidNodeLabel"
  | "NoTemplateLeft"
  | "RemediationFailed"
  | "ClockSkew"
  | "DurationSkipped"
  | "OffProofUnavailable"
  | "StormRecoveryStarted"
  | "StormRecoveryCooldownStarted"
  | "StormRecoveryEnded";

export type NodeAnnouncement = Announcement<NodeEventReason>;

/** Everything that a decision about one node depends on. */
export interface NodeFacts {
  name: string;
  /** Undefined: there is no such node. */
  node: Node | undefined;
  /** Whether the health check's selector covers it. */
  selected: boolean;
  health: NodeHealth;
  /** Its entry in the health check's status. */
  previous: UnhealthyNode | undefined;
  /** CRs for it that this health check owns. */
  remediations: readonly Remediation[];
  /** CRs with its name that this health check does not own. */
  foreign: readonly ForeignRemediation[];
  /** The attempts that this health check has recorded. */
  attempts: readonly CountedAttempt[];
  /** The attempts that other health checks have recorded. They count against the budget as well. */
  attemptsOfOthers: readonly CountedAttempt[];
  /**
   * Which other health check handles this node: an older one, or one with a remediation in progress. Text for the
   * operator.
   */
  peerCheck: string | undefined;
  deferral: Deferral | undefined;
  /** When the agent's lease on the node is due for renewal; undefined if the agent does not know that it holds one. */
  leaseRenewAtMs: number | undefined;
  /** What is wrong with its transition times. Text for the operator; `health` takes it into account. */
  skew: string | undefined;
  /** Since when its FencingTarget has been Ready; undefined if it is not, or if the health check does not use it. */
  fenceableSinceMs: number | undefined;
  /** What is known of the power of its host; undefined if the health check does not use it. */
  host: ObservedHost | undefined;
  /** What is known of its lease; undefined if the health check does not use it. */
  early: EarlyFacts | undefined;
}

/** A remediation of another owner. */
export interface ForeignRemediation {
  kind: string;
  namespace: string | undefined;
}

/** The only condition that OKD's own health check for spot instances (machine-api-termination-handler) uses. */
export const TERMINATING = "Terminating";

/** What OKD itself reports that matters for remediation. */
export interface PlatformFacts {
  /** Whether this is OKD, which reports upgrades. */
  isOkd: boolean;
  /** Which ClusterVersion is being rolled out. */
  upgrading: string | undefined;
  /** OKD's own health checks would remediate the same nodes. */
  conflict: Disabled | undefined;
  /** OKD's health check for nodes that their cloud provider terminates exists: it handles those nodes. */
  hasTerminationHandler: boolean;
  /** What cannot be read. Text for the operator; if it is set, no new remediation may start. */
  unknown: string | undefined;
}

/** A kind of remediations, as a record in the status names it. */
export interface RemediationKind {
  apiVersion: string;
  kind: string;
}

/**
 * Everything that a decision about one health check depends on, at one moment. A log of decisions holds all of it: it
 * is plain data, apart from the selector of the policy, which `decide` does not call.
 */
export interface NodeCheckSnapshot {
  name: string;
  /** Of the spec. */
  generation: number | undefined;
  status: NodeHealthCheckStatus;
  policy: NodePolicy;
  /** The template of each step of the policy, in their order, or why there are none. */
  templates: readonly Template[] | Disabled;
  /** Whether there is no room to record another attempt. If so, nothing waits for the record. */
  isHistoryFull: boolean;
  /** Nodes that the selector covers. */
  selectedNodes: number;
  /**
   * Every node that is not healthy, has a remediation, has an entry in the status, or was confirmed by the operator.
   */
  nodes: readonly NodeFacts[];
  /** Nodes that count as healthy although the renewals of their leases are overdue. */
  overdueNodes: number;
  /** The count of a live list, made because the view may be behind; undefined if there is none. */
  liveCounts: NodeCounts | undefined;
  /** Control plane nodes that any health check has in remediation. */
  controlPlaneBusy: readonly string[];
  /** Kinds of remediations that cannot be read now, so that an absent CR is not proven to be deleted. */
  unseenKinds: readonly RemediationKind[];
  /** What OKD reports; see `PlatformFacts`. */
  platform: Pick<PlatformFacts, "isOkd" | "upgrading" | "hasTerminationHandler">;
  /**
   * Why nothing may start now: the view of the cluster is stale, or the health check is being deleted. Text for the
   * operator.
   */
  blocked: string | undefined;
  /** How far the clock of this process is wrong. Text for the operator. */
  clockSkew: string | undefined;
  /** Why no off proof can be read although the health check uses them. Text for the operator. */
  hostProblem: string | undefined;
}

/** `restarted`: another one takes its place, for example because every step has failed and the list starts again. */
export type DeletionReason = "nodeHealthy" | "nodeGone" | "nodeNotSelected" | "restarted";

export type NodeAction =
  /** Take the node's lease for `leaseDurationMs`, then create the CR. */
  | {
      type: "create";
      node: Node;
      template: Template;
      leaseDurationMs: number;
      /** Why the node is unhealthy. Text for the operator. */
      because: string;
      skipped: SkippedDuration | undefined;
    }
  /** `value` undefined removes the annotation. */
  | { type: "annotate"; remediation: Remediation; annotation: string; value: string | undefined }
  /** `because` is what a live read must confirm. */
  | { type: "delete"; remediation: Remediation; because: DeletionReason }
  | RecordAttempts
  | { type: "renewLease"; node: Node; leaseDurationMs: number }
  | { type: "releaseLease"; nodeName: string }
  /** Remove the annotation by which the operator confirmed the node's health. */
  | { type: "consumeConfirmation"; node: Node };

/** The decision about one node, and why; for logs, Events and `explain`. */
export interface NodeOutcome {
  name: string;
  /** One word for what is done, for example `remediating`, `create`, `excluded`. */
  outcome: string;
  /** The reason, in a sentence. */
  reason: string;
  /** Wall-clock time at which the decision for this node changes although no input changes. */
  nextCheckMs: number | undefined;
}

/** What keeps a health check from starting anything, in one word. */
export type GateOutcome = "disabled" | "paused" | "upgrading" | "blocked" | "threshold" | "storm";

export interface NodeCheckDecision {
  /** Why nothing new may start, whatever the node; undefined if it may. */
  gate: { outcome: GateOutcome; reason: string } | undefined;
  actions: NodeAction[];
  status: NodeHealthCheckStatus;
  /** Wall-clock time at which the decision changes although no input changes. */
  nextCheckMs: number | undefined;
  /** Changes to announce when the status that shows them is stored. */
  transitions: NodeAnnouncement[];
  /** Announcements whose causes stand now. */
  standing: NodeAnnouncement[];
  nodes: NodeOutcome[];
}
