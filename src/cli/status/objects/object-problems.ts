import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { folderOf } from "../../../api/ironfence/kinds.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import type { NodeHealthCheck } from "../../../api/ironfence/node-health-check.ts";
import { judgeThreshold, toleratesOne } from "../../../detector/nodes/decide/threshold.ts";
import type { NodePolicy } from "../../../detector/nodes/decide/policy.ts";
import { compileNodePolicy } from "../../../detector/nodes/decide/policy.ts";
import { readStorm } from "../../../detector/nodes/decide/status.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import { nodeKey } from "../../../nodes/subject.ts";
import { etcdNodes } from "../../../remediator/machine/rules/admission/quorum.ts";
import { REASONS } from "../../../remediator/machine/model/decision/reasons.ts";
import { formatDuration } from "../../../runtime/duration.ts";
import { toTime } from "../../../runtime/time.ts";
import type { Agent, Overview } from "./read.ts";
import type { ListResult } from "./foreign.ts";
import { readyOf } from "../../../remediator/hosts/fencing-target/target-store.ts";

/** One thing that keeps a node from being fenced now or later. */
export interface Problem {
  /** `error`: a fence would fail, or has failed. `warning`: the operator should check it. */
  severity: "error" | "warning";
  kind: string;
  /** `namespace/name`, or `name` if the kind has no namespace; absent for the whole cluster. */
  name?: string;
  reason: string;
  /** A full sentence, with what to do about it. */
  message: string;
}

/** Waits that end by themselves. */
const SELF_ENDING_WAITS: ReadonlySet<string> = new Set(["HostBusy", "WaitingForTurn"]);
const WAITS: ReadonlySet<string> = new Set(REASONS);
/** How many names a message has. */
const NAMES_MAX = 5;

/**
 * The problems of objects, each judged by itself. Those of the agent come first: without it nothing else matters. Pure.
 */
export function objectProblems(overview: Overview): Problem[] {
  return [
    ...missingKinds(overview),
    ...agentProblems(overview),
    ...pauseProblems(overview),
    ...itemsOf(overview.remediations).flatMap(remediationProblems),
    ...itemsOf(overview.targets).flatMap(targetProblems),
    ...overview.strayTargets.map((target) => strayProblem(target, overview.namespace)),
    ...itemsOf(overview.healthChecks).flatMap((check) => checkProblems(check, overview)),
    ...unreadable(overview),
  ];
}

export function itemsOf<T>(result: ListResult<T>): T[] {
  return Array.isArray(result) ? result : [];
}

export function missingKinds({ agent, targets, remediations, healthChecks, cluster }: Overview): Problem[] {
  // An agent of other families needs no NodeHealthCheck.
  const isAsked = !("families" in agent) || agent.families.length === 0 || agent.families.includes("node-health-check");
  const kinds = {
    ...(isAsked && { NodeHealthCheck: healthChecks }),
    FencingTarget: targets,
    BareMetalRemediation: remediations,
  };
  const missing = Object.entries(kinds).flatMap(([kind, result]) => (result === undefined ? [kind] : []));
  if (missing.length === 0) return [];
  const folders = new Set(
    missing.map((kind) => folderOf({ kind })).map((folder) => (folder === "deploy/crds" ? "deploy/kustomize" : folder)),
  );
  const where = `${cluster.server} (${cluster.source})`;
  const message = `${where} does not serve ${missing.join(", ")}: if this is the wrong cluster, choose another with --context or --kubeconfig; else apply your installation: kubectl apply --server-side -k ${[...folders].join(", then -k ")}, or upgrade the release of the Helm chart`;
  return [{ severity: "error", kind: "Cluster", reason: "KindsMissing", message }];
}

/** The agent that only observes, if no agent that fences leads. */
export function onlyObserver({ agent, observer }: Overview): Extract<Agent, { leader: string }> | undefined {
  if (!("message" in agent) || agent.state !== "none") return undefined;
  return observer?.agent.state === "leading" ? observer.agent : undefined;
}

