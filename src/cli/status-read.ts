import {
  AGENT_COMPONENTS,
  AGENT_FAMILIES,
  AGENT_NOT_READY,
  AGENT_STANDS_BY,
  AGENT_VERSION,
} from "../api/annotations.ts";
import type { BareMetalRemediation } from "../api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import type { ConfigMap, Node } from "../api/core.ts";
import { CONFIG_MAPS, NODES } from "../api/core-types.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import { FENCING_TARGETS } from "../api/fencing-target.ts";
import type { NodeHealthCheck } from "../api/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../api/node-health-check.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../api/stop-switch.ts";
import type { ClusterOptions } from "../config/run-options.ts";
import { CLUSTER_API_CHECKS } from "../detector/machines/vendors/cluster-api.ts";
import { OKD_CHECKS } from "../detector/machines/vendors/okd.ts";
import type { KubeClient, ListOptions } from "../kube/client.ts";
import { latestServerTimeMs } from "../kube/clock-offset.ts";
import { isKubeError } from "../kube/errors.ts";
import { findObject } from "../kube/find-object.ts";
import type { Lease } from "../kube/lease-record.ts";
import { holderOf, LEASE } from "../kube/lease-record.ts";
import type { KubeObject, ResourceType } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { keyOf, keyText } from "../kube/watched.ts";
import { serverTimeMs } from "../kube/server-time.ts";
import { parseTimeMs } from "../runtime/time.ts";
import type { ClusterName } from "./cluster.ts";
import type { Listed } from "./status-foreign.ts";
import { listForeign, listKind } from "./status-foreign.ts";
import { HOST_KIND } from "./status-hosts.ts";
import type { Requests } from "./status-requests.ts";
import { listRequests } from "./status-requests.ts";

const MACHINE_KINDS = [CLUSTER_API_CHECKS, OKD_CHECKS];

/** What leads, by its Lease. `state` is `none` where nobody does, `silent` where the lease has run out by the clock of the API server. */
export type Agent =
  | { state: "none" | "forbidden"; message: string }
  | {
      state: "leading" | "silent";
      leader: string;
      /** Since the last renewal, by the clock of the API server. */
      leaseAgeSeconds: number;
      leadsSince: string | undefined;
      /** Absent where the agent is older than this command. */
      version: string | undefined;
      components: string[];
      families: string[];
      /** Which other installation works in its place; empty where this one does. */
      standsBy: string;
      /** Why it is not ready; empty where it is. */
      notReady: string;
    };

/** Everything that `ironfence status` shows. A section is undefined where the cluster does not serve its kind, and has a problem where it may not be read. */
export interface Overview {
  cluster: ClusterName;
  namespace: string;
  nowMs: number;
  agent: Agent;
  /** Why no power-off is sent; undefined where the switch is off. */
  stopSwitch: { paused: boolean; reason?: string; since?: string; until?: string } | { problem: string };
  nodes: Listed<Node>;
  healthChecks: Listed<NodeHealthCheck>;
  /** Of every kind that is served. */
  machineHealthChecks: Listed;
  /** `namespace/name` of health checks of Cluster API whose Cluster is not there: nobody serves them, so they have no status. */
  withoutCluster: string[];
  bareMetalHosts: Listed;
  requests: Requests;
  remediations: Listed<BareMetalRemediation>;
  /** Of the agent's namespace. */
  targets: Listed<FencingTarget>;
  /** Of other namespaces, where nobody uses them; empty also where they may not be listed. */
  strayTargets: FencingTarget[];
}

/** Reads each section by itself: what may not be read costs that section only. @throws KubeError where the cluster is away. */
export async function readOverview(
  runtime: KubeRuntime,
  { namespace, leaseName }: ClusterOptions & { leaseName: string },
  cluster: ClusterName,
  signal: AbortSignal,
): Promise<Overview> {
  const { client } = runtime;
  const nowMs = runtime.clock.nowMs();
  const [agent, stopSwitch, nodes, healthChecks, machines, remediations, targets, bareMetalHosts, requests] =
    await Promise.all([
      readAgent(runtime, { namespace, name: leaseName }, signal),
      readSwitch(runtime, namespace, signal),
      list<Node>(client, NODES, {}, signal),
      list<NodeHealthCheck>(client, NODE_HEALTH_CHECKS, {}, signal),
      listMachineHealthChecks(client, signal),
      list<BareMetalRemediation>(client, BARE_METAL_REMEDIATIONS, {}, signal),
      listTargets(client, namespace, signal),
      listForeign(client, HOST_KIND, signal),
      listRequests(client, signal),
    ]);
  const parts = { agent, stopSwitch, nodes, healthChecks, ...machines, remediations, ...targets };
  return { cluster, namespace, nowMs, ...parts, bareMetalHosts, requests };
}

