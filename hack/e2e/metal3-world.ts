import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import { startControlPlane } from "../control-plane/control-plane.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { applyManifests } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { startBareMetalHostOperator } from "../rack/bare-metal-host-operator.ts";
import type { HostSpec } from "../rack/host.ts";
import { startKubelets } from "../rack/kubelet.ts";
import type { Rack } from "../rack/rack.ts";
import { startAgent } from "./agent.ts";
import type { Agent } from "./agent.ts";
import type { ConsumerRef } from "./bare-metal-hosts.ts";
import { createBareMetalHost, createCredentials, giveHost, OPERATOR, takeHostBack } from "./bare-metal-hosts.ts";
import { eventually } from "./eventually.ts";
import type { MachineControllers } from "./machine-controllers.ts";
import { MACHINE_FINALIZER, playMachineControllers } from "./machine-controllers.ts";
import type { MachinesOptions, ObjectView } from "./machines.ts";
import {
  applyForeignCrds,
  conditionForms,
  createCluster,
  createMachine,
  machinePaths,
  providerIDOf,
} from "./machines.ts";
import { openClient, startSimulatedHosts } from "./simulated-hosts.ts";
import type { SimulatedHosts } from "./simulated-hosts.ts";
import { startWorkloadCluster } from "./workload-cluster.ts";
import { allReady, install, repositoryPath } from "./world.ts";

const START_TIMEOUT_MS = 180_000;
const NODES_READY_TIMEOUT_MS = 60_000;
/** Silence after which a node is Ready=Unknown, in the management cluster and in the workload cluster. */
const MANAGEMENT_GRACE_MS = 8_000;
/** The lease of a dead node expires before the node is Unknown, as with the defaults of 40 s and 50 s. */
const KUBELETS = { leasePeriodMs: 1_500, leaseDurationSeconds: 3, statusPeriodMs: 1_500, podPeriodMs: 1_000 };
/** The permissions that the agent is granted, and no more. */
/**
 * `okd` is included because the CRDs of OKD are installed too: its permissions are needed in every cluster that serves
 * its kinds.
 */
const FAMILIES = ["cluster-api", "metal3-remediation", "bare-metal-host", "reprovision", "okd"];

/** A host with its Machine's labels; the Machine, its Metal3Machine, BareMetalHost and node have the host's name. */
export interface MachineSpec extends HostSpec {
  machineLabels: Readonly<Record<string, string>>;
}

/** A host that takes one second for each change. */
export const QUICK_HOST: Omit<HostSpec, "name"> = {
  powerOffDelayMs: 1_000,
  powerOnDelayMs: 1_000,
  bootMs: 1_000,
  reprovisionMs: 1_000,
};

/** Workers of a node pool. Health checks select them by the label of the pool. */
export function workers(nodepool: string, names: readonly string[]): MachineSpec[] {
  return names.map((name) => ({ ...QUICK_HOST, name, machineLabels: { nodepool } }));
}

/** Machines of a control plane. */
export function controlPlane(names: readonly string[]): MachineSpec[] {
  const machineLabels = { "cluster.x-k8s.io/control-plane": "" };
  const labels = { "node-role.kubernetes.io/control-plane": "" };
  return names.map((name) => ({ ...QUICK_HOST, name, machineLabels, labels }));
}

/** The hosts of a world. */
export interface Metal3Hosts {
  machines: readonly MachineSpec[];
  /**
   * Hosts without a consumer, which are off. When the Machine `NAME` is deleted, its successor gets the spare host
   * `NAME-successor`. The simulated MachineSet and provider of this world do this.
   */
  spares?: readonly HostSpec[];
  /** BareMetalHosts that no Machine uses. Their nodes belong to the management cluster. */
  bare?: readonly HostSpec[];
}

/**
 * A management cluster of Cluster API and Metal3, and a workload cluster with its own API server. The simulated rack
 * has the real power state of the hosts.
 */
export interface Metal3World extends MachinesOptions {
  readonly management: ControlPlane;
  readonly workload: ControlPlane;
  readonly hosts: SimulatedHosts;
  readonly rack: Rack;
  readonly agents: readonly Agent[];
  startAgent(flags: readonly string[]): Promise<Agent>;
  stop(): Promise<void>;
}

/**
 * Starts the world and waits until every node is Ready.
 *
 * @param clusterApiCrds a folder with upstream's CRDs of Cluster API, instead of those in hack/foreign-crds.
 */
