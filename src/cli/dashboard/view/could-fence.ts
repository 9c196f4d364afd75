import type { Node } from "../../../api/core.ts";
import type { FencingTarget } from "../../../api/fencing-target.ts";
import { readBareMetalHost } from "../../../api/metal3.ts";
import { compileNodePolicy } from "../../../detector/nodes/decide/policy.ts";
import { localNode } from "../../../nodes/subject.ts";
import { HostIndex } from "../../../remediator/hosts/bare-metal-host/host-index.ts";
import { maintenanceOf, refusalOf } from "../../../remediator/hosts/bare-metal-host/power-path.ts";
import { readyOf } from "../../../remediator/hosts/fencing-target/target-store.ts";
import { etcdNodes } from "../../../remediator/machine/rules/quorum.ts";
import type { Problem } from "../../status/problems.ts";
import { itemsOf } from "../../status/problems.ts";
import type { Overview } from "../../status/read.ts";

/** Whether one node could be fenced now. `unknown` counts as little as `no`. */
export interface NodeVerdict {
  node: string;
  answer: "yes" | "no" | "unknown";
  /** A reason of ironfence, such as `AuthenticationFailed`; empty for a plain yes. */
  reason: string;
  message: string;
}

/** The answer for every node of the agent's own cluster. */
export interface CouldFence {
  /** Sorted: unknown and no first, then by name. */
  nodes: NodeVerdict[];
  /** Why not even the nodes are known; undefined if they are. */
  unread: string | undefined;
}

type Verdict = Omit<NodeVerdict, "node">;

const YES: Verdict = { answer: "yes", reason: "", message: "" };
const no = (reason: string, message: string): Verdict => ({ answer: "no", reason, message });
const unknown = (reason: string, message: string): Verdict => ({ answer: "unknown", reason, message });

/**
 * Whether each node could be fenced now, and if not, why. It agrees with `ironfence explain node` about agent, target, maintenance and
 * pause, and looks at all nodes at once. Pure.
 *
 * @param problems those of the same overview (`problemsOf`).
 */
export function judgeNodes(overview: Overview, problems: readonly Problem[]): CouldFence {
  const { nodes } = overview;
  if (nodes === undefined) return { nodes: [], unread: "the cluster does not serve nodes" };
  if (!Array.isArray(nodes)) return { nodes: [], unread: nodes.problem };
  const holds = holdsOfAll(overview, problems);
  const hostOf = hostJudge(overview);
  const watchedBy = watchJudge(overview, problems);
  const judged = nodes.map((node): NodeVerdict => {
    const verdict = holds ?? hostOf(node) ?? watchedBy(node) ?? YES;
    return { node: node.metadata.name, ...verdict };
  });
  return {
    nodes: judged.toSorted((a, b) => RANK[a.answer] - RANK[b.answer] || byName(a.node, b.node)),
    unread: undefined,
  };
}

const RANK = { no: 0, unknown: 1, yes: 2 } as const;

/** `worker-9` before `worker-10`. */
export function byName(a: string, b: string): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  return collator.compare(a, b);
}
/** Made when it is needed: its tables take 3 MiB, and an agent without a page sorts no names. */
let collator: Intl.Collator | undefined;

/** What holds the fence of every node: no agent, or a pause. */
function holdsOfAll({ agent, stopSwitch }: Overview, problems: readonly Problem[]): Verdict | undefined {
  const missing = problems.find(({ kind, reason }) => kind === "Cluster" && reason === "KindsMissing");
  if (missing !== undefined) return no(missing.reason, missing.message);
  const problem = problems.find(({ kind }) => kind === "Agent");
  if (problem !== undefined) return no(problem.reason, problem.message);
  if ("message" in agent) return unknown("AgentUnread", agent.message);
  if (agent.components.length > 0 && !agent.components.includes("remediator")) {
    return no("NoRemediator", `${agent.leader} runs without the remediator, so it powers no host off`);
  }
  if ("problem" in stopSwitch) return unknown("PauseUnread", stopSwitch.problem);
  return stopSwitch.paused ? no("Paused", stopSwitch.reason ?? "paused") : undefined;
}

