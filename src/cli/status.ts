import { buildCommand } from "@stricli/core";
import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import type { ConfigMap } from "../api/core.ts";
import { CONFIG_MAPS } from "../api/core-types.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import { FENCING_TARGETS } from "../api/fencing-target.ts";
import { conditionOf } from "../api/foreign.ts";
import { readMachineHealthCheckStatus } from "../api/machine-health-check.ts";
import type { Condition } from "../api/meta.ts";
import type { NodeHealthCheck } from "../api/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../api/node-health-check.ts";
import { STOP_SWITCH_NAME, STOP_SWITCH_REASON, stops } from "../api/stop-switch.ts";
import { requireOption } from "../config/option.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../config/run-options.ts";
import { CLUSTER_API_CHECKS } from "../detector/machines/cluster-api.ts";
import { OKD_CHECKS } from "../detector/machines/okd.ts";
import type { KubeClient, ListOptions } from "../kube/client.ts";
import type { ClusterRef } from "../clusters/workload-clusters.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeObject, ResourceType } from "../kube/resource.ts";
import { findServed } from "../kube/served-kind.ts";
import { nodeKey } from "../remediator/subject.ts";
import { withCluster } from "./cluster.ts";
import type { CliContext } from "./context.ts";
import { printLine } from "./context.ts";
import type { FlagTexts } from "./flags.ts";
import { flagsOf } from "./flags.ts";
import { renderTable } from "./table.ts";

const MACHINE_KINDS = [CLUSTER_API_CHECKS, OKD_CHECKS];

/** Everything that `ironfence status` shows; undefined stands for a kind that the cluster does not serve. */
interface Overview {
  stopSwitch: { paused: boolean; reason: string | undefined };
  healthChecks: NodeHealthCheck[] | undefined;
  /** Of every kind that is served. */
  machineHealthChecks: KubeObject[] | undefined;
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
  const [stopSwitch, healthChecks, machineHealthChecks, remediations, targets] = await Promise.all([
    readSwitch(client, namespace, signal),
    listIfServed<NodeHealthCheck>(client, NODE_HEALTH_CHECKS, {}, signal),
    listMachineHealthChecks(client, signal),
    listIfServed<BareMetalRemediation>(client, BARE_METAL_REMEDIATIONS, {}, signal),
    listIfServed<FencingTarget>(client, FENCING_TARGETS, { namespace }, signal),
  ]);
  return { stopSwitch, healthChecks, machineHealthChecks, remediations, targets };
}

async function listMachineHealthChecks(client: KubeClient, signal: AbortSignal): Promise<KubeObject[] | undefined> {
  const found: KubeObject[] = [];
  let isServed = false;
  for (const { checks } of MACHINE_KINDS) {
    const type = await findServed({ client }, checks, signal);
    if (type === undefined) continue;
    isServed = true;
    found.push(...(await client.list<KubeObject>(type, {}, signal)).items);
  }
  return isServed ? found : undefined;
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
  const { stopSwitch, healthChecks, machineHealthChecks, remediations, targets } = overview;
  return [
    ...(stopSwitch.paused
      ? [`PAUSED: no new power order is sent (${stopSwitch.reason ?? "no reason given"})`, ""]
      : []),
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
    ...(machineHealthChecks === undefined ? [] : [...machineSection(machineHealthChecks), ""]),
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

function machineSection(healthChecks: readonly KubeObject[]): string[] {
  return section(
    "MachineHealthCheck",
    ["NAMESPACE", "NAME", "EXPECTED", "HEALTHY", "ALLOWED", "REASON"],
    healthChecks.map((raw) => {
      const { namespace = "", name } = raw.metadata;
      const { expectedMachines, currentHealthy, remediationsAllowed, ...forms } = readMachineHealthCheckStatus(raw);
      const allowed = conditionOf([...forms.conditions, ...forms.v1beta1Conditions], "RemediationAllowed");
      const counts = [expectedMachines, currentHealthy, remediationsAllowed].map((count) => String(count ?? "-"));
      return [namespace, name, ...counts, allowed?.status === "False" ? allowed.message : ""];
    }),
  );
}

function section(kind: string, header: string[], rows: string[][] | undefined): string[] {
  if (rows === undefined) return [`${kind}: not served by this cluster; install deploy/crds`];
  if (rows.length === 0) return [`${kind}: none`];
  return [`${kind}:`, ...renderTable(header, rows)];
}

function condition(conditions: Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((candidate) => candidate.type === type);
}
