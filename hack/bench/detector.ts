import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import type { NodeHealthCheck } from "../../src/api/ironfence/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { NAMESPACES } from "../kube-mock/controllers/cluster-types.ts";
import { freeLeases } from "../lib/free-leases.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { readCrds } from "../lib/crds.ts";
import { startBenchAgent } from "./bench-agent.ts";
import {
  CONDITION_MS,
  DETECTOR_OBJECTS,
  HEALTH_CHECK,
  LEASE_NAMESPACE,
  NAMESPACE,
  nodeNames,
  VENDOR_CRDS,
} from "./detector-objects.ts";
import { benchDetectorOnControlPlane } from "./detector-real.ts";
import { RequestTally } from "./detector-requests.ts";
import { printAims } from "./detector-aims.ts";
import { heartbeats, labelsOf, nodeStatus } from "./nodes.ts";
import { readUsage } from "./process-usage.ts";
import { mib, row, seconds, spread } from "./report.ts";

const IDLE_MS = 60_000;
const SETTLE_MS = 5_000;
const SINGLE_ROUNDS = 30;
const SHARES = [0.01, 0.05, 0.5];
const PHASE_MS_MAX = 180_000;
const POLL_MS = 20;

/**
 * Runs the detector alone, as a separate process, on an in-memory API server in this process. Measures it at rest, with
 * one node failing at a time, and with 1, 5 and 50 % of all nodes failing in one second. For each it prints the time
 * from the end of the condition's duration to the creation of the remediation, requests by verb, CPU and memory.
 */
export async function benchDetector(nodeCounts: readonly number[]): Promise<void> {
  for (const nodeCount of nodeCounts) await withDetector(nodeCount, measure);
  if (nodeCounts.includes(1_000)) await benchDetectorOnControlPlane();
  printAims();
}

interface Bench {
  nodeCount: number;
  server: ApiServer;
  /** Process id of the detector. */
  pid: number;
  requests: RequestTally;
}

async function withDetector(nodeCount: number, work: (bench: Bench) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-bench-"));
  const kube = await startKubeMock({ clock: systemClock, random: systemRandom });
  const stopping = new AbortController();
  try {
    for (const yaml of [...(await readCrds()), ...VENDOR_CRDS.map((crd) => JSON.stringify(crd))])
      kube.server.load(yaml);
    fill(kube.server, nodeCount);
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, kube.kubeconfig, { mode: 0o600 });
    const requests = new RequestTally(kube.server);
    const agent = await startBenchAgent(folder, kubeconfig, ["--components", "detector"]);
    void heartbeats(kube.server, nodeCount, stopping.signal);
    try {
      const bench = { nodeCount, server: kube.server, pid: agent.pid, requests };
      const ended = await Promise.race([agent.ended, work(bench)]);
      if (ended !== undefined) throw new Error(ended);
    } finally {
      await agent.stop();
    }
  } finally {
    stopping.abort();
    await kube.close();
    await rm(folder, { recursive: true });
  }
}

async function measure(bench: Bench): Promise<void> {
  const { nodeCount, server } = bench;
  await until("the detector has counted the nodes", () => healthCheck(server)?.status?.observedNodes === nodeCount);
  await delay(SETTLE_MS);
  await measureRest(bench);
  await measureSingles(bench);
  for (const share of SHARES) await measureAtOnce(bench, share);
  const { rssBytes, rssPeakBytes } = await readUsage(bench.pid);
  row(`${nodeCount} nodes: RSS at the end, peak`, `${mib(rssBytes)} MiB, ${mib(rssPeakBytes)} MiB`);
}

async function measureRest({ nodeCount, pid, requests }: Bench): Promise<void> {
  const before = await readUsage(pid);
  requests.reset();
  await delay(IDLE_MS);
  const after = await readUsage(pid);
  const lists = requests.count("list");
  row(`${nodeCount} nodes, at rest: RSS, peak`, `${mib(after.rssBytes)} MiB, ${mib(after.rssPeakBytes)} MiB`);
  row(`${nodeCount} nodes, at rest: CPU in 60 s`, `${seconds(after.cpuMs - before.cpuMs)} s`);
  row(`${nodeCount} nodes, at rest: LISTs in 60 s`, `${lists}${lists === 0 ? "" : " (must be 0)"}`);
  row(`${nodeCount} nodes, at rest: requests in 60 s`, requests.toString());
}

/** Fails one node per second, so that none waits for another. */
async function measureSingles(bench: Bench): Promise<void> {
  const names = nodeNames(SINGLE_ROUNDS);
  const dueMs = new Map<string, number>();
  const creations = new Creations(bench.server);
  bench.requests.reset();
  for (const name of names) {
    await delay(1_000 - (systemClock.nowMs() % 1_000));
    dueMs.set(name, fail(bench.server, [name]));
  }
  await until("all CRs are there", () => creations.atMs.size === names.length);
  creations.close();
  const delays = names.map((name) => (creations.atMs.get(name) ?? Number.NaN) - (dueMs.get(name) ?? Number.NaN));
  row(`${bench.nodeCount} nodes, ${names.length} one by one: duration over → CR created`, spread(delays));
  row(`${bench.nodeCount} nodes, ${names.length} one by one: requests`, bench.requests.toString());
  await recover(bench, names);
}

