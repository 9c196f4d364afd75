import {
  AGENT_COMPONENTS,
  AGENT_FAMILIES,
  AGENT_MAX_HOSTS,
  AGENT_MAX_HOSTS_PER_ZONE,
  AGENT_NOT_READY,
  AGENT_STANDS_BY,
  AGENT_VERSION,
} from "../../../api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { ConfigMap, Node } from "../../../api/kubernetes/core.ts";
import { CONFIG_MAPS, NODES } from "../../../api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../api/ironfence/fencing-target.ts";
import type { NodeHealthCheck } from "../../../api/ironfence/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../../../api/ironfence/node-health-check.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../../../api/ironfence/stop-switch.ts";
import type { WithheldRemediation } from "../../../api/ironfence/withheld-remediation.ts";
import { readWithheldRemediations } from "../../../api/ironfence/withheld-remediation.ts";
import type { ClusterOptions } from "../../../config/cluster-options.ts";
import { observingLeaseName } from "../../../config/resolve-run-options.ts";
import { CLUSTER_API_CHECKS } from "../../../detector/machines/vendors/cluster-api.ts";
import { OKD_CHECKS } from "../../../detector/machines/vendors/okd.ts";
import type { KubeClient, ListOptions } from "../../../kube/client.ts";
import { latestServerTimeMs } from "../../../kube/server-time.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { LeaderLease } from "../../../kube/lease/lease-record.ts";
import { holderOf, LEASE } from "../../../kube/lease/lease-record.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { keyOf, keyText } from "../../../kube/watched.ts";
import { serverTimeMs } from "../../../kube/server-time.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { ClusterAddress } from "../../cluster/connect.ts";
import type { ListResult } from "./foreign.ts";
import { listForeign, listKind } from "./foreign.ts";
import { HOST_KIND } from "./hosts.ts";
import type { Requests } from "./requests.ts";
import { listRequests } from "./requests.ts";

const MACHINE_KINDS = [CLUSTER_API_CHECKS, OKD_CHECKS];

/**
 * The leader, by its Lease. `state` is `none` if there is no leader, `silent` if the lease has expired by the clock of
 * the API server.
 */
export type Agent =
  | { state: "none" | "forbidden"; message: string }
  | {
      state: "leading" | "silent";
      leader: string;
      /** The time since the last renewal, by the clock of the API server. */
      leaseAgeSeconds: number;
      leadsSince: string | undefined;
      /** Absent if the agent is older than this command. */
      version: string | undefined;
      components: string[];
      families: string[];
      /**
       * Limits on hosts that are remediated at once, in all and in one failure zone; absent without a limit, and if the
       * agent is older.
       */
      limits: { hosts?: number; perZone?: number };
      /** Why this installation stands by; empty if it works. */
      standsBy: string;
      /** Why it is not ready; empty if it is. */
      notReady: string;
    };

/**
 * Everything that `ironfence status` shows. A section is undefined if the cluster does not serve its kind, and has a
 * problem if it cannot be read.
 */
export interface Overview {
  cluster: ClusterAddress;
  namespace: string;
  nowMs: number;
  agent: Agent;
  /** An agent with `--observe`, and what it would have remediated; undefined if there is none. */
  observer?: { agent: Agent; observed: WithheldRemediation[] } | undefined;
  /** Why no power-off is sent; undefined if the switch is off. */
  stopSwitch: { paused: boolean; reason?: string; since?: string; until?: string } | { problem: string };
  nodes: ListResult<Node>;
  healthChecks: ListResult<NodeHealthCheck>;
  /** The MachineHealthChecks of every vendor whose kind is served. */
  machineHealthChecks: ListResult;
  /**
   * `namespace/name` of health checks of Cluster API whose Cluster does not exist: no controller serves them, so they
   * have no status.
   */
  withoutCluster: string[];
  /** The Machines of every vendor of which there is a health check. */
  machines: ListResult;
  bareMetalHosts: ListResult;
  requests: Requests;
  remediations: ListResult<BareMetalRemediation>;
  /** The targets in the agent's namespace. */
  targets: ListResult<FencingTarget>;
  /** Targets in other namespaces, which the agent does not use; empty also if they cannot be listed. */
  strayTargets: FencingTarget[];
}

/**
 * Reads each section by itself: a missing permission affects only its section. @throws KubeError if the cluster cannot
 * be reached.
 */
