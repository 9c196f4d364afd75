import type { Node } from "../../../api/core.ts";
import type { NodeHealthCheckStatus, RemediationRecord, UnhealthyNode } from "../../../api/node-health-check.ts";
import type { Announcement } from "../../shared/model/announcement.ts";
import type { CountedAttempt } from "../../shared/model/attempts.ts";
import type { Census } from "./threshold.ts";
import type { Health, Skipped } from "./health.ts";
import type { Policy } from "./policy.ts";
import type { Step } from "../../shared/model/template-reference.ts";
import type { RecordAttempts } from "../../shared/model/family-decision.ts";
import type { Deferral } from "../../shared/model/deferral.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { ObservedHost } from "../../shared/model/observed-host.ts";
import type { Disabled } from "./status.ts";
import type { Template } from "../../shared/model/template.ts";

// What `decide` is given and what it answers.

/** Reasons of the events on a NodeHealthCheck; all but ClockSkew, DurationSkipped, OffProofUnavailable and RemediationFailed are upstream's. */
export type EventReason =
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

export type NodeAnnouncement = Announcement<EventReason>;

/** Everything that a decision about one node depends on. */
export interface NodeFacts {
  name: string;
  /** Undefined: there is no such node. */
  node: Node | undefined;
  /** Whether the health check's selector covers it. */
  selected: boolean;
  health: Health;
  /** Its entry in the health check's status. */
  previous: UnhealthyNode | undefined;
  /** CRs for it that this health check owns. */
  remediations: readonly Remediation[];
  /** What this health check remembers of its attempts. */
  attempts: readonly CountedAttempt[];
  /** The attempts that other health checks remember: they count against the budget, too. */
  attemptsOfOthers: readonly CountedAttempt[];
  /** Which other health check handles this node, in words: an older one, or one with a remediation in progress. */
  peerCheck: string | undefined;
  deferral: Deferral | undefined;
  /** When our lease on the node is due for renewal; undefined: not known to be held. */
  leaseRenewAtMs: number | undefined;
  /** What is wrong with its transition times, in words; `health` is judged with that in mind. */
  skew: string | undefined;
  /** Since when its FencingTarget has been Ready; undefined if it is not, or if the health check does not use it. */
  fenceableSinceMs: number | undefined;
  /** What is known of its host's power; undefined if the health check does not ask. */
  host: ObservedHost | undefined;
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
  /** What cannot be read, in words: then no new remediation may start. */
  unknown: string | undefined;
}

/** Everything that a decision about one health check depends on, at one moment. */
export interface Snapshot {
  name: string;
  /** Of the spec. */
  generation: number | undefined;
  status: NodeHealthCheckStatus;
  policy: Policy;
  /** Resolved templates by step, or why there are none. */
  templates: ReadonlyMap<Step, Template> | Disabled;
  /** Whether no further attempt can be remembered: then none is waited for. */
  isHistoryFull: boolean;
  /** Nodes that the selector covers. */
  selectedNodes: number;
  /** Every node that is not healthy, has a remediation, stands in the status or was confirmed by the operator. */
  nodes: readonly NodeFacts[];
  /** The count of a live list, made because the view may be behind; undefined if there is none. */
  liveCensus: Census | undefined;
  /** Control plane nodes that any health check has in remediation. */
  controlPlaneBusy: ReadonlySet<string>;
  /** Whether a CR with this name is there that this health check does not own. */
  isForeign: (template: Template, name: string) => boolean;
  /** Whether CRs of the record's kind can be seen now. */
  canSee: (record: RemediationRecord) => boolean;
  /** What the cluster's own machinery says; see `PlatformFacts`. */
  platform: Pick<PlatformFacts, "isOkd" | "upgrading" | "hasTerminationHandler">;
  /** Why nothing may start just now, in words: the view of the cluster is stale, or the health check is being deleted. */
  blocked: string | undefined;
  /** How far this process' clock is off, in words. */
  clockSkew: string | undefined;
  /** Why no host can be known to be off though the health check asks, in words. */
  hostProblem: string | undefined;
}

/** `restarted`: another one takes its place, for example because every step has failed and the list starts again. */
export type DeletionReason = "nodeHealthy" | "nodeGone" | "nodeNotSelected" | "restarted";

export type Action =
  /** Take the node's lease for `leaseDurationMs`, then create the CR. */
  | { type: "create"; node: Node; template: Template; leaseDurationMs: number; skipped: Skipped | undefined }
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
  /** Wall-clock time at which the answer for this node changes though nothing else does. */
  nextCheckMs: number | undefined;
}

export interface Decision {
  /** Why nothing new may start, whatever the node; undefined if it may. */
  gate: { outcome: string; reason: string } | undefined;
  actions: Action[];
  status: NodeHealthCheckStatus;
  /** Wall-clock time at which the answer changes though nothing else does. */
  nextCheckMs: number | undefined;
  /** Changes to announce once the status that shows them is stored. */
  transitions: NodeAnnouncement[];
  /** Announcements that stand for as long as their keys are among these. */
  standing: NodeAnnouncement[];
  nodes: NodeOutcome[];
}