function hostJudge(overview: Overview): (node: Node) => Verdict | undefined {
  const { targets, bareMetalHosts, strayTargets, namespace, agent } = overview;
  const own = Map.groupBy(
    itemsOf(targets).filter(({ spec }) => spec.clusterRef === undefined),
    ({ spec }) => spec.nodeName,
  );
  const strays = new Map(strayTargets.map(({ spec, metadata }) => [spec.nodeName, metadata.namespace ?? ""]));
  const hosts = new HostIndex();
  const servesHosts = "families" in agent && agent.families.includes("bare-metal-host");
  for (const raw of itemsOf(bareMetalHosts)) hosts.applyHost({ type: "added", object: readBareMetalHost(raw) });
  const [lone, ...members] = etcdNodes(itemsOf(overview.nodes));
  return (node) => {
    const { name } = node.metadata;
    if (targets !== undefined && !Array.isArray(targets)) return unknown("TargetsUnread", targets.problem);
    const mine = own.get(name) ?? [];
    const [worst] = mine.flatMap((target) => targetVerdict(target) ?? []);
    if (worst !== undefined) return worst;
    if (mine.length === 0) {
      if (bareMetalHosts !== undefined && "problem" in bareMetalHosts && servesHosts) {
        return unknown("HostsUnread", bareMetalHosts.problem);
      }
      const located = servesHosts ? hosts.locate(localNode(name), node) : undefined;
      if (located?.found !== true) {
        const stray = strays.get(name);
        const elsewhere = stray === undefined ? "" : `; the one in namespace ${stray} is not used`;
        return no("NoTarget", `no FencingTarget in namespace ${namespace} names the node${elsewhere}`);
      }
      const refusal = refusalOf(located.host);
      if (refusal !== undefined) return no(refusal.reason, refusal.message);
      const maintenance = maintenanceOf(located.host);
      if (maintenance !== undefined) return no("Maintenance", maintenance);
    }
    if (members.length === 0 && lone?.metadata.name === name) {
      return no("ControlPlaneQuorum", "it is the only control plane node: etcd would lose its quorum without it");
    }
    return undefined;
  };
}

function targetVerdict({ spec, status, metadata }: FencingTarget): Verdict | undefined {
  if (spec.maintenance) return no("Maintenance", `spec.maintenance of FencingTarget ${metadata.name} is true`);
  const ready = readyOf(status);
  if (ready === undefined) return unknown("NotProbed", "the agent has not probed its FencingTarget yet");
  if (ready.status === "True") return undefined;
  return no(ready.reason, ready.message);
}

/** Whether a health check would start a fence. Without this a node can still be fenced by hand. */
function watchJudge({ healthChecks, machineHealthChecks }: Overview, problems: readonly Problem[]) {
  const errors = new Map(
    problems.flatMap((problem) =>
      problem.kind === "NodeHealthCheck" && problem.severity === "error" && problem.name !== undefined
        ? [[problem.name, problem] as const]
        : [],
    ),
  );
  const checks = itemsOf(healthChecks).flatMap(({ metadata, spec }) => {
    const compiled = compileNodePolicy(spec, metadata.annotations);
    return "policy" in compiled ? [{ selects: compiled.policy.selects, problem: errors.get(metadata.name) }] : [];
  });
  // A MachineHealthCheck watches Machines, wherever their nodes are.
  const mayBeWatched = itemsOf(machineHealthChecks).length > 0;
  return (node: Node): Verdict | undefined => {
    const concerned = checks.filter(({ selects }) => selects(node.metadata.labels));
    if (concerned.length === 0) {
      if (mayBeWatched) return undefined;
      if (healthChecks !== undefined && "problem" in healthChecks)
        return unknown("HealthChecksUnread", healthChecks.problem);
      return { answer: "yes", reason: "NoHealthCheck", message: "by hand only: no health check covers it" };
    }
    const [first] = concerned;
    if (first?.problem === undefined || concerned.some(({ problem }) => problem === undefined)) return undefined;
    return no(first.problem.reason, `NodeHealthCheck ${first.problem.name ?? ""}: ${first.problem.message}`);
  };
}