async function readAgent(
  runtime: KubeRuntime,
  key: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<Agent> {
  const where = `Lease ${key.namespace}/${key.name}`;
  let lease: Lease | undefined;
  try {
    lease = await findObject<Lease>(runtime.client, LEASE, key, signal);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return { state: "forbidden", message: `cannot be shown: ${error.message}` };
  }
  const start = "start one with deploy/kustomize, or `ironfence run`";
  const leader = holderOf(lease);
  if (lease === undefined) return { state: "none", message: `no agent has led here (there is no ${where}): ${start}` };
  if (leader === undefined) return { state: "none", message: `no agent leads (${where} is free): ${start}` };
  const { renewTime, leaseDurationSeconds = 0, acquireTime } = lease.spec ?? {};
  // The clock of this machine may be wrong by minutes; the read above has measured that of the API server.
  const ageMs = latestServerTimeMs(runtime) - (parseTimeMs(renewTime) ?? 0);
  const annotations = lease.metadata.annotations ?? {};
  const listOf = (text: string | undefined): string[] => (text === undefined || text === "" ? [] : text.split(","));
  return {
    state: ageMs > leaseDurationSeconds * 1_000 + CLOCKS_APART_MS ? "silent" : "leading",
    leader,
    leaseAgeSeconds: Math.max(0, Math.round(ageMs / 1_000)),
    leadsSince: acquireTime,
    version: annotations[AGENT_VERSION],
    components: listOf(annotations[AGENT_COMPONENTS]),
    families: listOf(annotations[AGENT_FAMILIES]),
    standsBy: annotations[AGENT_STANDS_BY] ?? "",
    notReady: annotations[AGENT_NOT_READY] ?? "",
  };
}

/** How far the clocks of this machine and of the agent's may be apart before an agent that renews its lease looks silent. */
const CLOCKS_APART_MS = 5_000;

async function readSwitch(
  runtime: KubeRuntime,
  namespace: string,
  signal: AbortSignal,
): Promise<Overview["stopSwitch"]> {
  try {
    const key = { namespace, name: STOP_SWITCH_NAME };
    const present = await findObject<ConfigMap>(runtime.client, CONFIG_MAPS, key, signal);
    const pause = stoppedBy(present, serverTimeMs(runtime));
    if (pause === undefined) return { paused: false };
    const { since, until } = present?.data ?? {};
    return {
      paused: true,
      reason: pause.reason,
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
    };
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return { problem: error.message };
  }
}

async function list<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType,
  options: ListOptions,
  signal: AbortSignal,
): Promise<Listed<T>> {
  try {
    return (await client.list<T>(type, options, signal)).items;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    if (isKubeError(error, "Forbidden")) return { problem: error.message };
    throw error;
  }
}

/** Those of every namespace, so that one in the wrong place is seen; those of the agent's alone where no more may be listed. */
async function listTargets(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<Pick<Overview, "targets" | "strayTargets">> {
  const all = await list<FencingTarget>(client, FENCING_TARGETS, {}, signal);
  if (!Array.isArray(all)) {
    const targets =
      all === undefined ? undefined : await list<FencingTarget>(client, FENCING_TARGETS, { namespace }, signal);
    return { targets, strayTargets: [] };
  }
  const { used = [], stray = [] } = Object.groupBy(all, ({ metadata }) =>
    metadata.namespace === namespace ? "used" : "stray",
  );
  return { targets: used, strayTargets: stray };
}

async function listMachineHealthChecks(
  client: KubeClient,
  signal: AbortSignal,
): Promise<Pick<Overview, "machineHealthChecks" | "withoutCluster">> {
  try {
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
    const isServed = lists.some((found) => found !== undefined);
    return { machineHealthChecks: isServed ? lists.flatMap((found) => found ?? []) : undefined, withoutCluster };
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return { machineHealthChecks: { problem: error.message }, withoutCluster: [] };
  }
}
