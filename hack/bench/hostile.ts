import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import {
  BARE_METAL_REMEDIATION_TEMPLATES,
  BARE_METAL_REMEDIATIONS,
} from "../../src/api/ironfence/bare-metal-remediation.ts";
import { LEASES, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { createKubeClient } from "../../src/kube/api-client/api-client.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { startClusterControllers } from "../kube-mock/controllers/cluster-controllers.ts";
import { createTransport } from "../kube-mock/in-process-transport.ts";
import type { KubeMock } from "../kube-mock/kube-mock.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { readCrds, readForeignCrds } from "../lib/crds.ts";
import { freeLeases } from "../lib/free-leases.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import type { HostSpec } from "../rack/host.ts";
import { startKubelets } from "../rack/kubelet.ts";
import { createRack } from "../rack/rack.ts";
import type { Rack } from "../rack/rack.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";
import type { RedfishMock } from "../redfish-mock/server.ts";
import { startBenchAgent } from "./bench-agent.ts";
import { followFence } from "./fences.ts";
import type { Fence } from "./fences.ts";
import { readUsage } from "./process-usage.ts";
import { figure, median, mib, row, spread } from "./report.ts";
import { addCluster, allCounted, clusterName, MACHINES, NAMESPACE, nodeName, staticNode } from "./workload-clusters.ts";

const DEPS = { clock: systemClock, random: systemRandom };
const HOSTILE_PROCESS = fileURLToPath(new URL("hostile-process.ts", import.meta.url));
/** Clusters with the first five kinds of hostile API servers. The other kinds are added at the end. */
const HOSTILE_CLUSTERS = 5;
/** Clusters whose nodes are hosts of a rack; the others have only Node objects. */
const FENCED_CLUSTERS = 10;
const HOSTS_EACH = 4;
/** Nodes in each of the other clusters. */
const NODES_EACH = 50;
/** The memory that an agent with 100 clusters may use. */
const RSS_PEAK_MIB_MAX = 230;
/** How much longer a whole fence may take next to hostile clusters, as the ratio of the medians. */
const FENCE_RATIO_MAX = 1.1;
/** Fences in each of these clusters, without and with hostile ones: each host is fenced once. */
const ROUNDS = HOSTS_EACH / 2;
const STAGGER_MS = 1_000;
const REST_MS = 30_000;
const FLAGS = ["--families", "machine-health-check", "--namespace", NAMESPACE];
const KUBELETS = { leasePeriodMs: 1_000, leaseDurationSeconds: 4, statusPeriodMs: 1_000, podPeriodMs: 1_000 };
const POWER_DELAYS = { powerOffDelayMs: 2_000, powerOnDelayMs: 500, bootMs: 1_000 };
const NODE_LIFECYCLE = { monitorPeriodMs: 500, monitorGracePeriodMs: 5_000 };
const TEMPLATE = {
  apiVersion: apiVersionOf(BARE_METAL_REMEDIATION_TEMPLATES),
  kind: BARE_METAL_REMEDIATION_TEMPLATES.kind,
  name: "reboot",
};

/**
 * Runs the agent as a separate process with workload clusters behind TLS. Hosts in ten of them fail and are fenced,
 * from the health check to the restored node. Then it repeats this with five more clusters, whose API servers try to
 * bring the agent down. At the end it adds two more, for which there is no aim.
 *
 * @param clusterCount how many clusters there are, the first five hostile ones included.
 */
export async function benchHostileClusters(clusterCount: number): Promise<void> {
  const healthyCount = clusterCount - HOSTILE_CLUSTERS;
  assert.ok(healthyCount >= FENCED_CLUSTERS, `at least ${FENCED_CLUSTERS + HOSTILE_CLUSTERS} clusters`);
  await using world = await startHealthyWorld(healthyCount);
  const { management, folder } = world;
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, management.kubeconfig, { mode: 0o600 });
  const logFile = join(folder, "agent.log");
  const agent = await startBenchAgent(folder, kubeconfig, FLAGS);
  let hostile: ChildProcess | undefined;
  const measure = async (): Promise<undefined> => {
    await allCounted(management.server, healthyCount, (index) => nodesOf(index).length);
    const alone = await measureFences(world, agent.pid, `${healthyCount} clusters`, 0);
    hostile = spawn(process.execPath, [HOSTILE_PROCESS], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(createInterface(hostile.stdout ?? assert.fail()), "line");
    const kubeconfigs = JSON.parse(String(line)) as string[];
    const add = (from: number, to: number): void =>
      kubeconfigs
        .slice(from, to)
        .forEach((text, index) => addHostile(management.server, healthyCount + from + index, text));
    add(0, HOSTILE_CLUSTERS);
    const beside = await measureFences(world, agent.pid, `and ${HOSTILE_CLUSTERS} hostile ones`, ROUNDS);
    for (const [what, of] of SPANS) {
      const [before, after] = [median(alone.fences.map(of)), median(beside.fences.map(of))];
      row(`ratio of the medians: ${what}`, (after / before).toFixed(2));
    }
    const whole = ({ unknown, restored }: Fence): number => restored - unknown;
    const ratio = median(beside.fences.map(whole)) / median(alone.fences.map(whole));
    const what = `${clusterCount} clusters, ${HOSTILE_CLUSTERS} of them hostile`;
    figure({
      what: `${what}: a whole fence, of one without those`,
      value: ratio,
      unit: "×",
      aim: FENCE_RATIO_MAX,
      fails: true,
    });
    const peakMib = beside.rssPeakBytes / 2 ** 20;
    figure({ what: `${what}: peak RSS`, value: peakMib, unit: "MiB", aim: RSS_PEAK_MIB_MAX, fails: true });
    row("ratio of peak memory", (beside.rssPeakBytes / alone.rssPeakBytes).toFixed(2));
    row("bytes of log", String((await stat(logFile)).size));
    add(HOSTILE_CLUSTERS, kubeconfigs.length);
    await delay(REST_MS);
    const { rssBytes, rssPeakBytes } = await readUsage(agent.pid);
    row(`and ${kubeconfigs.length} hostile ones: RSS, peak`, `${mib(rssBytes)} MiB, ${mib(rssPeakBytes)} MiB`);
  };
  try {
    const ended = await Promise.race([agent.ended, measure()]);
    if (ended !== undefined) throw new Error(ended);
  } finally {
    await agent.stop();
    hostile?.kill();
  }
}

const SPANS: readonly [what: string, of: (fence: Fence) => number][] = [
  ["node Unknown → remediation created", ({ unknown, requested }) => requested - unknown],
  ["remediation created → ForceOff at the BMC", ({ requested, orderedOff }) => orderedOff - requested],
  ["ForceOff → out-of-service taint", ({ orderedOff, tainted }) => tainted - orderedOff],
  ["out-of-service taint → On at the BMC", ({ tainted, orderedOn }) => orderedOn - tainted],
  ["node Unknown → restored", ({ unknown, restored }) => restored - unknown],
];

interface Measured {
  fences: readonly Fence[];
  rssPeakBytes: number;
}

/** Fences `ROUNDS` hosts in each cluster, beginning with number `first`, and prints how long that takes. */
async function measureFences(world: HealthyWorld, pid: number, what: string, first: number): Promise<Measured> {
  const { management, workloads, hosts } = world;
  const before = await readUsage(pid);
  const startedMs = systemClock.monotonicMs();
  await delay(REST_MS);
  const fences: Fence[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const begun = workloads.slice(0, FENCED_CLUSTERS).map(async (workload, index) => {
      await delay(index * STAGGER_MS);
      const where = { management: management.server, workload: workload.server, rack: hosts.rack };
      return followFence(where, nodeName(index, first + round));
    });
    fences.push(...(await Promise.all(begun)));
  }
  const after = await readUsage(pid);
  const share = (after.cpuMs - before.cpuMs) / (systemClock.monotonicMs() - startedMs);
  row(`${what}: RSS, peak`, `${mib(after.rssBytes)} MiB, ${mib(after.rssPeakBytes)} MiB`);
  row(`${what}: CPU`, `${(share * 100).toFixed(1)} %`);
  for (const [span, of] of SPANS) row(`${what}, ${fences.length} fences: ${span}`, spread(fences.map(of)));
  return { fences, rssPeakBytes: after.rssPeakBytes };
}

interface HealthyWorld extends AsyncDisposable {
  folder: string;
  management: KubeMock;
  workloads: readonly KubeMock[];
  hosts: Hosts;
}

async function startHealthyWorld(clusterCount: number): Promise<HealthyWorld> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-bench-"));
  const management = await startKubeMock(DEPS);
  for (const yaml of [...(await readCrds()), ...(await readForeignCrds(["v1beta2"]))]) management.server.load(yaml);
  for (const lease of freeLeases(NAMESPACE)) management.server.collection(LEASES).create(lease);
  const indexes = Array.from({ length: clusterCount }, (_, index) => index);
  const workloads = await Promise.all(
    indexes.map(() => startKubeMock({ ...DEPS, tls: true, token: systemRandom.uuid() })),
  );
  const fenced = workloads.slice(0, FENCED_CLUSTERS);
  const hosts = await startHosts(
    fenced.flatMap((_, index) => nodesOf(index).map((node) => ({ ...node, ...POWER_DELAYS }))),
  );
  describeHosts(management.server, hosts);
  for (const [index, { server, kubeconfig }] of workloads.entries()) {
    if (index >= FENCED_CLUSTERS)
      for (const { name } of nodesOf(index)) server.collection(NODES).create(staticNode(name));
    addCluster(management.server, index, kubeconfig, nodesOf(index), TEMPLATE);
  }
  const stop = new AbortController();
  const stopControllers = fenced.map(({ server }) => {
    const options = { statefulSets: false, scheduler: false, nodeLifecycle: NODE_LIFECYCLE } as const;
    return startClusterControllers({ server, clock: systemClock }, options);
  });
  const clients = fenced.map(({ server }) => clientOf(server));
  const clientOfHost = (host: string): KubeClient => clients[clusterOf(host)] ?? assert.fail(host);
  const kubelets = startKubelets(
    {
      rack: hosts.rack,
      client: clientOfHost(nodeName(0, 0)),
      clientOf: clientOfHost,
      clock: systemClock,
      logger: createLogger("silent"),
    },
    KUBELETS,
    stop.signal,
  );
  return {
    folder,
    management,
    workloads,
    hosts,
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error("the bench is over"));
      await kubelets;
      for (const end of stopControllers) end();
      await hosts.close();
      await Promise.all([management, ...workloads].map((mock) => mock.close()));
      await rm(folder, { recursive: true });
    },
  };
}

