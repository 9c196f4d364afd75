import type { BareMetalRemediation } from "../../src/api/bare-metal-remediation.ts";
import type { Node } from "../../src/api/core.ts";
import type { NodeHealthCheckSpec } from "../../src/api/node-health-check.ts";
import { createKubeClient } from "../../src/kube/api-client.ts";
import { loadCluster } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { startControlPlane } from "../control-plane/control-plane.ts";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import type { ApiAddress } from "../control-plane/kubeconfig.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import type { CertificateAuthority } from "../lib/pki.ts";
import type { HostSpec } from "../rack/host.ts";
import { startKubelets } from "../rack/kubelet.ts";
import { createRack } from "../rack/rack.ts";
import type { Rack } from "../rack/rack.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";
import type { RedfishMock } from "../redfish-mock/server.ts";
import { startAgent } from "./agent.ts";
import type { Agent } from "./agent.ts";
import { eventually } from "./eventually.ts";
import { HEALTH_CHECK, REMEDIATIONS, TARGETS } from "./scenario.ts";
import { NAMESPACE, allReady, install } from "./world.ts";

const START_TIMEOUT_MS = 120_000;
const NODES_READY_TIMEOUT_MS = 60_000;
/** Silence after which a node is Ready=Unknown: long enough for many kubelets on a busy machine. */
const GRACE_MS = 6_000;
/** A dead node's lease is old news once it is Unknown, as it is with the stock 40 s and 50 s. */
const KUBELETS = { leasePeriodMs: 1_500, leaseDurationSeconds: 3, statusPeriodMs: 1_500, podPeriodMs: 5_000 };
const USERNAME = "fencing";
const PASSWORD = "correct-horse";

/** A real control plane whose nodes are simulated hosts: the rack is the truth about power, and holds many of them. */
export interface RackWorld {
  readonly controlPlane: ControlPlane;
  readonly api: KubeApi;
  readonly rack: Rack;
  readonly agents: readonly Agent[];
  /** Signs what else serves in this world. */
  readonly authority: CertificateAuthority;
  startAgent(flags: readonly string[], via?: ApiAddress): Promise<Agent>;
  node(name: string): Promise<Node>;
  remediations(): Promise<BareMetalRemediation[]>;
  stop(): Promise<void>;
}

/** Starts a world with a FencingTarget for each host, and waits until every node is Ready. */
export async function startRackWorld(hosts: readonly HostSpec[]): Promise<RackWorld> {
  const deps = { clock: systemClock, random: systemRandom };
  const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
  const living = new AbortController();
  const agents: Agent[] = [];
  const closers: (() => unknown)[] = [() => living.abort()];
  const stop = async (): Promise<void> => {
    await Promise.all(agents.map((agent) => agent.stop()));
    for (const close of closers.reverse()) await close();
  };
  try {
    const options = { progress, nodeMonitorGracePeriodMs: GRACE_MS };
    const controlPlane = await startControlPlane(options, AbortSignal.timeout(START_TIMEOUT_MS));
    closers.push(() => controlPlane.stop());
    const { api } = controlPlane;
    const rack = createRack({ ...deps, hosts });
    closers.push(() => rack.stop());
    const authority = await createCertificateAuthority(systemClock, "simulated hosts");
    const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
    const login = { username: USERNAME, password: new Secret(PASSWORD) };
    const redfish = await startRedfishMock({ ...deps, rack, tls, ...login, sessionsMax: 2 * hosts.length });
    closers.push(() => redfish.close());
    await install(api);
    await createTargets(api, rack, redfish, authority.certPem);

    const cluster = await loadCluster({ kubeconfig: controlPlane.kubeconfig });
    const transport = createHttpTransport(cluster, { clock: systemClock });
    closers.push(() => transport.close());
    const client = createKubeClient({ ...deps, transport });
    const logger = createLogger("silent");
    const kubelets = startKubelets({ rack, client, clock: systemClock, logger }, KUBELETS, living.signal);
    closers.push(() => {
      living.abort();
      return kubelets;
    });
    await Promise.race([
      eventually("every node is Ready", NODES_READY_TIMEOUT_MS, () => allReady(api, hosts.length)),
      controlPlane.failed,
    ]);
    const world = { controlPlane };
    return {
      controlPlane,
      api,
      rack,
      agents,
      authority,
      startAgent: async (flags, via) => {
        const agent = await startAgent(world, `agent-${agents.length + 1}`, flags, {}, via);
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

async function createTargets(api: KubeApi, rack: Rack, redfish: RedfishMock, caPem: string): Promise<void> {
  const stringData = { username: USERNAME, password: PASSWORD, "ca.crt": caPem };
  await api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "bmc" },
    stringData,
  });
  for (const { name, spec } of rack.hosts) {
    const address = redfish.url.replace(/^https/, "redfish+https") + redfish.systemPath(name);
    const device = { address, credentialsSecretRef: { name: "bmc" }, tls: { caSecretRef: { name: "bmc" } } };
    await api.create(TARGETS, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "FencingTarget",
      metadata: { name },
      spec: { nodeName: name, identity: { systemUUID: spec.systemUUID }, devices: [device] },
    });
  }
}

/** Creates a health check over all nodes, and the template that it remediates by. */
export async function createHealthCheck(
  { api }: RackWorld,
  strategy: object,
  spec: Partial<NodeHealthCheckSpec>,
): Promise<void> {
  const template = { namespace: NAMESPACE, name: "reboot" };
  const apiVersion = "ironfence.io/v1alpha1";
  await api.create(`/apis/${apiVersion}/namespaces/${NAMESPACE}/baremetalremediationtemplates`, {
    apiVersion,
    kind: "BareMetalRemediationTemplate",
    metadata: template,
    spec: { template: { spec: { strategy } } },
  });
  const name = HEALTH_CHECK.slice(HEALTH_CHECK.lastIndexOf("/") + 1);
  await api.create(HEALTH_CHECK.slice(0, HEALTH_CHECK.lastIndexOf("/")), {
    apiVersion: "remediation.medik8s.io/v1alpha1",
    kind: "NodeHealthCheck",
    metadata: { name },
    spec: {
      selector: { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "Exists" }] },
      unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "1s" }],
      remediationTemplate: { apiVersion, kind: "BareMetalRemediationTemplate", ...template },
      ...spec,
    },
  });
}
