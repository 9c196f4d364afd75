import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import type { KubeMock } from "../kube-mock/kube-mock.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { readCrds, readForeignCrds } from "../lib/crds.ts";
import { startBenchAgent } from "./bench-agent.ts";
import { nodeStatus } from "./nodes.ts";
import { readUsage } from "./process-usage.ts";
import { figure, mib, row, seconds, spread } from "./report.ts";
import {
  addCluster,
  allCounted,
  CONDITION_SECONDS,
  MACHINES,
  NAMESPACE,
  nodeName,
  staticNode,
} from "./workload-clusters.ts";

const NODES_EACH = 50;
const FLAGS = ["--components", "detector", "--families", "machine-health-check", "--namespace", NAMESPACE];
const REST_MS = 60_000;
const ROUNDS = 10;
/** The share of the clusters whose API servers are stopped. */
const DISCONNECTED_SHARE = 0.1;

/** 130 MiB for 5,000 nodes and 1 MiB a cluster. */
const RSS_MIB_MAX = (clusters: number): number => 130 + clusters;

/**
 * Runs the detector as a separate process with a MachineHealthCheck for each of `clusterCount` workload clusters. Each
 * cluster has 50 nodes and its own API server behind TLS. Measures memory and CPU at rest, and how much the other
 * clusters suffer if a tenth of them is disconnected.
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
    const agent = await startBenchAgent(folder, kubeconfig, FLAGS);
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
      await allCounted(management.server, clusterCount, () => NODES_EACH);
      const what = `${clusterCount} clusters of ${NODES_EACH} nodes`;
      await rest(`${what}, at rest`);
      row(
        `${what}: node fails → its Machine marked unhealthy`,
        spread(await failOneByOne(management.server, workloads)),
      );
      const closed = workloads.splice(0, Math.ceil(clusterCount * DISCONNECTED_SHARE));
      for (const workload of closed) await workload.close();
      await rest(`${what}, ${closed.length} disconnected`);
      row(`${what}, ${closed.length} disconnected: the same`, spread(await failOneByOne(management.server, workloads)));
      const { rssPeakBytes } = await readUsage(agent.pid);
      const aim = RSS_MIB_MAX(clusterCount);
      figure({ what: `${what}: peak RSS`, value: rssPeakBytes / 2 ** 20, unit: "MiB", aim, fails: true });
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

/** Starts one workload cluster, and creates its objects in the management cluster. */
async function startWorkload(management: ApiServer, index: number): Promise<KubeMock> {
  const token = systemRandom.uuid();
  const workload = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token });
  const nodes = Array.from({ length: NODES_EACH }, (_, node) => nodeName(index, node));
  for (const name of nodes) workload.server.collection(NODES).create(staticNode(name));
  addCluster(
    management,
    index,
    workload.kubeconfig,
    nodes.map((name) => ({ name })),
  );
  return workload;
}

/**
 * Stops one node after the other, each in another cluster. @returns milliseconds from the end of its timeout to the
 * condition on its Machine.
 */
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
