import type { Node } from "../../../api/kubernetes/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/names/labels.ts";
import type { NodeHealthCheck } from "../../../api/ironfence/node-health-check.ts";
import { compileSelector, SelectorError } from "../../../api/schema/label-selector.ts";
import type { LabelMatcher } from "../../../api/schema/label-selector.ts";
import { labelSelectorSchema } from "../../../api/schema/meta.ts";
import { fieldAt } from "../../../api/schema/read-fields.ts";
import { judgeHealth } from "../../../detector/nodes/decide/health.ts";
import type { NodePolicy } from "../../../detector/nodes/decide/policy.ts";
import { compileNodePolicy } from "../../../detector/nodes/decide/policy.ts";
import { judgeThreshold, toleratesOne } from "../../../detector/nodes/decide/threshold.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import { isReady } from "../../../nodes/ready.ts";
import { budgetJudge } from "./attempt-budget.ts";
import { machineChecksOf } from "./machine-health-checks.ts";
import { checkProblems, itemsOf } from "../objects/object-problems.ts";
import type { Overview } from "../objects/read.ts";
import type { Precondition } from "./precondition.ts";
import type { Watcher } from "./watcher.ts";
import { remediationFinder } from "./remediations.ts";
import { blocks, ok, unknown } from "./precondition.ts";

/** The finding for a node that is fenced by hand only. */
export const NOT_COVERED = "no health check covers the node";

/** Problems of a health check that an administrator has asked for. */
const INTENDED: ReadonlySet<string> = new Set(["PauseRequested"]);

/**
 * Whether a health check would start a remediation of a node that fails now. Without one, a node can still be fenced by
 * hand.
 */
export function healthCheckJudge(overview: Overview): (node: Node) => Precondition {
  const step = "health check";
  const watchersOf = watcherFinder(overview);
  const { healthChecks } = overview;
  return (node) => {
    if (node.metadata.labels?.[EXCLUDE_FROM_REMEDIATION] === "true") {
      const message = `the node has the label ${EXCLUDE_FROM_REMEDIATION}=true: remove it when the node is to be fenced again`;
      return blocks(step, "Excluded", message, { isIntended: true });
    }
    const { watchers, unread } = watchersOf(node);
    const [first] = watchers;
    if (watchers.some(({ hold }) => hold === undefined)) return ok(step, watchers.map(({ text }) => text).join(", "));
    const why = unread ?? (healthChecks !== undefined && "problem" in healthChecks ? healthChecks.problem : undefined);
    if (why !== undefined) return unknown(step, "HealthChecksUnread", why);
    if (first?.hold === undefined) {
      const message = "by hand only: no health check covers it";
      return { ...ok(step, NOT_COVERED), reason: "NoHealthCheck", message };
    }
    const { reason, message, isIntended } = first.hold;
    return blocks(step, reason, `${first.text}: ${message}`, { isIntended });
  };
}

/** All health checks that cover a node; `unread` if some may be missing. */
export function watcherFinder(overview: Overview): (node: Node) => { watchers: Watcher[]; unread: string | undefined } {
  const checks = nodeChecksOf(overview);
  const machineChecks = machineChecksOf(overview);
  return (node) => {
    const machines = machineChecks(node);
    const own = checks.flatMap(({ selects, watch }) => (selects(node.metadata.labels) ? [watch(node)] : []));
    return { watchers: [...own, ...machines.watchers], unread: machines.unread };
  };
}

/**
 * How long an unhealthy node may be without a remediation before this is a problem. A start that was refused is tried
 * again every 15 s.
 */
const START_SLACK_MS = 60_000;

function nodeChecksOf(overview: Overview): { selects: LabelMatcher; watch: (node: Node) => Watcher }[] {
  const budgetOf = budgetJudge(itemsOf(overview.healthChecks), overview.nowMs);
  return itemsOf(overview.healthChecks).map((check) => {
    const compiled = compileNodePolicy(check.spec, check.metadata.annotations);
    const text = `NodeHealthCheck ${check.metadata.name}`;
    if ("problem" in compiled) {
      const hold = { reason: "SpecInvalid", message: compiled.problem, isIntended: false };
      return { selects: mayCover(check), watch: () => ({ text, hold }) };
    }
    const { policy } = compiled;
    const problem = checkProblems(check, overview).find(({ severity }) => severity === "error");
    const thresholdOf = thresholdJudge(policy, check, overview);
    const startOf = startJudge(policy, check, overview);
    const watch = (node: Node): Watcher => {
      if (problem !== undefined) {
        const { reason, message } = problem;
        return { text, hold: { reason, message, isIntended: INTENDED.has(reason) } };
      }
      const { name } = node.metadata;
      const hold = thresholdOf(node) ?? budgetOf(name, policy.attemptBudget) ?? startOf(node);
      return { text, hold: hold && { ...hold, isIntended: false } };
    };
    return { selects: policy.selects, watch };
  });
}

/**
 * Judges whether a node should have a remediation and has none, for whatever reason. A control plane node may have to
 * wait for another node, so it is left out while another node is remediated.
 */
function startJudge(
  { unhealthyConditions }: NodePolicy,
  { metadata, status }: NodeHealthCheck,
  overview: Overview,
): (node: Node) => { reason: string; message: string } | undefined {
  const remediationOf = remediationFinder(overview);
  const remediated = (status?.unhealthyNodes ?? []).flatMap(({ name, remediations = [] }) =>
    remediations.length > 0 ? [name] : [],
  );
  return (node) => {
    const { name } = node.metadata;
    const health = judgeHealth(unhealthyConditions, node.status.conditions, overview.nowMs - START_SLACK_MS);
    if (health.state !== "unhealthy" || remediated.includes(name) || remediationOf(name) !== undefined)
      return undefined;
    if (isControlPlane(node) && remediated.length > 0) return undefined;
    const message = `the node is unhealthy, and no remediation has been started: kubectl describe nodehealthcheck ${metadata.name} or the log of the agent shows why`;
    return { reason: "NotStarted", message };
  };
}

/** The nodes that a health check with an invalid spec may cover: all nodes if its selector is invalid as well. */
function mayCover({ spec }: NodeHealthCheck): LabelMatcher {
  const selector = labelSelectorSchema.safeParse(fieldAt(spec, "selector"));
  try {
    if (selector.success) return compileSelector(selector.data);
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
  }
  return () => true;
}

/** Whether the threshold would allow a remediation of a node if that node failed now. */
function thresholdJudge(
  { threshold, selects }: NodePolicy,
  { status }: NodeHealthCheck,
  { nodes }: Overview,
): (node: Node) => { reason: string; message: string } | undefined {
  const selected = itemsOf(nodes).filter(({ metadata }) => selects(metadata.labels)).length;
  const unhealthy = new Set((status?.unhealthyNodes ?? []).map(({ name }) => name));
  const healthy = status?.healthyNodes ?? selected;
  return (node) => {
    const isCounted = isReady(node) && !unhealthy.has(node.metadata.name);
    const left = healthy - (isCounted ? 1 : 0);
    const { isMet, required } = judgeThreshold(threshold, { selected, healthy: left, absent: 0 });
    if (isMet) return undefined;
    return {
      reason: toleratesOne(threshold, selected) ? "ThresholdHolds" : "ThresholdTooHigh",
      message: `${left} of ${selected} nodes would be healthy without it and at least ${required} must be, so it would not be remediated: repair other nodes, or lower the threshold`,
    };
  };
}
