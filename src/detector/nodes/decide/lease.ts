import type { Node } from "../../../api/kubernetes/core.ts";
import type { RemediationStep } from "../../shared/model/template-reference.ts";
import type { NodeFacts } from "./decision.ts";
import type { NodeCheckEvaluation } from "./evaluation.ts";
import { checkAgain } from "../../shared/model/health-check-decision.ts";

// The remediation lease of a node.

/** The timeout that counts for the lease of a step without a timeout. */
const LEASE_WITHOUT_TIMEOUT_MS = 600_000;
/** How much longer a lease lasts than the timeout of its step. */
const LEASE_MARGIN_MS = 60_000;

/** Adds an action that renews the lease of a node, if a renewal is due. */
export function holdLease(evaluation: NodeCheckEvaluation, facts: NodeFacts, node: Node, step: RemediationStep): void {
  const { nowMs, decision } = evaluation;
  const renewAtMs = facts.leaseRenewAtMs ?? nowMs;
  if (nowMs < renewAtMs) return checkAgain(evaluation, renewAtMs);
  decision.actions.push({ type: "renewLease", node, leaseDurationMs: leaseDurationMs(step) });
}

/** When a lease of this duration is due for renewal, counted from its last renewal. */
export function renewLeaseAfterMs(durationMs: number): number {
  return durationMs - LEASE_MARGIN_MS;
}

/** How long a lease for a step lasts. */
export function leaseDurationMs(step: RemediationStep): number {
  return (step.timeoutMs ?? LEASE_WITHOUT_TIMEOUT_MS) + LEASE_MARGIN_MS;
}
