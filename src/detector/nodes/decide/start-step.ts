import type { Node } from "../../../api/kubernetes/core.ts";
import { formatDuration } from "../../../runtime/duration.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/names/labels.ts";
import type { NodeFacts } from "./decision.ts";
import { TERMINATING } from "./decision.ts";
import type { NextStep } from "./escalation.ts";
import type { NodeHealth } from "./health.ts";
import type { NodeCheckEvaluation } from "./evaluation.ts";
import { checkAgain } from "../../shared/model/health-check-decision.ts";
import { skipNode, concludeNode } from "./evaluation.ts";
import { leaseDurationMs } from "./lease.ts";
import { deleteFailedRound, deleteFinished, isBudgetSpent, waitsForNextRound, reportFailureHeld } from "./retries.ts";
import { foreignText } from "../../shared/model/remediation.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";

const CONTROL_PLANE_RETRY_MS = 60_000;

/** Starts a step, or records why it does not start. */
export function startStep(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  node: Node,
  next: NextStep | undefined,
  { unhealthyCondition, skipped }: Extract<NodeHealth, { state: "unhealthy" }>,
): void {
  const { snapshot, nowMs, decision, gate, controlPlaneBusy } = evaluation;
  const { name, peerCheck, deferral } = facts;
  if (gate !== undefined) {
    if (next !== undefined) reportFailureHeld(evaluation, facts, next, gate);
    return concludeNode(evaluation, facts, gate.outcome, gate.reason);
  }
  if (node.metadata.labels?.[EXCLUDE_FROM_REMEDIATION] === "true") {
    return skipNode(
      evaluation,
      facts,
      "excluded",
      `Remediation skipped on node ${name}: node has Exclude from Remediation label`,
    );
  }
  const isTerminating = node.status.conditions?.some(({ type }) => type === TERMINATING) === true;
  if (isTerminating && snapshot.platform.hasTerminationHandler) {
    const reason = `Skipped remediation of node ${name}: its cloud provider terminates it, and OKD's own health check handles that`;
    return skipNode(evaluation, facts, "terminating", reason);
  }
  if (peerCheck !== undefined)
    return skipNode(evaluation, facts, "peerCheck", `Skipped remediation of node ${name}: ${peerCheck}`);
  if (next === undefined || waitsForNextRound(evaluation, facts, next)) return undefined;
  if (isBudgetSpent(evaluation, facts)) return undefined;
  if (next.restartAtMs !== undefined && deleteFailedRound(evaluation, facts)) return undefined;
  const { step } = next;
  const template = "reason" in snapshot.templates ? undefined : snapshot.templates[snapshot.policy.steps.indexOf(step)];
  if (template === undefined) return concludeNode(evaluation, facts, "disabled", "Its template does not exist");
  if (!template.manyPerNode) {
    const { kind } = template.type;
    if (facts.foreign.some((other) => other.kind === kind && other.namespace === template.namespace)) {
      const reason = `Skipped remediation of node ${name}: ${foreignText(kind, name)}`;
      return skipNode(evaluation, facts, "foreign", reason);
    }
    const left = facts.remediations.find(({ object }) => object.kind === kind && object.metadata.name === name);
    if (left !== undefined) {
      deleteFinished(evaluation, facts, left);
      return concludeNode(evaluation, facts, "waiting", `An earlier ${kind} with that name must be deleted first`);
    }
  }
  if (isControlPlane(node) && [...controlPlaneBusy].some((busy) => busy !== name)) {
    checkAgain(evaluation, nowMs + CONTROL_PLANE_RETRY_MS);
    const reason = `Skipping remediation of ${name} for preventing control plane / etcd quorum loss, going to retry in a minute`;
    return skipNode(evaluation, facts, "controlPlane", reason);
  }
  if (deferral !== undefined && nowMs < deferral.untilMs) {
    checkAgain(evaluation, deferral.untilMs);
    const reason = `Skipped remediation of node ${name}: ${deferral.reason}`;
    return deferral.cause === "staleView"
      ? concludeNode(evaluation, facts, "deferred", reason)
      : skipNode(evaluation, facts, "deferred", reason);
  }
  if (isControlPlane(node)) controlPlaneBusy.add(name);
  const why = skipped === undefined ? "" : `, before its duration is over: ${skipped.proof}`;
  const { type, status, durationMs } = unhealthyCondition;
  const because = `its condition ${type} is ${status} (the health check waits ${formatDuration(durationMs)} for this)${why}`;
  decision.actions.push({ type: "create", node, template, leaseDurationMs: leaseDurationMs(step), because, skipped });
  concludeNode(evaluation, facts, "create", `Creating a ${template.type.kind} from ${template.name}${why}`);
}