export async function startMetal3World(
  options: Pick<MachinesOptions, "version" | "namespace" | "cluster">,
  { machines, spares = [], bare = [] }: Metal3Hosts,
  clusterApiCrds?: string,
): Promise<Metal3World> {
  const logger = createLogger("silent");
  const living = new AbortController();
  const agents: Agent[] = [];
  const closers: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(agents.map((agent) => agent.stop()));
    for (const close of closers.reverse()) await close();
  };
  const clientOf = async (controlPlane: ControlPlane): Promise<KubeClient> => {
    const { client, close } = await openClient(controlPlane);
    closers.push(close);
    return client;
  };
  try {
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    const [management, { controlPlane: workload, ...cluster }] = await Promise.all([
      startControlPlane({ progress: () => undefined, nodeMonitorGracePeriodMs: MANAGEMENT_GRACE_MS }, signal),
      startWorkloadCluster(options.cluster, signal),
    ]);
    closers.push(
      () => management.stop(),
      () => workload.stop(),
    );
    const { api } = management;
    const provided = (host: HostSpec): HostSpec => ({ ...host, providerID: providerIDOf(options, host.name) });
    const hosts = await startSimulatedHosts([
      ...machines.map(provided),
      ...spares.map((spare) => provided({ ...spare, power: "Off" })),
      ...bare,
    ]);
    const { rack } = hosts;
    closers.push(() => hosts.close());

    const where = { api, ...options };
    await applyForeignCrds(where, clusterApiCrds);
    await install(api);
    await createCluster(where);
    for (const family of FAMILIES) await applyManifests(api, repositoryPath(`deploy/families/${family}`));
    await applyManifests(api, repositoryPath("examples/bare-metal-host-credentials.yaml"), (manifest) => ({
      ...manifest,
      metadata: { ...manifest.metadata, namespace: options.namespace },
    }));
    await createCredentials(api, options.namespace, hosts);
    for (const { name, machineLabels } of machines) {
      const uid = await createMachine(where, name, machineLabels, {
        finalizers: spares.length > 0 ? [MACHINE_FINALIZER] : [],
      });
      await createMetal3Machine(where, { name, uid });
      await createBareMetalHost(api, options.namespace, hosts, { name, consumerRef: consumerOf(where, name) });
    }
    for (const { name } of spares) {
      await createBareMetalHost(api, options.namespace, hosts, { name, state: "available" });
    }
    for (const { name } of bare) await createBareMetalHost(api, options.namespace, hosts, { name });
    await cluster.publish(api, options.namespace);

    const [managementClient, workloadClient] = await Promise.all([clientOf(management), clientOf(workload)]);
    const operator = startBareMetalHostOperator(
      { client: managementClient, clock: systemClock, logger, rack },
      OPERATOR,
      living.signal,
    );
    const kubeletsOf = (client: KubeClient, isTheirs: (host: string) => boolean): Promise<void> =>
      startKubelets({ rack: partOf(rack, isTheirs), client, clock: systemClock, logger }, KUBELETS, living.signal);
    const isBare = (host: string): boolean => bare.some(({ name }) => name === host);
    const background = [
      kubeletsOf(workloadClient, (host) => !isBare(host)),
      kubeletsOf(managementClient, isBare),
      operator.settled,
    ];
    if (spares.length > 0) {
      const onError = (error: unknown): void => void process.stderr.write(`e2e: Machines: ${String(error)}\n`);
      background.push(playMachineControllers(ownersOf(where, workload.api), onError, living.signal));
    }
    closers.push(() => {
      living.abort();
      return Promise.all(background);
    });
    await Promise.race([
      eventually("every node is Ready", NODES_READY_TIMEOUT_MS, async () => {
        return (await allReady(workload.api, machines.length)) && allReady(api, bare.length);
      }),
      management.failed,
      workload.failed,
    ]);
    return {
      ...where,
      management,
      workload,
      hosts,
      rack,
      agents,
      startAgent: async (flags) => {
        const agent = await startAgent({ controlPlane: management }, `agent-${agents.length + 1}`, flags);
        agents.push(agent);
        return agent;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The name of the Machine that replaces another one. Its host has the same name. */
export function successorOf(name: string): string {
  return `${name}-successor`;
}

/**
 * A simulated MachineSet that deletes and replaces the workers that a remediation leaves to it, and Metal3's provider.
 */
function ownersOf(options: MachinesOptions, nodes: KubeApi): MachineControllers {
  const { api } = options;
  const paths = machinePaths(options);
  return {
    api,
    machines: paths.machines,
    nodes,
    isGivenUp: (machine) =>
      machine.metadata.ownerReferences !== undefined &&
      conditionForms(machine, "OwnerRemediated").some((condition) => condition?.status === "False"),
    replace: async ({ metadata: { name, labels = {} } }) => {
      const successor = successorOf(name);
      const made = await api.find<ObjectView>(`${paths.machines}/${successor}`);
      const extra = { hasJoined: false, finalizers: [MACHINE_FINALIZER] };
      const uid = made?.metadata.uid ?? (await createMachine(options, successor, labels, extra));
      const hasTaken = await api.find(`${paths.metal3Machines}/${successor}`);
      if (hasTaken === undefined) await createMetal3Machine(options, { name: successor, uid });
      await giveHost(api, options.namespace, successor, consumerOf(options, successor));
    },
    takeHostBack: ({ metadata: { name } }) => takeHostBack(api, options.namespace, name),
  };
}

function consumerOf({ version, namespace }: MachinesOptions, name: string): ConsumerRef {
  return { apiVersion: `infrastructure.cluster.x-k8s.io/${version}`, kind: "Metal3Machine", namespace, name };
}

/** Creates the Metal3Machine that binds a Machine to the BareMetalHost of the same name. */
async function createMetal3Machine(options: MachinesOptions, machine: { name: string; uid: string }): Promise<void> {
  const { name } = machine;
  const { api, namespace, version } = options;
  await api.create(machinePaths(options).metal3Machines, {
    apiVersion: `infrastructure.cluster.x-k8s.io/${version}`,
    kind: "Metal3Machine",
    metadata: {
      name,
      annotations: { "metal3.io/BareMetalHost": `${namespace}/${name}` },
      ownerReferences: [{ apiVersion: `cluster.x-k8s.io/${version}`, kind: "Machine", ...machine }],
    },
    spec: { providerID: providerIDOf(options, name) },
  });
}

/** The part of a rack that contains only some of its hosts. */
function partOf(rack: Rack, isTheirs: (host: string) => boolean): Rack {
  return {
    ...rack,
    hosts: rack.hosts.filter(({ name }) => isTheirs(name)),
    subscribe: (listener) =>
      rack.subscribe((event) => {
        if (isTheirs(event.host)) listener(event);
      }),
  };
}
