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
import { NODES, SECRETS } from "../../src/api/core-types.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import type { KubeMock } from "../kube-mock/kube-mock.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { startAgent } from "../lib/agent-process.ts";
import { readCrds, readForeignCrds } from "../lib/crds.ts";
import { bundle } from "./bundle.ts";
import { AGENT_NODE_FLAGS } from "./node-flags.ts";
import { labelsOf, nodeStatus } from "./nodes.ts";
import { readUsage } from "./process-usage.ts";
import { mib, row, seconds, spread } from "./report.ts";

const NAMESPACE = "default";
const HOSTILE_PROCESS = fileURLToPath(new URL("hostile-process.ts", import.meta.url));
const NODES_EACH = 50;
const CONDITION_SECONDS = 1;
const FLAGS = ["--components", "detector", "--families", "machine-health-check", "--namespace", NAMESPACE];
/** The first pass tells every Machine that it is healthy. */
const START_MS_MAX = 600_000;
const REST_MS = 60_000;
const ROUNDS = 10;
/** How many of the clusters vanish. */
const AWAY_SHARE = 0.1;

/** 130 MiB for 5,000 nodes and 1 MiB a cluster. */
const RSS_BYTES_MAX = (clusters: number): number => (130 + clusters) * 1_048_576;

/**
 * The detector as a process of its own with a MachineHealthCheck for each of `clusterCount` workload clusters of 50 nodes, each
 * of them an API server of its own behind TLS: memory and CPU at rest, and what it costs the others that a tenth is away.
 */
export async function benchClusters(clusterCount: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-bench-"));
  const management = await startKubeMock({ clock: systemClock, random: systemRandom });
  const workloads: KubeMock[] = [];
  try {
    for (const yaml of [...(await readCrds()), ...(await readForeignCrds(["v1beta2"]))]) management.server.load(yaml);
    for (let index = 0; index < clusterCount; index++) workloads.push(await startWorkload(management.server, index));
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, management.kubeconfig, { mode: 0o600 });
    let requests = 0;
    management.server.onRequest(({ watch, path }) => {
      if (!watch && !path.includes("/leases/ironfence")) requests += 1;
    });
    const agent = startAgent({
      kubeconfig,
      logFile: join(folder, "agent.log"),
      program: await bundle(folder),
      flags: FLAGS,
      nodeFlags: AGENT_NODE_FLAGS,
    });
    const rest = async (what: string): Promise<void> => {
      const before = await readUsage(agent.pid);
      requests = 0;
      await delay(REST_MS);
      const after = await readUsage(agent.pid);
      row(`${what}: RSS, peak`, `${mib(after.rssBytes)} MiB, ${mib(after.rssPeakBytes)} MiB`);
      row(`${what}: CPU in 60 s`, `${seconds(after.cpuMs - before.cpuMs)} s`);
      row(`${what}: requests to the management cluster in 60 s`, `${requests}`);
    };
    const measure = async (): Promise<undefined> => {
      await allCounted(management.server, clusterCount);
      const what = `${clusterCount} clusters of ${NODES_EACH} nodes`;
      await rest(`${what}, at rest`);
      row(`${what}: node fails → its Machine told unhealthy`, spread(await failOneByOne(management.server, workloads)));
      const away = workloads.splice(0, Math.ceil(clusterCount * AWAY_SHARE));
      for (const workload of away) await workload.close();
      await rest(`${what}, ${away.length} away`);
      row(`${what}, ${away.length} away: the same`, spread(await failOneByOne(management.server, workloads)));
      const { rssPeakBytes } = await readUsage(agent.pid);
      const isKept = rssPeakBytes <= RSS_BYTES_MAX(clusterCount);
      row("aim: peak RSS", `${isKept ? "kept" : "MISSED"} (at most ${mib(RSS_BYTES_MAX(clusterCount))} MiB)`);
    };
    try {
      const ended = await Promise.race([agent.ended, measure()]);
      if (ended !== undefined) throw new Error(ended);
    } finally {
      await agent.stop();
    }
  } finally {
    await Promise.all([management, ...workloads].map((mock) => mock.close()));
    await rm(folder, { recursive: true });
  }
}

