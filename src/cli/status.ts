import { buildCommand } from "@stricli/core";
import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import { CLUSTER_API_GROUP } from "../api/cluster-api.ts";
import type { ConfigMap } from "../api/core.ts";
import { CONFIG_MAPS } from "../api/core-types.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import { FENCING_TARGETS } from "../api/fencing-target.ts";
import { conditionOf } from "../api/foreign.ts";
import { readMachineHealthCheckStatus } from "../api/machine-health-check.ts";
import type { Condition } from "../api/meta.ts";
import type { NodeHealthCheck } from "../api/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../api/node-health-check.ts";
import { folderOf } from "../api/kinds.ts";
import { STOP_SWITCH_NAME, STOP_SWITCH_REASON, stops } from "../api/stop-switch.ts";
import { requireOption } from "../config/option.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../config/run-options.ts";
import { CLUSTER_API_CHECKS } from "../detector/machines/cluster-api.ts";
import { OKD_CHECKS } from "../detector/machines/okd.ts";
import type { KubeClient, ListOptions } from "../kube/client.ts";
import type { ClusterRef } from "../clusters/workload-clusters.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeObject, ResourceType } from "../kube/resource.ts";
import { keyOf, keyText } from "../kube/watched.ts";
import { nodeKey } from "../remediator/subject.ts";
import { withCluster } from "./cluster.ts";
import type { CliContext } from "./context.ts";
import { printLine } from "./context.ts";
import type { FlagTexts } from "./flags.ts";
import { flagsOf } from "./flags.ts";
import type { Listed } from "./status-foreign.ts";
import { listForeign, listKind } from "./status-foreign.ts";
import { HOST_KIND, renderHosts } from "./status-hosts.ts";
import type { Requests } from "./status-requests.ts";
import { listRequests, renderRequests } from "./status-requests.ts";
import { renderTable } from "./table.ts";

const MACHINE_KINDS = [CLUSTER_API_CHECKS, OKD_CHECKS];

/** Everything that `ironfence status` shows; undefined stands for a kind that the cluster does not serve. */
interface Overview {
  stopSwitch: { paused: boolean; reason: string | undefined };
  healthChecks: NodeHealthCheck[] | undefined;
  /** Of every kind that is served. */
  machineHealthChecks: KubeObject[] | undefined;
  /** `namespace/name` of health checks of Cluster API whose Cluster is not there: nobody serves them, so they have no status. */
  withoutCluster: string[];
  bareMetalHosts: Listed;
  requests: Requests;
  remediations: BareMetalRemediation[] | undefined;
  targets: FencingTarget[] | undefined;
}

/** `ironfence status`: health checks, remediations and fencing targets at one glance. */
export const statusCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function status(this: CliContext, flags) {
    const options = resolveClusterOptions(flags, this.process.env);
    const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
    const overview = await withCluster(this, options, (client) => readOverview(client, options.namespace, this.signal));
    if (output === "json") printLine(this, JSON.stringify(overview));
    else for (const line of renderOverview(overview)) printLine(this, line);
  },
  parameters: {
    flags: flagsOf({ ...CLUSTER_OPTIONS, output: OUTPUT_OPTION }),
    aliases: { o: "output" },
  },
  docs: {
    brief: "Show health checks, remediations and fencing targets",
    customUsage: [
      { input: "", brief: "tables" },
      { input: "-o json", brief: "one JSON object, for scripts" },
    ],
  },
});