export async function readOverview(
  runtime: KubeRuntime,
  { namespace, leaseName, readsObserver = true }: ClusterOptions & { leaseName: string; readsObserver?: boolean },
  cluster: ClusterAddress,
  signal: AbortSignal,
): Promise<Overview> {
  const { client } = runtime;
  const nowMs = runtime.clock.nowMs();
  const [agent, observer, stopSwitch, nodes, healthChecks, machines, remediations, targets, bareMetalHosts, requests] =
    await Promise.all([
      readAgent(runtime, { namespace, name: leaseName }, signal),
      readsObserver ? readObserver(runtime, { namespace, name: observingLeaseName(leaseName) }, signal) : undefined,
      readSwitch(runtime, namespace, signal),
      list<Node>(client, NODES, {}, signal),
      list<NodeHealthCheck>(client, NODE_HEALTH_CHECKS, {}, signal),
      listMachineHealthChecks(client, signal),
      list<BareMetalRemediation>(client, BARE_METAL_REMEDIATIONS, {}, signal),
      listTargets(client, namespace, signal),
      listForeign(client, HOST_KIND, signal),
      listRequests(client, signal),
    ]);
  const parts = { agent, observer, stopSwitch, nodes, healthChecks, ...machines, remediations, ...targets };
  return { cluster, namespace, nowMs, ...parts, bareMetalHosts, requests };
}

async function readAgent(
  runtime: KubeRuntime,
  key: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<Agent> {
  const where = `Lease ${key.namespace}/${key.name}`;
  let lease: LeaderLease | undefined;
  try {
    lease = await findObject<LeaderLease>(runtime.client, LEASE, key, signal);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return { state: "forbidden", message: `cannot be shown: ${error.message}` };
  }
  return lease === undefined ? noLease(where) : agentOf(lease, where, latestServerTimeMs(runtime));
}

/** Reads the Lease of an agent that only observes. Undefined if there is none, or if it cannot be read. */
async function readObserver(
  runtime: KubeRuntime,
  key: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<Overview["observer"]> {
  try {
    const lease = await findObject<LeaderLease>(runtime.client, LEASE, key, signal);
    if (lease === undefined) return undefined;
    const agent = agentOf(lease, `Lease ${key.namespace}/${key.name}`, latestServerTimeMs(runtime));
    return { agent, observed: readWithheldRemediations(lease.metadata.annotations) };
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return undefined;
  }
}

const START_AGENT = "start one with your installation (deploy/kustomize or the Helm chart), or `ironfence run`";

function noLease(where: string): Agent {
  return { state: "none", message: `no agent has led here (there is no ${where}): ${START_AGENT}` };
}

/** @param nowMs by the clock of the API server: that of this machine may be wrong by minutes. */
function agentOf(lease: LeaderLease, where: string, nowMs: number): Agent {
  const leader = holderOf(lease);
  if (leader === undefined) return { state: "none", message: `no agent leads (${where} is free): ${START_AGENT}` };
  const { renewTime, leaseDurationSeconds = 0, acquireTime } = lease.spec ?? {};
  const ageMs = nowMs - (parseTimeMs(renewTime) ?? 0);
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
    limits: {
      ...limitOf("hosts", annotations[AGENT_MAX_HOSTS]),
      ...limitOf("perZone", annotations[AGENT_MAX_HOSTS_PER_ZONE]),
    },
    standsBy: annotations[AGENT_STANDS_BY] ?? "",
    notReady: annotations[AGENT_NOT_READY] ?? "",
  };
}

function limitOf<K extends string>(name: K, text: string | undefined): { [key in K]?: number } {
  const limit = Number(text ?? 0);
  return Number.isSafeInteger(limit) && limit > 0 ? ({ [name]: limit } as { [key in K]?: number }) : {};
}

/**
 * How far the clocks of the API server and of the agent's machine may be apart before an agent that renews its lease
 * looks silent.
 */
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
): Promise<ListResult<T>> {
  try {
    return (await client.list<T>(type, options, signal)).items;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    if (isKubeError(error, "Forbidden")) return { problem: error.message };
    throw error;
  }
}

/**
 * Lists the targets of every namespace, so that one in the wrong namespace is found. If that is forbidden, lists those
 * of the agent's namespace.
 */
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
): Promise<Pick<Overview, "machineHealthChecks" | "withoutCluster" | "machines">> {
  try {
    const lists = await Promise.all(MACHINE_KINDS.map(({ checks }) => listKind(client, checks, signal)));
    const withoutCluster: string[] = [];
    let machines: ListResult;
    for (const [index, kind] of MACHINE_KINDS.entries()) {
      const checks = lists[index] ?? [];
      if (checks.length === 0) continue;
      machines = joined(machines, await listForeign(client, kind.machines, signal));
      if (kind.clusters === undefined) continue;
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
    return {
      machineHealthChecks: isServed ? lists.flatMap((found) => found ?? []) : undefined,
      withoutCluster,
      machines,
    };
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return { machineHealthChecks: { problem: error.message }, withoutCluster: [], machines: undefined };
  }
}

/** Joins two lists. If one of them cannot be read, the result is its problem. */
function joined(one: ListResult, other: ListResult): ListResult {
  if (one === undefined || other === undefined) return one ?? other;
  if ("problem" in one) return one;
  return "problem" in other ? other : [...one, ...other];
}