function nodesOf(cluster: number): { name: string; providerID: string }[] {
  return Array.from({ length: cluster < FENCED_CLUSTERS ? HOSTS_EACH : NODES_EACH }, (_, node) => {
    const name = nodeName(cluster, node);
    return { name, providerID: `metal3://${NAMESPACE}/${name}/${name}` };
  });
}

/** The cluster of a host, by its name. */
function clusterOf(host: string): number {
  return Number(/^c(\d+)-/.exec(host)?.[1]);
}

function clientOf(server: ApiServer): KubeClient {
  return createKubeClient({ ...DEPS, transport: createTransport(server, { client: "kubelets", clock: systemClock }) });
}

/** The hosts of a rack, each with its own BMC. */
interface Hosts {
  readonly rack: Rack;
  /** What the Secret of their account holds. */
  readonly login: Readonly<Record<string, string>>;
  /** Where the BMC of a host is. */
  address(host: string): string;
  close(): Promise<void>;
}

async function startHosts(specs: readonly HostSpec[]): Promise<Hosts> {
  const rack = createRack({ ...DEPS, hosts: specs });
  const authority = await createCertificateAuthority(systemClock, "bench BMCs");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const [username, password] = ["fencing", "bench-password"];
  const account = { username, password: new Secret(password) };
  const fronts = new Map<string, RedfishMock>();
  for (const { name } of specs)
    fronts.set(name, await startRedfishMock({ ...DEPS, rack, tls, ...account, hosts: [name] }));
  return {
    rack,
    login: { username, password, "ca.crt": authority.certPem },
    address: (host) => {
      const front = fronts.get(host) ?? assert.fail(host);
      return front.url.replace(/^https/, "redfish") + front.systemPath(host);
    },
    close: async () => {
      await Promise.all([...fronts.values()].map((front) => front.close()));
      rack.stop();
    },
  };
}