/** Nodes in each cluster where some are hostile, and how long each round of figures rests. */
const HOSTILE_NODES_EACH = 10;
const HOSTILE_REST_MS = 30_000;

/**
 * The same with small clusters, and then with five more whose API servers try to bring the agent down: what that costs the others.
 */
export async function benchHostileClusters(clusterCount: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-bench-"));
  const management = await startKubeMock({ clock: systemClock, random: systemRandom });
  const workloads: KubeMock[] = [];
  let hostile: ChildProcess | undefined;
  try {
    for (const yaml of [...(await readCrds()), ...(await readForeignCrds(["v1beta2"]))]) management.server.load(yaml);
    for (let index = 0; index < clusterCount; index++) {
      workloads.push(await startWorkload(management.server, index, HOSTILE_NODES_EACH));
    }
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, management.kubeconfig, { mode: 0o600 });
    const logFile = join(folder, "agent.log");
    const agent = startAgent({
      kubeconfig,
      logFile,
      program: await bundle(folder),
      flags: FLAGS,
      nodeFlags: AGENT_NODE_FLAGS,
    });
    const measure = async (): Promise<undefined> => {
      await allCounted(management.server, clusterCount, HOSTILE_NODES_EACH);
      const figures = async (what: string): Promise<void> => {
        const before = await readUsage(agent.pid);
        const startedMs = systemClock.monotonicMs();
        await delay(HOSTILE_REST_MS);
        const delays = await failOneByOne(management.server, workloads);
        const after = await readUsage(agent.pid);
        const share = (after.cpuMs - before.cpuMs) / (systemClock.monotonicMs() - startedMs);
        row(`${what}: RSS, peak`, `${mib(after.rssBytes)} MiB, ${mib(after.rssPeakBytes)} MiB`);
        row(`${what}: CPU`, `${(share * 100).toFixed(1)} %`);
        row(`${what}: node fails → its Machine told unhealthy`, spread(delays));
      };
      const what = `${clusterCount} clusters of ${HOSTILE_NODES_EACH} nodes`;
      await figures(what);
      hostile = spawn(process.execPath, [HOSTILE_PROCESS], { stdio: ["ignore", "pipe", "inherit"] });
      const [line] = await once(createInterface(hostile.stdout ?? assert.fail()), "line");
      const kubeconfigs = JSON.parse(String(line)) as string[];
      for (const [index, text] of kubeconfigs.entries()) addCluster(management.server, clusterCount + index, text, 1);
      await figures(`${what}, and ${kubeconfigs.length} hostile ones`);
      row("bytes of log", String((await stat(logFile)).size));
    };
    try {
      const ended = await Promise.race([agent.ended, measure()]);
      if (ended !== undefined) throw new Error(ended);
    } finally {
      await agent.stop();
    }
  } finally {
    hostile?.kill();
    await Promise.all([management, ...workloads].map((mock) => mock.close()));
    await rm(folder, { recursive: true });
  }
}

const kind = (kind: string, plural: string): ResourceType => ({
  group: "cluster.x-k8s.io",
  version: "v1beta2",
  kind,
  plural,
  namespaced: true,
});
const CLUSTERS = kind("Cluster", "clusters");
const MACHINES = kind("Machine", "machines");
const HEALTH_CHECKS = kind("MachineHealthCheck", "machinehealthchecks");

const nodeName = (cluster: number, node: number): string => `c${cluster}-n${node}`;

/** Starts one workload cluster, and makes what the management cluster has of it. */
async function startWorkload(management: ApiServer, index: number, nodesEach = NODES_EACH): Promise<KubeMock> {
  const token = systemRandom.uuid();
  const workload = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token });
  for (let node = 0; node < nodesEach; node++) {
    const name = nodeName(index, node);
    workload.server.collection(NODES).create({
      metadata: { name, labels: labelsOf(name) },
      spec: { podCIDR: "10.0.0.0/24" },
      status: nodeStatus("True"),
    });
  }
  addCluster(management, index, workload.kubeconfig, nodesEach);
  return workload;
}

