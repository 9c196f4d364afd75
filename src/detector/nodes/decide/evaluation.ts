import type { GateOutcome, NodeAnnouncement, NodeCheckDecision, NodeFacts, NodeCheckSnapshot } from "./decision.ts";
import type { FailedNode } from "./status.ts";

/**
 * Why a health check starts no new remediation for any node. Timeouts, cleanup, leases and the status are still
 * handled.
 */
export interface NodeCheckGate {
  outcome: GateOutcome;
  reason: string;
  announcement: NodeAnnouncement | undefined;
}

/** One evaluation by `decideNodeCheck`: its input, and its results so far. */
export interface NodeCheckEvaluation {
  readonly snapshot: NodeCheckSnapshot;
  readonly nowMs: number;
  readonly gate: NodeCheckGate | undefined;
  /** Control plane nodes that are being remediated, including those that start in this evaluation. */
  readonly controlPlaneBusy: Set<string>;
  /** Nodes that have used up their attempts. */
  readonly budgetSpent: string[];
  /**
   * Nodes with a remediation of this health check in progress, and when the oldest one of each node started (RFC 3339).
   */
  readonly inFlight: Record<string, string>;
  /** Nodes whose remediation has failed, and for which nothing else is in progress. */
  readonly failed: FailedNode[];
  readonly decision: Omit<NodeCheckDecision, "status" | "gate">;
}

/** Skips a node, and records an Event each time the reason changes. */
export function skipNode(evaluation: NodeCheckEvaluation, facts: NodeFacts, outcome: string, reason: string): void {
  announceNode(evaluation, {
    key: `${facts.name}/${reason}`,
    type: "Warning",
    reason: "RemediationSkipped",
    note: reason,
  });
  concludeNode(evaluation, facts, outcome, reason);
}

/** Adds a standing announcement. */
export function announceNode(evaluation: NodeCheckEvaluation, announcement: NodeAnnouncement): void {
  evaluation.decision.standing.push(announcement);
}

/** Records the decision about a node. */
export function concludeNode(evaluation: NodeCheckEvaluation, facts: NodeFacts, outcome: string, reason: string): void {
  evaluation.decision.nodes.push({ name: facts.name, outcome, reason, nextCheckMs: undefined });
}
