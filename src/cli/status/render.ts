import { CLUSTER_API_GROUP } from "../../api/cluster-api/cluster-api.ts";
import { conditionOf } from "../../api/schema/read-fields.ts";
import { causeText } from "../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { folderOf } from "../../api/ironfence/kinds.ts";
import { readMachineHealthCheckStatus } from "../../api/cluster-api/machine-health-check.ts";
import type { NodeHealthCheck } from "../../api/ironfence/node-health-check.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { nodeKey } from "../../nodes/subject.ts";
import { renderHosts } from "./objects/hosts.ts";
import type { ListResult } from "./objects/foreign.ts";
import type { Problem } from "./objects/object-problems.ts";
import { itemsOf, onlyObserver, reportedCondition, shorten } from "./objects/object-problems.ts";
import type { FenceReadiness } from "./could-fence/could-fence.ts";
import { groupsOf, judgeNodes } from "./could-fence/could-fence.ts";
import type { Agent, Overview } from "./objects/read.ts";
import { renderRequests } from "./objects/requests.ts";
import { renderTable } from "../terminal/table.ts";
import { readyOf } from "../../remediator/hosts/fencing-target/target-store.ts";

/** Renders each problem as one line, in full sentences. */
export function renderProblems(problems: readonly Problem[]): string[] {
  if (problems.length === 0) return ["no problems"];
  return [
    `PROBLEMS (${problems.length}):`,
    ...problems.map(({ severity, kind, name, reason, message }) => {
      const what = name === undefined ? kind : `${kind} ${name}`;
      return `  ${severity === "error" ? "!" : "-"} ${what}: ${reason}: ${message}`;
    }),
  ];
}

/** All sections, the problems and the agent first. */
export function renderOverview(overview: Overview, problems: readonly Problem[]): string[] {
  const { stopSwitch, healthChecks, machineHealthChecks, remediations, targets, bareMetalHosts } = overview;
  const isPaused = "paused" in stopSwitch && stopSwitch.paused;
  return [
    `cluster ${overview.cluster.server} (${overview.cluster.source}), namespace ${overview.namespace}`,
    // If only an observer runs, leave the line about the agent out: it would wrongly advise to start one.
    ...(onlyObserver(overview) === undefined ? [agentText(overview.agent)] : []),
    ...observerLines(overview),
    ...(isPaused ? [`PAUSED: no new power-off is sent: ${stopSwitch.reason ?? ""}`] : []),
    ...answers(overview),
    "",
    ...renderProblems(problems),
    "",
    ...section("NodeHealthCheck", ["NAME", "OBSERVED", "HEALTHY", "PHASE", "REASON"], healthChecks, (check) => [
      check.metadata.name,
      String(check.status?.observedNodes ?? "-"),
      String(check.status?.healthyNodes ?? "-"),
      check.status?.phase ?? "-",
      checkReason(check, overview),
    ]),
    "",
    // Most clusters do not have this kind of another project.
    ...(machineHealthChecks === undefined ? [] : [...machineSection(machineHealthChecks, overview.withoutCluster), ""]),
    ...section(
      "BareMetalRemediation",
      ["NAMESPACE", "NAME", "NODE", "PHASE", "SUCCEEDED", "REASON", "MESSAGE"],
      remediations,
      (remediation) => {
        const { metadata, status } = remediation;
        const condition = reportedCondition(remediation);
        return [
          metadata.namespace ?? "",
          metadata.name,
          status?.node === undefined ? "-" : nodeText(status.node),
          status?.phase ?? "-",
          conditionOf(status?.conditions, "Succeeded")?.status ?? "-",
          condition?.reason ?? "-",
          condition?.message ?? (status?.phase === undefined ? "no agent has begun it yet" : ""),
        ];
      },
    ),
    ...causeLines(itemsOf(remediations)),
    "",
    ...renderRequests(overview.requests, itemsOf(remediations)),
    ...renderHosts(bareMetalHosts),
    ...section("FencingTarget", ["NAME", "NODE", "POWER", "READY", "REASON", "MESSAGE"], targets, (target) => {
      const ready = readyOf(target.status);
      return [
        target.metadata.name,
        nodeText({ name: target.spec.nodeName, cluster: target.spec.clusterRef }),
        target.status?.powerState ?? "-",
        ready?.status ?? "-",
        target.spec.maintenance ? "Maintenance" : (ready?.reason ?? "-"),
        ready === undefined ? "it has not been probed yet" : ready.status === "True" ? "" : ready.message,
      ];
    }),
  ];
}

/** Why the hosts of these remediations died. */
function causeLines(remediations: readonly BareMetalRemediation[]): string[] {
  return remediations.flatMap(({ metadata, status }) =>
    status?.evidence === undefined ? [] : [`  cause of death, ${metadata.name}: ${causeText(status.evidence)}`],
  );
}