async function measureAtOnce(bench: Bench, share: number): Promise<void> {
  const { nodeCount, server, requests, pid } = bench;
  const names = nodeNames(Math.round(nodeCount * share));
  const what = `${nodeCount} nodes, ${names.length} (${share * 100} %) at once`;
  await delay(1_000 - (systemClock.nowMs() % 1_000));
  const creations = new Creations(server);
  const overMs = fail(server, names);
  await delay(overMs - systemClock.nowMs() - 500);
  requests.reset();
  const [before, serverBefore] = [await readUsage(pid), process.cpuUsage()];
  await until("all CRs are there", () => creations.atMs.size === names.length);
  await until("all CRs are in the status", () => recorded(server) === names.length);
  const statusMs = systemClock.nowMs() - overMs;
  await delay(SETTLE_MS);
  creations.close();
  const [after, serverUsed] = [await readUsage(pid), process.cpuUsage(serverBefore)];
  const delays = names.map((name) => (creations.atMs.get(name) ?? Number.NaN) - overMs);
  row(`${what}: duration over → CR created`, `${spread(delays)}; status complete after ${statusMs.toFixed(0)} ms`);
  row(`${what}: requests`, `${requests.toString()}; a node ${requests.perNode(names.length)}`);
  row(
    `${what}: CPU, RSS, peak`,
    `${seconds(after.cpuMs - before.cpuMs)} s (API server: ${seconds((serverUsed.user + serverUsed.system) / 1_000)} s), ${mib(after.rssBytes)} MiB, ${mib(after.rssPeakBytes)} MiB`,
  );
  const recoveredMs = await recover(bench, names);
  row(`${what}: Ready again → last CR deleted`, `${recoveredMs.toFixed(0)} ms`);
}

/** When each remediation was created, by the name of its node. */
class Creations {
  readonly atMs = new Map<string, number>();
  readonly close: () => void;

  constructor(server: ApiServer) {
    this.close = server.collection(BARE_METAL_REMEDIATIONS).subscribe(({ type, object }) => {
      if (type === "ADDED") this.atMs.set(object.metadata.name, systemClock.nowMs());
    });
  }
}

/** Lets nodes become Unknown at the beginning of this second. @returns when the duration of their condition is over. */
function fail(server: ApiServer, names: readonly string[]): number {
  const transitionMs = Math.floor(systemClock.nowMs() / 1_000) * 1_000;
  for (const name of names) {
    server.collection(NODES).mergePatch({ name }, { status: nodeStatus("Unknown", transitionMs) }, "status");
  }
  return transitionMs + CONDITION_MS;
}

/** @returns milliseconds until the last remediation was deleted. */
async function recover({ server }: Bench, names: readonly string[]): Promise<number> {
  const startMs = systemClock.nowMs();
  for (const name of names) {
    server.collection<Node>(NODES).mergePatch({ name }, { status: nodeStatus("True") }, "status");
  }
  await until("all CRs are gone", () => [...server.collection(BARE_METAL_REMEDIATIONS).values()].length === 0);
  const endMs = systemClock.nowMs();
  await until("the status is empty", () => recorded(server) === 0);
  await delay(SETTLE_MS);
  return endMs - startMs;
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = systemClock.monotonicMs() + PHASE_MS_MAX;
  while (!holds()) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`not within ${PHASE_MS_MAX} ms: ${what}`);
    await delay(POLL_MS);
  }
}

function healthCheck(server: ApiServer): NodeHealthCheck | undefined {
  return server.collection<NodeHealthCheck>(NODE_HEALTH_CHECKS).get({ name: HEALTH_CHECK });
}

function recorded(server: ApiServer): number {
  const unhealthy = healthCheck(server)?.status?.unhealthyNodes ?? [];
  return unhealthy.filter(({ remediations = [] }) => remediations.length > 0).length;
}

function fill(server: ApiServer, nodeCount: number): void {
  const create = (type: ResourceType, metadata: object, body: object = {}): void => {
    const object: Partial<KubeObject> = { apiVersion: apiVersionOf(type), kind: type.kind };
    server.collection(type).create({ ...object, metadata, ...body });
  };
  for (const name of [NAMESPACE, LEASE_NAMESPACE]) create(NAMESPACES, { name });
  for (const lease of freeLeases(NAMESPACE)) server.collection(LEASES).create(lease);
  for (const name of nodeNames(nodeCount))
    create(NODES, { name, labels: labelsOf(name) }, { status: nodeStatus("True") });
  for (const { type, object } of DETECTOR_OBJECTS) server.collection(type).create(object);
}
