import type { Node } from "../../../api/kubernetes/core.ts";
import { agentProblems, itemsOf, missingKinds } from "../objects/object-problems.ts";
import type { Overview } from "../objects/read.ts";
import { healthCheckJudge, watcherFinder } from "./health-checks.ts";
import { hostFinder, hostJudge } from "./hosts.ts";
import type { Precondition, Step } from "./precondition.ts";
import { blocks, ok, unknown } from "./precondition.ts";
import { judgeRemediation, judgeWaiting, remediationFinder } from "./remediations.ts";
import { admissionJudge } from "./admission.ts";

// The one answer to "could ironfence fence this node now?". The page, `ironfence status`, `ironfence check` and
// `ironfence explain node` show this answer, and do not judge nodes themselves.

/** Whether one node could be fenced now. An `unknown` must not be taken for a `yes`. */
export interface FenceReadiness {
  node: string;
  answer: "yes" | "no" | "unknown";
  /** A reason of ironfence, such as `AuthenticationFailed`; empty for a plain yes. */
  reason: string;
  message: string;
  /** The precondition that decides; undefined for a yes. */
  step: Step | undefined;
  /** Whether an administrator has asked for this answer, or its cause ends by itself. */
  isIntended: boolean;
}

/** The answer for every node of the agent's own cluster. */
export interface CouldFence {
  /** Sorted by answer (no, unknown, yes), then by name. */
  nodes: FenceReadiness[];
  /** Why the nodes cannot be listed; undefined if they can. */
  unread: string | undefined;
}

/** Judges every precondition of a fence of one node, in order. @param node undefined if it was deleted. */
export type PreconditionJudge = (name: string, node: Node | undefined) => Precondition[];

/** Whether each node could be fenced now, and if not, why. Pure. */
export function judgeNodes(overview: Overview): CouldFence {
  const { nodes } = overview;
  if (nodes === undefined) return { nodes: [], unread: "the cluster does not serve nodes" };
  if (!Array.isArray(nodes)) return { nodes: [], unread: nodes.problem };
  const judge = preconditionJudge(overview);
  const judged = nodes.map((node): FenceReadiness => {
    const { name } = node.metadata;
    return { node: name, ...readinessOf(judge(name, node)) };
  });
  return {
    nodes: judged.toSorted((a, b) => RANK[a.answer] - RANK[b.answer] || byName(a.node, b.node)),
    unread: undefined,
  };
}

const RANK = { no: 0, unknown: 1, yes: 2 } as const;

/** The first precondition in the state `blocks` decides, or else the first one that is `unknown`. */
export function readinessOf(preconditions: readonly Precondition[]): Omit<FenceReadiness, "node"> {
  const blocking = preconditions.find(({ state }) => state === "blocks");
  const decides = blocking ?? preconditions.find(({ state }) => state === "unknown");
  if (decides !== undefined) {
    const { reason, message, step, isIntended } = decides;
    return { answer: blocking === undefined ? "unknown" : "no", reason, message, step, isIntended };
  }
  const [remark] = preconditions.filter(({ reason }) => reason !== "");
  const { reason = "", message = "" } = remark ?? {};
  return { answer: "yes", reason, message, step: undefined, isIntended: false };
}

/** Computes once what all nodes share. Pure. */
export function preconditionJudge(overview: Overview): PreconditionJudge {
  const agent = judgeAgent(overview);
  const pause = judgePause(overview);
  const judgeHost = hostJudge(overview);
  const judgeHealthChecks = healthCheckJudge(overview);
  const judgeAdmission = admissionJudge(overview);
  const watchersOf = watcherFinder(overview);
  const remediationOf = remediationFinder(overview);
  return (name, node) => {
    const remediation = remediationOf(name);
    const isWatched = node !== undefined && watchersOf(node).watchers.length > 0;
    return [
      agent,
      node === undefined ? ok("health check", "there is no such node") : judgeHealthChecks(node),
      judgeRemediation(overview, remediation),
      ...judgeHost(name, node, isWatched),
      pause,
      judgeWaiting(remediation) ?? (node === undefined ? ok("admission", "nothing to wait for") : judgeAdmission(node)),
    ];
  };
}

function judgeAgent(overview: Overview): Precondition {
  const step = "agent";
  const [problem] = [...missingKinds(overview), ...agentProblems(overview)];
  if (problem !== undefined) return blocks(step, problem.reason, problem.message);
  const { agent } = overview;
  if ("message" in agent) return unknown(step, "AgentUnread", agent.message);
  if (agent.components.length > 0 && !agent.components.includes("remediator")) {
    return blocks(step, "NoRemediator", `${agent.leader} runs without the remediator, so it powers no host off`);
  }
  return ok(step, `${agent.leader} leads`);
}

function judgePause({ stopSwitch }: Overview): Precondition {
  const step = "pause";
  if ("problem" in stopSwitch) return unknown(step, "PauseUnread", stopSwitch.problem);
  if (!stopSwitch.paused) return ok(step, "none");
  const message = `${stopSwitch.reason ?? "paused"}: end it with ironfence resume`;
  return blocks(step, "Paused", message, { isIntended: true });
}

/** Nodes without a host that the leader uses, and nodes without a health check. Empty if either cannot be known. */
export function uncoveredOf(overview: Overview): { withoutTarget: string[]; withoutCheck: string[] } {
  const { targets, bareMetalHosts, healthChecks } = overview;
  const nodes = itemsOf(overview.nodes);
  const hostOf = hostFinder(overview);
  const watchersOf = watcherFinder(overview);
  const knowsHosts = Array.isArray(targets) && !(bareMetalHosts !== undefined && "problem" in bareMetalHosts);
  const hasHost = (node: Node): boolean => ["target", "host"].includes(hostOf(node.metadata.name, node).by);
  const isWatched = (node: Node): boolean => {
    const { watchers, unread } = watchersOf(node);
    return watchers.length > 0 || unread !== undefined;
  };
  const names = (missing: Node[]): string[] => missing.map(({ metadata }) => metadata.name).toSorted();
  return {
    withoutTarget: knowsHosts ? names(nodes.filter((node) => !hasHost(node))) : [],
    withoutCheck:
      healthChecks === undefined || Array.isArray(healthChecks) ? names(nodes.filter((node) => !isWatched(node))) : [],
  };
}

/** Nodes with the same answer (other than yes) and the same reason. */
export interface ReadinessGroup extends Omit<FenceReadiness, "node"> {
  answer: "no" | "unknown";
  nodes: string[];
}

/** The nodes that are not answered with yes, by reason, the most frequent reason first. Pure. */
export function groupsOf(nodes: readonly FenceReadiness[]): ReadinessGroup[] {
  const bad = nodes.flatMap((node) => (node.answer === "yes" ? [] : [{ ...node, answer: node.answer }]));
  const keyOf = ({ answer, reason, isIntended }: FenceReadiness): string => `${answer} ${reason} ${isIntended}`;
  const groups = [...Map.groupBy(bad, keyOf).values()].flatMap((same): ReadinessGroup[] => {
    const [first] = same;
    if (first === undefined) return [];
    const { node: _node, ...readiness } = first;
    return [{ ...readiness, nodes: same.map(({ node }) => node) }];
  });
  return groups.toSorted((a, b) => b.nodes.length - a.nodes.length || a.reason.localeCompare(b.reason));
}

/** `worker-9` before `worker-10`. */
export function byName(a: string, b: string): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  return collator.compare(a, b);
}
/** Created on demand: its tables take 3 MiB, and an agent without a page sorts no names. */
let collator: Intl.Collator | undefined;
