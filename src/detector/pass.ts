import type { Announcement, Decision, Snapshot } from "./decision.ts";

/**
 * Why nothing new may start under a health check, whatever the node. What is under way goes on all the same: time-outs,
 * clean-up, leases and status.
 */
export interface Gate {
  outcome: "disabled" | "paused" | "upgrading" | "standstill" | "threshold" | "storm";
  reason: string;
  announcement: Announcement | undefined;
}

/** One run of `decide`: what it was given, and what it has found out so far. */
export interface Pass {
  readonly snapshot: Snapshot;
  readonly nowMs: number;
  readonly gate: Gate | undefined;
  /** Control plane nodes in remediation, those of this pass included. */
  readonly controlPlaneBusy: Set<string>;
  /** Nodes that are left for people, their attempts being spent. */
  readonly budgetSpent: string[];
  readonly decision: Omit<Decision, "status" | "gate">;
}

/** Remembers to look again at `atMs` at the latest. */
export function checkAgain(pass: Pass, atMs: number): void {
  const { nextCheckMs } = pass.decision;
  if (nextCheckMs === undefined || atMs < nextCheckMs) pass.decision.nextCheckMs = atMs;
}