function agentText(agent: Agent): string {
  if ("message" in agent) return `agent: ${agent.state === "none" ? "NONE: " : ""}${agent.message}`;
  const { leader, leaseAgeSeconds, leadsSince, version, components, families } = agent;
  const does =
    [...components, ...families].length === 0 ? "" : `, ${components.join(" and ")} for ${families.join(", ")}`;
  const since = leadsSince === undefined ? "" : ` since ${leadsSince.replace(/\.\d+Z$/, "Z")}`;
  const state = agent.state === "silent" ? "SILENT, has led" : agent.standsBy === "" ? "leads" : "STANDS BY";
  return `agent: ${leader} ${state}${since}, lease renewed ${leaseAgeSeconds} s ago, version ${version ?? "0.1.0 or older"}${does}`;
}

/** What an agent that only observes would have remediated, the last one first. */
function observerLines({ observer, agent: fencer }: Overview): string[] {
  if (observer === undefined) return [];
  const { agent, observed } = observer;
  // An upgrade that replaces an observer may remove its permission to release its Lease before it ends, so the Lease
  // looks silent.
  const isReplaced = agent.state === "silent" && fencer.state === "leading";
  const rows = observed.map(({ at, until, node, remedy, healthCheck, because }) => [
    at,
    until ?? "not yet",
    node,
    remedy,
    healthCheck,
    because,
  ]);
  return [
    // The Lease of the observer stays, with what it has observed. The usual advice to start an agent would be wrong
    // here.
    agent.state === "none" || isReplaced
      ? "observer: none runs any more"
      : agentText(agent).replace(/^agent:/, "observer:"),
    ...(rows.length === 0
      ? ["  it would have remediated nothing yet"]
      : [
          `  it would have remediated (last ${rows.length}, nothing was written):`,
          ...renderTable(["AT", "WELL AGAIN", "NODE", "BY", "HEALTH CHECK", "BECAUSE"], rows.toReversed()).map(
            (line) => `  ${line}`,
          ),
        ]),
  ];
}

/** The answer for all nodes, and each reason for which one could not be fenced. */
function answers(overview: Overview): string[] {
  const { nodes, unread } = judgeNodes(overview);
  if (overview.nodes === undefined) return [];
  if (unread !== undefined) return [`nodes: cannot be shown: ${unread}`];
  const count = (wanted: FenceReadiness["answer"]): FenceReadiness[] => nodes.filter(({ answer }) => answer === wanted);
  const byHand = count("yes").filter(({ reason }) => reason === "NoHealthCheck");
  const hand = byHand.length === 0 ? "" : ` (${byHand.length} by hand only: no health check covers them)`;
  const counts = `${count("yes").length} yes${hand}, ${count("no").length} no, ${count("unknown").length} unknown`;
  return [
    `nodes: ${nodes.length}; could be fenced now: ${counts}`,
    ...groupsOf(nodes).map(({ answer, reason, nodes: names }) => `  ${answer}: ${reason}: ${shorten(names)}`),
  ];
}

/** Why a health check does what it does: the reason in its status or in a condition, or that no agent has read it. */
function checkReason({ status }: NodeHealthCheck, overview: Overview): string {
  const held = status?.conditions?.find(({ type, status }) => type === "Disabled" && status === "True");
  const condition = held ?? status?.conditions?.find(({ reason }) => reason !== "");
  const unread =
    onlyObserver(overview) === undefined ? "no agent has read it yet" : "an agent that observes stores no status";
  return status?.reason ?? (condition === undefined ? unread : `${condition.reason}: ${condition.message}`);
}

function machineSection(healthChecks: ListResult, withoutCluster: readonly string[]): string[] {
  const header = ["NAMESPACE", "NAME", "EXPECTED", "HEALTHY", "ALLOWED", "REASON"];
  return section("MachineHealthCheck", header, healthChecks, (raw) => {
    const { namespace = "", name } = raw.metadata;
    const { expectedMachines, currentHealthy, remediationsAllowed, ...forms } = readMachineHealthCheckStatus(raw);
    const allowed = conditionOf([...forms.conditions, ...forms.v1beta1Conditions], "RemediationAllowed");
    const counts = [expectedMachines, currentHealthy, remediationsAllowed].map((count) => String(count ?? "-"));
    const isWaiting =
      withoutCluster.includes(`${namespace}/${name}`) && raw.apiVersion.startsWith(`${CLUSTER_API_GROUP}/`);
    const condition = allowed?.message || (allowed?.status === "False" ? allowed.reason : "");
    return [namespace, name, ...counts, isWaiting ? "its Cluster does not exist" : condition];
  });
}

function section<T extends KubeObject>(
  kind: string,
  header: string[],
  result: ListResult<T>,
  rowOf: (object: T) => string[],
): string[] {
  if (result === undefined) return [`${kind}: not served by this cluster; install ${folderOf({ kind })}`];
  if (!Array.isArray(result)) return [`${kind}: cannot be shown: ${result.problem}`];
  if (result.length === 0) return [`${kind}: none`];
  return [`${kind}:`, ...renderTable(header, result.map(rowOf))];
}

/** A node, preceded by its cluster if that is another one. */
function nodeText({ name = "-", cluster }: { name?: string | undefined; cluster?: ClusterRef | undefined }): string {
  return nodeKey({ cluster, name });
}
