import { createKubeClient } from "../../src/kube/api-client.ts";
import { loadCluster } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { startControlPlane } from "../control-plane/control-plane.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { applyManifests } from "../lib/apply.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { startBareMetalHostOperator } from "../rack/bare-metal-host-operator.ts";
import { PROVISIONED_STATUS } from "../rack/bare-metal-host-status.ts";
import type { HostSpec } from "../rack/host.ts";
import { startKubelets } from "../rack/kubelet.ts";
import { createRack } from "../rack/rack.ts";
import type { Rack } from "../rack/rack.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";
import type { RedfishMock } from "../redfish-mock/server.ts";
import { startAgent } from "./agent.ts";
import type { Agent } from "./agent.ts";
import { eventually } from "./eventually.ts";
import type { MachinesOptions } from "./machines.ts";
import { applyForeignCrds, createCluster, createMachine, machinePaths } from "./machines.ts";
import { startWorkloadCluster } from "./workload-cluster.ts";
import { allReady, install, repositoryPath } from "./world.ts";

const START_TIMEOUT_MS = 180_000;
const NODES_READY_TIMEOUT_MS = 60_000;
const MANAGEMENT_GRACE_MS = 50_000;
/** A dead node's lease is old news once it is Unknown, as it is with the stock 40 s and 50 s. */
const KUBELETS = { leasePeriodMs: 1_500, leaseDurationSeconds: 3, statusPeriodMs: 1_500, podPeriodMs: 1_000 };
/** The operator's own delays, shorter. */
const OPERATOR = { lookMs: 300, reconcileMs: 10_000, orderDelayMs: 300, mirrorDelayMs: 1_000 };
const LOGIN = { username: "fencing", password: "correct-horse" };
/** The rights that the agent is given, and no more. */
const FAMILIES = ["cluster-api", "metal3-remediation", "bare-metal-host"];

/** A host with its Machine's labels; the Machine, its Metal3Machine, BareMetalHost and node have the host's name. */
export interface MachineSpec extends HostSpec {
  machineLabels: Readonly<Record<string, string>>;
}

/** A management cluster of Cluster API and Metal3, and a workload cluster on an API server of its own; the rack is the truth about power. */
export interface Metal3World extends MachinesOptions {
  readonly management: ControlPlane;
  readonly workload: ControlPlane;
  readonly rack: Rack;
  readonly agents: readonly Agent[];
  startAgent(flags: readonly string[]): Promise<Agent>;
  stop(): Promise<void>;
}

/** Starts it and waits until every node is Ready. */
export async function startMetal3World(
  options: Pick<MachinesOptions, "version" | "namespace" | "cluster">,
  machines: readonly MachineSpec[],
): Promise<Metal3World> {
  const deps = { clock: systemClock, random: systemRandom };
  const logger = createLogger("silent");
  const living = new AbortController();
  const agents: Agent[] = [];
  const closers: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(agents.map((agent) => agent.stop()));
    for (const close of closers.reverse()) await close();
  };
  const clientOf = async ({ kubeconfig }: ControlPlane): Promise<KubeClient> => {
    const transport = createHttpTransport(await loadCluster({ kubeconfig }), deps);
    closers.push(() => transport.close());
    return createKubeClient({ ...deps, transport });
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
    const rack = createRack({ ...deps, hosts: machines });
    closers.push(() => rack.stop());
    const authority = await createCertificateAuthority(systemClock, "simulated hosts");
    const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
    const { username, password } = LOGIN;
    const login = { username, password: new Secret(password) };
    const redfish = await startRedfishMock({ ...deps, rack, tls, ...login, sessionsMax: 2 * machines.length });
    closers.push(() => redfish.close());

    const where = { api, ...options };
    await applyForeignCrds(where);
    await install(api);
    await createCluster(where);
    for (const family of FAMILIES) await applyManifests(api, repositoryPath(`deploy/families/${family}`));
    await applyManifests(api, repositoryPath("examples/bare-metal-host-credentials.yaml"));
    await api.create(`/api/v1/namespaces/${options.namespace}/secrets`, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "bmc" },
      stringData: { ...LOGIN, "ca.crt": authority.certPem },
    });
    for (const { name, machineLabels } of machines) {
      const uid = await createMachine(where, name, machineLabels);
      await createHost(where, rack, redfish, { name, uid });
    }
    await cluster.publish(api, options.namespace);

    const [managementClient, workloadClient] = await Promise.all([clientOf(management), clientOf(workload)]);
    const operator = startBareMetalHostOperator(
      { client: managementClient, clock: systemClock, logger, rack },
      OPERATOR,
      living.signal,
    );
    const kubelets = startKubelets(
      { rack, client: workloadClient, clock: systemClock, logger },
      KUBELETS,
      living.signal,
    );
    closers.push(() => {
      living.abort();
      return Promise.all([kubelets, operator.settled]);
    });
    await Promise.race([
      eventually("every node is Ready", NODES_READY_TIMEOUT_MS, () => allReady(workload.api, machines.length)),
      management.failed,
      workload.failed,
    ]);
    return {
      ...where,
      management,
      workload,
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

/** Makes a provisioned BareMetalHost for a host of the rack, and the Metal3Machine that has taken it. */
async function createHost(
  options: MachinesOptions,
  rack: Rack,
  redfish: RedfishMock,
  machine: { name: string; uid: string },
): Promise<void> {
  const { name } = machine;
  const { api, namespace } = options;
  const paths = machinePaths(options);
  const apiVersion = `infrastructure.cluster.x-k8s.io/${options.version}`;
  await api.create(paths.metal3Machines, {
    apiVersion,
    kind: "Metal3Machine",
    metadata: {
      name,
      annotations: { "metal3.io/BareMetalHost": `${namespace}/${name}` },
      ownerReferences: [{ apiVersion: `cluster.x-k8s.io/${options.version}`, kind: "Machine", ...machine }],
    },
    spec: { providerID: `metal3://${namespace}/${name}/${name}` },
  });
  await api.create(paths.hosts, {
    apiVersion: "metal3.io/v1alpha1",
    kind: "BareMetalHost",
    metadata: { name },
    spec: {
      online: true,
      bmc: {
        address: redfish.url.replace(/^https/, "redfish") + redfish.systemPath(name),
        credentialsName: "bmc",
      },
      image: { url: "http://image.example/os.raw" },
      consumerRef: { apiVersion, kind: "Metal3Machine", name, namespace },
    },
  });
  await api.mergePatch(`${paths.hosts}/${name}/status`, {
    status: {
      ...PROVISIONED_STATUS,
      lastUpdated: "2026-01-01T00:00:00Z",
      hardware: { systemVendor: { serialNumber: rack.host(name).spec.serialNumber } },
    },
  });
}