export function agentProblems(overview: Overview): Problem[] {
  const { agent, namespace } = overview;
  const kind = "Agent";
  const observer = onlyObserver(overview);
  if (observer !== undefined) {
    const message = `ironfence only observes (--observe) and fences nothing: once its decisions are right, remove the tool that fences today, and install ironfence without --observe`;
    return [{ severity: "warning", kind, name: observer.leader, reason: "Observes", message }];
  }
  if ("message" in agent) {
    return agent.state === "none" ? [{ severity: "error", kind, reason: "NoAgent", message: agent.message }] : [];
  }
  if (agent.state === "silent") {
    const message = `${agent.leader} has not renewed its lease for ${agent.leaseAgeSeconds} s, so nothing is fenced: check its pod (kubectl -n ${namespace} get pods), or start an agent`;
    return [{ severity: "error", kind, name: agent.leader, reason: "NoAgent", message }];
  }
  if (agent.standsBy !== "") {
    return [{ severity: "error", kind, name: agent.leader, reason: "StandsBy", message: agent.standsBy }];
  }
  if (agent.notReady === "") return [];
  return [{ severity: "error", kind, name: agent.leader, reason: "NotReady", message: agent.notReady }];
}

function pauseProblems({ stopSwitch }: Overview): Problem[] {
  if (!("paused" in stopSwitch) || !stopSwitch.paused) return [];
  const message = `no new power-off is sent: ${stopSwitch.reason ?? ""}; end the pause with ironfence resume`;
  return [{ severity: "error", kind: "StopSwitch", reason: "Paused", message }];
}

/** The condition that reports the progress of a remediation: its verdict, or else what it does or waits for. */
export function reportedCondition({ status }: BareMetalRemediation): Condition | undefined {
  const succeeded = conditionOf(status?.conditions, "Succeeded");
  const processing = conditionOf(status?.conditions, "Processing");
  return succeeded === undefined || succeeded.status === "Unknown" ? (processing ?? succeeded) : succeeded;
}

export function remediationProblems(remediation: BareMetalRemediation): Problem[] {
  const condition = reportedCondition(remediation);
  if (condition === undefined) return [];
  const { namespace = "", name } = remediation.metadata;
  const isFailed = condition.type === "Succeeded" && condition.status === "False";
  const isHeld =
    condition.type === "Processing" && WAITS.has(condition.reason) && !SELF_ENDING_WAITS.has(condition.reason);
  if (!isFailed && !isHeld) return [];
  const { reason, message } = condition;
  const node = remediation.status?.node?.name ?? name;
  const text = isFailed
    ? `the remediation of node ${node} has failed: ${message}. After you have fixed the cause, delete it: kubectl delete baremetalremediation ${name} -n ${namespace}`
    : `node ${node} is not fenced yet: ${message}`;
  return [{ severity: "error", kind: "BareMetalRemediation", name: `${namespace}/${name}`, reason, message: text }];
}

function targetProblems(target: FencingTarget): Problem[] {
  const ready = readyOf(target.status);
  const { namespace = "", name } = target.metadata;
  const found = { kind: "FencingTarget", name: `${namespace}/${name}` };
  if (target.spec.maintenance) {
    const message = `node ${nodeText(target)} is in maintenance, so its host is neither powered off nor on: set spec.maintenance to false when the work is done`;
    return [{ severity: "error", ...found, reason: "Maintenance", message }];
  }
  if (ready === undefined) return [];
  const { reason, message } = ready;
  if (ready.status !== "True") return [{ severity: "error", ...found, reason, message }];
  return reason === "Degraded" ? [{ severity: "warning", ...found, reason, message }] : [];
}

function strayProblem({ metadata, spec }: FencingTarget, used: string): Problem {
  const { namespace = "", name } = metadata;
  const message = `it is not used, because the agent reads FencingTargets of namespace ${used} only: create it and its Secrets there, for node ${spec.nodeName}, and delete this one`;
  return { severity: "error", kind: "FencingTarget", name: `${namespace}/${name}`, reason: "WrongNamespace", message };
}

