import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import type { NodeHealthCheckSpec } from "../../src/api/ironfence/node-health-check.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { startControlPlane } from "../control-plane/control-plane.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import type { ApiAddress } from "../control-plane/kubeconfig.ts";
import { applyObject } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import type { HostSpec } from "../rack/host.ts";
import { startKubelets } from "../rack/kubelet.ts";
import type { KubeletOptions } from "../rack/kubelet.ts";
import { startAgent } from "./agent.ts";
import type { Agent } from "./agent.ts";
import { eventually } from "./eventually.ts";
import { HEALTH_CHECK, REMEDIATIONS, TARGETS } from "./scenario.ts";
import { ALL_SIMULATED, openClient, startSimulatedHosts } from "./simulated-hosts.ts";
import type { SimulatedHosts } from "./simulated-hosts.ts";
import { NAMESPACE, allReady, install } from "./world.ts";

const START_TIMEOUT_MS = 120_000;
const NODES_READY_TIMEOUT_MS = 60_000;
/** Silence after which a node is Ready=Unknown: long enough for many kubelets on a busy machine. */
const GRACE_MS = 6_000;
/** The lease of a dead node expires before the node is Unknown, as with the defaults of 40 s and 50 s. */
const KUBELETS: KubeletOptions = {
  leasePeriodMs: 1_500,
  leaseDurationSeconds: 3,
  statusPeriodMs: 1_500,
  podPeriodMs: 5_000,
};

export interface RackWorldOptions {
  /** Which hosts have a FencingTarget: all by default. */
  targets?: readonly HostSpec[];
  /** Silence after which a node is Ready=Unknown: 6 s by default. */
  nodeMonitorGracePeriodMs?: number;
  /** By default they renew leases of 3 s every 1.5 s. */
  kubelets?: KubeletOptions;
}

/**
 * A real control plane whose nodes are simulated hosts. The rack has their real power state and can contain many of
 * them.
 */
export interface RackWorld extends Pick<SimulatedHosts, "rack" | "authority"> {
  readonly controlPlane: ControlPlane;
  readonly api: KubeApi;
  readonly hosts: SimulatedHosts;
  /** A client for simulated controllers of other projects. */
  readonly client: KubeClient;
  readonly agents: readonly Agent[];
  startAgent(flags: readonly string[], via?: ApiAddress): Promise<Agent>;
  node(name: string): Promise<Node>;
  remediations(): Promise<BareMetalRemediation[]>;
  stop(): Promise<void>;
}

/**
 * Starts a world with a FencingTarget for each host, and waits until the nodes of all that are on are Ready.
 */
export async function startRackWorld(
  specs: readonly HostSpec[],
  { targets = specs, nodeMonitorGracePeriodMs = GRACE_MS, kubelets: periods = KUBELETS }: RackWorldOptions = {},
): Promise<RackWorld> {
  const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
  const living = new AbortController();
  const agents: Agent[] = [];
  const closers: (() => unknown)[] = [() => living.abort()];
  const stop = async (): Promise<void> => {
    await Promise.all(agents.map((agent) => agent.stop()));
    for (const close of closers.reverse()) await close();
  };
  try {
    const options = { progress, nodeMonitorGracePeriodMs };
    const controlPlane = await startControlPlane(options, AbortSignal.timeout(START_TIMEOUT_MS));
    closers.push(() => controlPlane.stop());
    const { api } = controlPlane;
    const hosts = await startSimulatedHosts(specs);
    const { rack, authority } = hosts;
    closers.push(() => hosts.close());
    await install(api);
    await createTargets(api, hosts, targets);

    const { client, close } = await openClient(controlPlane);
    closers.push(close);
    const logger = createLogger("silent");
    const kubelets = startKubelets({ rack, client, clock: systemClock, logger }, periods, living.signal);
    closers.push(() => {
      living.abort();
      return kubelets;
    });
    const nodes = specs.filter(({ power }) => power !== "Off").length;
    await Promise.race([
      eventually("every node is Ready", NODES_READY_TIMEOUT_MS, () => allReady(api, nodes)),
      controlPlane.failed,
    ]);
    const world = { controlPlane };
    return {
      controlPlane,
      api,
      hosts,
      rack,
      authority,
      client,
      agents,
      startAgent: async (flags, via) => {
        const agent = await startAgent(world, `agent-${agents.length + 1}`, flags, { via });
        agents.push(agent);
        return agent;
      },
      node: (name) => api.get<Node>(`/api/v1/nodes/${name}`),
      remediations: () => api.list<BareMetalRemediation>(REMEDIATIONS),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function createTargets(api: KubeApi, hosts: SimulatedHosts, targets: readonly HostSpec[]): Promise<void> {
  await api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "bmc", annotations: { "ironfence.io/allowed-addresses": ALL_SIMULATED } },
    stringData: hosts.login,
  });
  for (const { name } of targets) {
    const address = hosts.address(name);
    const device = { address, credentialsSecretRef: { name: "bmc" }, tls: { caSecretRef: { name: "bmc" } } };
    const { systemUUID } = hosts.rack.host(name).spec;
    await api.create(TARGETS, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "FencingTarget",
      metadata: { name },
      spec: { nodeName: name, identity: { systemUUID }, devices: [device] },
    });
  }
}

/** Creates a health check over all nodes, and its remediation template. */
export async function createHealthCheck(
  { api }: Pick<RackWorld, "api">,
  strategy: object,
  spec: Partial<NodeHealthCheckSpec>,
  {
    name = "workers",
    template: templateName = "reboot",
    annotations = {},
  }: { name?: string; template?: string; annotations?: Record<string, string> } = {},
): Promise<void> {
  const template = { namespace: NAMESPACE, name: templateName };
  const apiVersion = "ironfence.io/v1alpha1";
  await api.create(`/apis/${apiVersion}/namespaces/${NAMESPACE}/baremetalremediationtemplates`, {
    apiVersion,
    kind: "BareMetalRemediationTemplate",
    metadata: template,
    spec: { template: { spec: { strategy } } },
  });
  await api.create(HEALTH_CHECK.slice(0, HEALTH_CHECK.lastIndexOf("/")), {
    apiVersion: "remediation.medik8s.io/v1alpha1",
    kind: "NodeHealthCheck",
    metadata: { name, annotations },
    spec: {
      selector: { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "Exists" }] },
      unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "1s" }],
      remediationTemplate: { apiVersion, kind: "BareMetalRemediationTemplate", ...template },
      ...spec,
    },
  });
}

/** Creates a MachineHealthCheck of Cluster API with its Cluster. The agent serves it only if its family is chosen. */
export async function createMachineHealthCheck(api: KubeApi): Promise<void> {
  const group = "cluster.x-k8s.io/v1beta1";
  const metadata = { namespace: "default", name: "workload" };
  await applyObject(api, { apiVersion: group, kind: "Cluster", metadata, spec: {} });
  const spec = { clusterName: "workload", selector: { matchLabels: { role: "worker" } }, unhealthyConditions: [] };
  await applyObject(api, { apiVersion: group, kind: "MachineHealthCheck", metadata, spec });
}