/** Creates a FencingTarget for each host, and the objects that they share. */
function describeHosts(management: ApiServer, hosts: Hosts): void {
  const data = Object.entries(hosts.login).map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
  management.collection(SECRETS).create({
    metadata: { namespace: NAMESPACE, name: "bmc", annotations: { [ALLOWED_ADDRESSES]: "https://127.0.0.1:*" } },
    data: Object.fromEntries(data),
  });
  management.collection(BARE_METAL_REMEDIATION_TEMPLATES).create({
    metadata: { namespace: NAMESPACE, name: TEMPLATE.name },
    spec: { template: { spec: {} } },
  });
  for (const { name, spec } of hosts.rack.hosts) {
    const tls = { caSecretRef: { name: "bmc" } };
    management.collection(FENCING_TARGETS).create({
      metadata: { namespace: NAMESPACE, name },
      spec: {
        nodeName: name,
        clusterRef: { namespace: NAMESPACE, name: clusterName(clusterOf(name)) },
        identity: { systemUUID: spec.systemUUID },
        devices: [{ address: hosts.address(name), credentialsSecretRef: { name: "bmc" }, tls }],
      },
    });
  }
}

/** Adds a hostile cluster of one Machine, for which its owner also requests a remediation. */
function addHostile(management: ApiServer, index: number, kubeconfig: string): void {
  const name = nodeName(index, 0);
  addCluster(management, index, kubeconfig, [{ name }], TEMPLATE);
  const machine = management.collection(MACHINES).get({ namespace: NAMESPACE, name });
  const owner = {
    apiVersion: apiVersionOf(MACHINES),
    kind: MACHINES.kind,
    name,
    uid: machine?.metadata.uid ?? "",
  };
  management.collection(BARE_METAL_REMEDIATIONS).create({
    metadata: { namespace: NAMESPACE, name, ownerReferences: [owner] },
    spec: {},
  });
}
