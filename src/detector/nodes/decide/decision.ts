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
 * Reasons of Kubernetes Events on a NodeHealthCheck. All of them come from upstream except ClockSkew, DurationSkipped,
 * OffProofUnavailable and RemediationFailed.
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
  /** Undefined if the node does not exist. */
  node: Node | undefined;
  /** Whether the selector of the health check matches the node. */
  selected: boolean;
  health: NodeHealth;
  /** Its entry in the health check's status. */
  previous: UnhealthyNode | undefined;
  /** CRs for the node that this health check owns. */
  remediations: readonly Remediation[];
  /** CRs with the name of the node that this health check does not own. */
  foreign: readonly ForeignRemediation[];
  /** The attempts that this health check has recorded. */
  attempts: readonly CountedAttempt[];
  /** The attempts that other health checks have recorded. They count against the budget as well. */
  attemptsOfOthers: readonly CountedAttempt[];
  /**
   * Which other health check handles this node, as text for the operator: an older one, or one with a remediation in
   * progress.
   */
  peerCheck: string | undefined;
  deferral: Deferral | undefined;
  /** When the remediation lease must be renewed; undefined if the agent does not know that it holds one. */
  leaseRenewAtMs: number | undefined;
  /** What is wrong with its transition times, as text for the operator. `health` takes this into account. */
  skew: string | undefined;
  /**
   * Since when its FencingTarget has been Ready; undefined if it is not Ready, or if no BareMetalRemediation is
   * recorded for the node.
   */
  fenceableSinceMs: number | undefined;
  /** What is known about the power of its host; undefined if the health check does not need it. */
  host: ObservedHost | undefined;
  /** What is known about its node lease; undefined if the health check does not need it. */
  early: EarlyFacts | undefined;
}

/** A remediation with another owner. */
export interface ForeignRemediation {
  kind: string;
  namespace: string | undefined;
}

/** The only condition that OKD's own health check for spot instances (machine-api-termination-handler) uses. */
export const TERMINATING = "Terminating";

/** What OKD reports that matters for remediation. */
export interface PlatformFacts {
  /** Whether the cluster is OKD. */
  isOkd: boolean;
  /** The name of the ClusterVersion that is being rolled out. */
  upgrading: string | undefined;
  /** Why NodeHealthChecks are disabled: MachineHealthChecks of OKD would remediate the same nodes. */
  conflict: Disabled | undefined;
  /** Whether OKD's health check for nodes that their cloud provider terminates exists. It handles those nodes. */
  hasTerminationHandler: boolean;
  /** What cannot be read, as text for the operator. If it is set, no new remediation may start. */
  unknown: string | undefined;
}

/** A kind of remediation, as a record in the status names it. */
export interface RemediationKind {
  apiVersion: string;
  kind: string;
}

/**
 * Everything that a decision about one health check depends on, at one moment. It is plain data, so that a log of
 * decisions can contain all of it. The only exception is the selector of the policy, which `decide` does not call.
 */
export interface NodeCheckSnapshot {
  name: string;
  /** The generation of the spec. */
  generation: number | undefined;
  status: NodeHealthCheckStatus;
  policy: NodePolicy;
  /** The template of each step of the policy, in order, or why there are none. */
  templates: readonly Template[] | Disabled;
  /** Whether there is no room to record another attempt. If so, actions do not wait until attempts are recorded. */
  isHistoryFull: boolean;
  /** How many nodes the selector matches. */
  selectedNodes: number;
  /**
   * Every node that is not healthy, has a remediation, has an entry in the status, was confirmed to be healthy by the
   * operator, has a remediation lease of the agent, or may be proven off early.
   */
  nodes: readonly NodeFacts[];
  /** How many nodes count as healthy although the renewals of their leases are overdue. */
  overdueNodes: number;
  /** The counts of a live list; undefined if there is none, because the view is fresh. */
  liveCounts: NodeCounts | undefined;
  /** Control plane nodes that any health check is remediating. */
  controlPlaneBusy: readonly string[];
  /** Kinds of remediations that cannot be read now. For these kinds, a missing CR is not proven to be deleted. */
  unseenKinds: readonly RemediationKind[];
  /** What OKD reports; see `PlatformFacts`. */
  platform: Pick<PlatformFacts, "isOkd" | "upgrading" | "hasTerminationHandler">;
  /**
   * Why nothing may start now, as text for the operator: for example, the view of the cluster is stale, or the health
   * check is being deleted.
   */
  blocked: string | undefined;
  /** How far the clock of this process is wrong, as text for the operator. */
  clockSkew: string | undefined;
  /** Why no off proof can be read although the health check uses off proofs, as text for the operator. */
  hostProblem: string | undefined;
}

/** `restarted`: another remediation follows, for example because every step has failed and the next round starts. */
export type DeletionReason = "nodeHealthy" | "nodeGone" | "nodeNotSelected" | "restarted";

export type NodeAction =
  /** Take the remediation lease of the node for `leaseDurationMs`, then create the CR. */
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
  /** Read the CR live, and delete it only if `because` still holds. */
  | { type: "delete"; remediation: Remediation; because: DeletionReason }
  | RecordAttempts
  | { type: "renewLease"; node: Node; leaseDurationMs: number }
  | { type: "releaseLease"; nodeName: string }
  /** Remove the annotation by which the operator confirmed the node's health. */
  | { type: "consumeConfirmation"; node: Node };

/** What was decided about one node, and why; for logs, Events and `explain`. */
export interface NodeOutcome {
  name: string;
  /** One word for what is done, for example `remediating`, `create`, `excluded`. */
  outcome: string;
  /** The reason, in a sentence. */
  reason: string;
  /** The next wall-clock time at which the decision for this node may change without a change of its input. */
  nextCheckMs: number | undefined;
}

/** Why a health check starts no remediation, in one word. */
export type GateOutcome = "disabled" | "paused" | "upgrading" | "blocked" | "threshold" | "storm";

export interface NodeCheckDecision {
  /** Why no new remediation may start for any node; undefined if one may start. */
  gate: { outcome: GateOutcome; reason: string } | undefined;
  actions: NodeAction[];
  status: NodeHealthCheckStatus;
  /** The next wall-clock time at which the decision may change without a change of its input. */
  nextCheckMs: number | undefined;
  /** Announcements to record when the status that shows them was stored. */
  transitions: NodeAnnouncement[];
  /** Announcements whose causes exist now. */
  standing: NodeAnnouncement[];
  nodes: NodeOutcome[];
}