/** Makes a Cluster that is reached by that kubeconfig, with a health check and its Machines. */
function addCluster(management: ApiServer, index: number, kubeconfig: string, nodesEach: number): void {
  const clusterName = `c${index}`;
  const labels = { "cluster.x-k8s.io/cluster-name": clusterName };
  const condition = (type: string): object => ({
    type,
    status: "True",
    reason: type,
    message: "",
    lastTransitionTime: toTime(systemClock.nowMs()),
  });
  const create = (type: ResourceType, name: string, body: { spec?: object; data?: object }, status?: object): void => {
    const collection = management.collection(type);
    const metadata = { namespace: NAMESPACE, name, labels };
    collection.create({ apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...body });
    if (status !== undefined) collection.mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
  };
  create(SECRETS, `${clusterName}-kubeconfig`, {
    data: { value: Buffer.from(kubeconfig).toString("base64") },
  });
  create(
    CLUSTERS,
    clusterName,
    { spec: {} },
    { conditions: ["InfrastructureReady", "ControlPlaneInitialized"].map(condition) },
  );
  const unhealthyNodeConditions = [{ type: "Ready", status: "Unknown", timeoutSeconds: CONDITION_SECONDS }];
  create(HEALTH_CHECKS, clusterName, {
    spec: { clusterName, selector: { matchLabels: labels }, checks: { unhealthyNodeConditions } },
  });
  for (let node = 0; node < nodesEach; node++) {
    const name = nodeName(index, node);
    const infrastructureRef = { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "Metal3Machine", name };
    create(
      MACHINES,
      name,
      { spec: { clusterName, bootstrap: {}, infrastructureRef } },
      {
        nodeRef: { name },
        phase: "Running",
        conditions: ["InfrastructureReady", "NodeHealthy", "Ready"].map(condition),
      },
    );
  }
}

interface Counted extends KubeObject {
  status?: { currentHealthy?: number };
}

async function allCounted(management: ApiServer, clusterCount: number, nodesEach = NODES_EACH): Promise<void> {
  const checks = management.collection<Counted>(HEALTH_CHECKS);
  const isCounted = (index: number): boolean =>
    checks.get({ namespace: NAMESPACE, name: `c${index}` })?.status?.currentHealthy === nodesEach;
  const startedMs = systemClock.monotonicMs();
  for (let index = 0; index < clusterCount;) {
    if (isCounted(index)) index++;
    else if (systemClock.monotonicMs() - startedMs > START_MS_MAX) throw new Error(`c${index} has not been counted`);
    else await delay(500);
  }
  row(`${clusterCount} clusters: until all are counted`, `${seconds(systemClock.monotonicMs() - startedMs)} s`);
}

/** One node of one cluster after another goes silent. @returns milliseconds from when its timeout is over to the condition on its Machine. */
async function failOneByOne(management: ApiServer, workloads: readonly KubeMock[]): Promise<number[]> {
  const delays: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const workload = workloads[round % workloads.length];
    const node = [...(workload?.server.collection(NODES).values() ?? [])][round];
    if (workload === undefined || node === undefined) throw new Error("there is no such node");
    const { name } = node.metadata;
    // Times have whole seconds, so the timeout counts from the start of the second.
    await delay(1_000 - (systemClock.nowMs() % 1_000));
    const transitionMs = Math.floor(systemClock.nowMs() / 1_000) * 1_000;
    const told = untilUnhealthy(management, name);
    workload.server.collection(NODES).mergePatch({ name }, { status: nodeStatus("Unknown") }, "status");
    delays.push((await told) - transitionMs - CONDITION_SECONDS * 1_000);
    workload.server.collection(NODES).mergePatch({ name }, { status: nodeStatus("True") }, "status");
  }
  return delays;
}

interface Judged extends KubeObject {
  status?: { conditions?: { type: string; status: string }[] };
}

async function untilUnhealthy(management: ApiServer, name: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const unsubscribe = management.collection<Judged>(MACHINES).subscribe(({ object }) => {
    if (object.metadata.name !== name) return;
    const isUnhealthy = object.status?.conditions?.some(
      ({ type, status }) => type === "HealthCheckSucceeded" && status === "False",
    );
    if (isUnhealthy === true) resolve(systemClock.nowMs());
  });
  try {
    return await Promise.race([promise, delay(30_000, Number.NaN)]);
  } finally {
    unsubscribe();
  }
}
