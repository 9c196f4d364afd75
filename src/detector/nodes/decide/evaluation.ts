import type { NodeAnnouncement, Decision, NodeFacts, Snapshot } from "./decision.ts";
import type { FailedNode } from "./status.ts";

/**
 * Why nothing new may start under a health check, whatever the node. What is under way goes on all the same: time-outs,
 * clean-up, leases and status.
 */
export interface Gate {
  outcome: "disabled" | "paused" | "upgrading" | "blocked" | "threshold" | "storm";
  reason: string;
  announcement: NodeAnnouncement | undefined;
}

/** One run of `decide`: what it was given, and what it has found out so far. */
export interface Evaluation {
  readonly snapshot: Snapshot;
  readonly nowMs: number;
  readonly gate: Gate | undefined;
  /** Control plane nodes in remediation, those of this evaluation included. */
  readonly controlPlaneBusy: Set<string>;
  /** Nodes that are left for people, their attempts being spent. */
  readonly budgetSpent: string[];
  /** Nodes with a remediation of this health check under way, and when the oldest one of the node started (RFC 3339). */
  readonly inFlight: Record<string, string>;
  /** Nodes whose remediation has failed, with nothing else under way for them. */
  readonly failed: FailedNode[];
  readonly decision: Omit<Decision, "status" | "gate">;
}

/** Remembers to look again at `atMs` at the latest. */
export function checkAgain(evaluation: Evaluation, atMs: number): void {
  const { nextCheckMs } = evaluation.decision;
  if (nextCheckMs === undefined || atMs < nextCheckMs) evaluation.decision.nextCheckMs = atMs;
}

/** Keeps a node from a remediation: people are told by an event, and by another one when the reason becomes another. */
export function skip(evaluation: Evaluation, facts: NodeFacts, outcome: string, reason: string): void {
  announce(evaluation, { key: `${facts.name}/${reason}`, type: "Warning", reason: "RemediationSkipped", note: reason });
  verdict(evaluation, facts, outcome, reason);
}

/** Tells something as long as it stands. */
export function announce(evaluation: Evaluation, announcement: NodeAnnouncement): void {
  evaluation.decision.standing.push(announcement);
}

/** Notes what deferrals for a node. */
export function verdict(evaluation: Evaluation, facts: NodeFacts, outcome: string, reason: string): void {
  evaluation.decision.nodes.push({ name: facts.name, outcome, reason, nextCheckMs: undefined });
}