async function readOverview(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Overview> {
  const [stopSwitch, healthChecks, machineHealthChecks, remediations, targets, bareMetalHosts, requests] =
    await Promise.all([
      readSwitch(client, namespace, signal),
      listIfServed<NodeHealthCheck>(client, NODE_HEALTH_CHECKS, {}, signal),
      listMachineHealthChecks(client, signal),
      listIfServed<BareMetalRemediation>(client, BARE_METAL_REMEDIATIONS, {}, signal),
      listIfServed<FencingTarget>(client, FENCING_TARGETS, { namespace }, signal),
      listForeign(client, HOST_KIND, signal),
      listRequests(client, signal),
    ]);
  return { stopSwitch, healthChecks, ...machineHealthChecks, remediations, targets, bareMetalHosts, requests };
}

async function listMachineHealthChecks(
  client: KubeClient,
  signal: AbortSignal,
): Promise<Pick<Overview, "machineHealthChecks" | "withoutCluster">> {
  const lists = await Promise.all(MACHINE_KINDS.map(({ checks }) => listKind(client, checks, signal)));
  const withoutCluster: string[] = [];
  for (const [index, kind] of MACHINE_KINDS.entries()) {
    const checks = lists[index] ?? [];
    if (kind.clusters === undefined || checks.length === 0) continue;
    const clusters = new Set(
      ((await listKind(client, kind.clusters, signal)) ?? []).map((cluster) => keyText(keyOf(cluster))),
    );
    for (const check of checks.map((raw) => kind.readCheck(raw))) {
      const { namespace, name } = check.metadata;
      if (!clusters.has(keyText({ namespace, name: check.spec.clusterName })))
        withoutCluster.push(`${namespace}/${name}`);
    }
  }
  const isServed = lists.some((list) => list !== undefined);
  return { machineHealthChecks: isServed ? lists.flatMap((list) => list ?? []) : undefined, withoutCluster };
}

async function readSwitch(client: KubeClient, namespace: string, signal: AbortSignal): Promise<Overview["stopSwitch"]> {
  try {
    const { data } = await client.get<ConfigMap>(CONFIG_MAPS, { namespace, name: STOP_SWITCH_NAME }, signal);
    return { paused: stops(data), reason: data?.[STOP_SWITCH_REASON] };
  } catch (error) {
    if (isKubeError(error, "NotFound")) return { paused: false, reason: undefined };
    throw error;
  }
}

async function listIfServed<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType,
  options: ListOptions,
  signal: AbortSignal,
): Promise<T[] | undefined> {
  try {
    return (await client.list<T>(type, options, signal)).items;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/** A node, with its cluster before it where that is another one. */
function nodeText({ name = "-", cluster }: { name?: string | undefined; cluster?: ClusterRef | undefined }): string {
  return nodeKey({ cluster, name });
}

function renderOverview(overview: Overview): string[] {
  const { stopSwitch, healthChecks, machineHealthChecks, remediations, targets, bareMetalHosts } = overview;
  return [
    ...(stopSwitch.paused ? [`PAUSED: no new power-off is sent (${stopSwitch.reason ?? "no reason given"})`, ""] : []),
    ...section(
      "NodeHealthCheck",
      ["NAME", "OBSERVED", "HEALTHY", "PHASE", "REASON"],
      healthChecks?.map((check) => [
        check.metadata.name,
        String(check.status?.observedNodes ?? "-"),
        String(check.status?.healthyNodes ?? "-"),
        check.status?.phase ?? "-",
        check.status?.reason ?? "",
      ]),
    ),
    "",
    // Another project's kind: most clusters do not have it.
    ...(machineHealthChecks === undefined ? [] : [...machineSection(machineHealthChecks, overview.withoutCluster), ""]),
    ...section(
      "BareMetalRemediation",
      ["NAMESPACE", "NAME", "NODE", "PHASE", "SUCCEEDED", "REASON", "MESSAGE"],
      remediations?.map((remediation) => {
        const succeeded = condition(remediation.status?.conditions, "Succeeded");
        const processing = condition(remediation.status?.conditions, "Processing");
        const said = succeeded?.status === "Unknown" ? (processing ?? succeeded) : succeeded;
        return [
          remediation.metadata.namespace ?? "",
          remediation.metadata.name,
          remediation.status?.node === undefined ? "-" : nodeText(remediation.status.node),
          remediation.status?.phase ?? "-",
          succeeded?.status ?? "-",
          said?.reason ?? "",
          said?.message ?? "",
        ];
      }),
    ),
    "",
    ...renderRequests(overview.requests, remediations ?? []),
    ...renderHosts(bareMetalHosts),
    ...section(
      "FencingTarget",
      ["NAME", "NODE", "POWER", "READY", "REASON", "MESSAGE"],
      targets?.map((target) => {
        const ready = condition(target.status?.conditions, "Ready");
        return [
          target.metadata.name,
          nodeText({ name: target.spec.nodeName, cluster: target.spec.clusterRef }),
          target.status?.powerState ?? "-",
          ready?.status ?? "-",
          target.spec.maintenance ? "Maintenance" : (ready?.reason ?? ""),
          ready?.status === "True" ? "" : (ready?.message ?? ""),
        ];
      }),
    ),
  ];
}

function machineSection(healthChecks: readonly KubeObject[], withoutCluster: readonly string[]): string[] {
  return section(
    "MachineHealthCheck",
    ["NAMESPACE", "NAME", "EXPECTED", "HEALTHY", "ALLOWED", "REASON"],
    healthChecks.map((raw) => {
      const { namespace = "", name } = raw.metadata;
      const { expectedMachines, currentHealthy, remediationsAllowed, ...forms } = readMachineHealthCheckStatus(raw);
      const allowed = conditionOf([...forms.conditions, ...forms.v1beta1Conditions], "RemediationAllowed");
      const counts = [expectedMachines, currentHealthy, remediationsAllowed].map((count) => String(count ?? "-"));
      const isWaiting =
        withoutCluster.includes(`${namespace}/${name}`) && raw.apiVersion.startsWith(`${CLUSTER_API_GROUP}/`);
      const held = allowed?.status === "False" ? allowed.message : "";
      return [namespace, name, ...counts, isWaiting ? "its Cluster is not there" : held];
    }),
  );
}

function section(kind: string, header: string[], rows: string[][] | undefined): string[] {
  if (rows === undefined) return [`${kind}: not served by this cluster; install ${folderOf({ kind })}`];
  if (rows.length === 0) return [`${kind}: none`];
  return [`${kind}:`, ...renderTable(header, rows)];
}

function condition(conditions: Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((candidate) => candidate.type === type);
}