export function checkProblems(check: NodeHealthCheck, overview: Overview): Problem[] {
  const found = { kind: "NodeHealthCheck", name: check.metadata.name };
  const { status } = check;
  const disabled = conditionOf(status?.conditions, "Disabled");
  if (disabled?.status === "True") {
    return [{ severity: "error", ...found, reason: disabled.reason, message: disabled.message }];
  }
  if (status?.phase === "Paused") {
    const message = `${status.reason ?? "it is paused"}: take the entries out of spec.pauseRequests when the work is done`;
    return [{ severity: "error", ...found, reason: "PauseRequested", message }];
  }
  const compiled = compileNodePolicy(check.spec, check.metadata.annotations);
  if ("problem" in compiled) {
    return [{ severity: "error", ...found, reason: "SpecInvalid", message: compiled.problem }];
  }
  if (!Array.isArray(overview.nodes)) return [];
  const nodes = overview.nodes.filter(({ metadata }) => compiled.policy.selects(metadata.labels));
  if (nodes.length === 0) {
    const message =
      "spec.selector matches no node, so nothing is ever remediated: compare it with kubectl get nodes --show-labels";
    return [{ severity: "error", ...found, reason: "SelectsNothing", message }];
  }
  return [
    ...thresholdProblems(compiled.policy, check, nodes.length),
    ...stormProblems(compiled.policy, check),
    ...scopeProblems(nodes, overview.nodes),
  ].map((problem): Problem => ({ ...problem, ...found }));
}

type ProblemText = Pick<Problem, "severity" | "reason" | "message">;

function thresholdProblems({ threshold }: NodePolicy, { status }: NodeHealthCheck, selected: number): ProblemText[] {
  const healthy = status?.healthyNodes ?? selected;
  const now = judgeThreshold(threshold, { selected, healthy, absent: 0 });
  if (!now.isMet) {
    const message = `${healthy} of ${selected} nodes are healthy and at least ${now.required} must be, so nothing new is remediated: repair nodes by hand, or lower the threshold`;
    return [{ severity: "error", reason: "ThresholdHolds", message }];
  }
  if (toleratesOne(threshold, selected)) return [];
  const message = `at least ${now.required} of ${selected} nodes must be healthy, so a single unhealthy node is never remediated: lower spec.minHealthy, or raise spec.maxUnhealthy`;
  return [{ severity: "error", reason: "ThresholdTooHigh", message }];
}

/** The storm guard continues after the threshold is met again. */
function stormProblems({ stormCooldownMs }: NodePolicy, { status }: NodeHealthCheck): ProblemText[] {
  if (stormCooldownMs === undefined || status === undefined) return [];
  const storm = readStorm(status);
  if (storm.state === "calm") return [];
  const until =
    storm.state === "cooldown"
      ? `until ${toTime(storm.sinceMs + stormCooldownMs)}`
      : `until enough nodes are healthy, and for ${formatDuration(stormCooldownMs)} after that`;
  const message = `too many nodes became unhealthy at once, so nothing new is remediated ${until}: fix nodes by hand if you cannot wait`;
  return [{ severity: "error", reason: "StormHolds", message }];
}

function scopeProblems(selected: readonly Node[], all: readonly Node[]): ProblemText[] {
  const findings: ProblemText[] = [];
  const controlPlane = selected.filter(isControlPlane);
  if (controlPlane.length > 0 && controlPlane.length < selected.length && selected.length === all.length) {
    const message = `spec.selector matches all ${all.length} nodes, those of the control plane among them (${namesOf(controlPlane)}): if that is not meant, add a matchExpression with key node-role.kubernetes.io/control-plane and operator DoesNotExist`;
    findings.push({ severity: "warning", reason: "SelectsEverything", message });
  }
  const members = etcdNodes(all);
  const [lone] = members;
  if (members.length === 1 && lone !== undefined && selected.includes(lone)) {
    const message = `node ${lone.metadata.name} is the only control plane node, and etcd would lose its quorum without it, so it is never fenced: add control plane nodes, or leave it out of spec.selector`;
    findings.push({ severity: "warning", reason: "LoneControlPlaneNode", message });
  }
  return findings;
}

function unreadable({ cluster: _cluster, ...overview }: Overview): Problem[] {
  const sections: Record<string, unknown> = { ...overview, ...overview.requests };
  return Object.values(sections).flatMap((section): Problem[] => {
    if (typeof section !== "object" || section === null || !("problem" in section)) return [];
    return [{ severity: "warning", kind: "Status", reason: "Forbidden", message: String(section.problem) }];
  });
}

function nodeText({ spec: { nodeName, clusterRef } }: FencingTarget): string {
  return nodeKey({ cluster: clusterRef, name: nodeName });
}

function namesOf(nodes: readonly Node[]): string {
  return shorten(nodes.map(({ metadata }) => metadata.name).toSorted());
}

export function shorten(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return more > 0 ? `${names.slice(0, NAMES_MAX).join(", ")} and ${more} more` : names.join(", ");
}
