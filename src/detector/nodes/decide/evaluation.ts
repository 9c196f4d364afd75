import type { NodeAnnouncement, Decision, NodeFacts, Snapshot } from "./decision.ts";
import type { FailedNode } from "./status.ts";

/**
 * Why a health check starts no new remediation, whatever the node. What is in progress continues: timeouts, cleanup, leases
 * and status.
 */
export interface Gate {
  outcome: "disabled" | "paused" | "upgrading" | "standstill" | "threshold" | "storm";
  reason: string;
  announcement: NodeAnnouncement | undefined;
}

/** One evaluation by `decide`: its input, and its results so far. */
export interface Evaluation {
  readonly snapshot: Snapshot;
  readonly nowMs: number;
  readonly gate: Gate | undefined;
  /** Control plane nodes in remediation, those of this evaluation included. */
  readonly controlPlaneBusy: Set<string>;
  /** Nodes that have used up their attempts. */
  readonly budgetSpent: string[];
  /** Nodes with a remediation of this health check under way, and when the oldest one of the node started (RFC 3339). */
  readonly inFlight: Record<string, string>;
  /** Nodes whose remediation has failed, with nothing else under way for them. */
  readonly failed: FailedNode[];
  readonly decision: Omit<Decision, "status" | "gate">;
}

/** Asks for another evaluation at `atMs` at the latest. */
export function checkAgain(evaluation: Evaluation, atMs: number): void {
  const { nextCheckMs } = evaluation.decision;
  if (nextCheckMs === undefined || atMs < nextCheckMs) evaluation.decision.nextCheckMs = atMs;
}

/** Skips a node, with an Event, and with another one when the reason changes. */
export function skip(evaluation: Evaluation, facts: NodeFacts, outcome: string, reason: string): void {
  announce(evaluation, { key: `${facts.name}/${reason}`, type: "Warning", reason: "RemediationSkipped", note: reason });
  conclude(evaluation, facts, outcome, reason);
}

/** Announces something for as long as it stands. */
export function announce(evaluation: Evaluation, announcement: NodeAnnouncement): void {
  evaluation.decision.standing.push(announcement);
}

/** Records the decision about a node. */
export function conclude(evaluation: Evaluation, facts: NodeFacts, outcome: string, reason: string): void {
  evaluation.decision.nodes.push({ name: facts.name, outcome, reason, nextCheckMs: undefined });
}
