import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { readCrds } from "../lib/crds.ts";
import { CONDITION_MS, fill, NAMESPACE } from "./agent-objects.ts";
import { measureHalfAtOnce } from "./agent-half-at-once.ts";
import { measureLeases } from "./agent-leases.ts";
import { startBenchAgent } from "./bench-agent.ts";
import { heartbeats, nodeStatus } from "./nodes.ts";
import { readUsage } from "./process-usage.ts";
import { figure, median, mib, quantile, row } from "./report.ts";

/** How long the first probe of every target may take. Before that, the agent is not at rest. */
const SETTLE_MS_MAX = 300_000;
/**
 * The agent then sends the Kubernetes Events of those probes, a bounded number per second. It is at rest when it sends
 * fewer than `SETTLED_WRITES_MAX` writes in this time.
 */
const SETTLE_MS = 5_000;
const SETTLED_WRITES_MAX = 5;
/** A little over two quiet minutes follow, so that the agent collects the garbage of its start. */
const REST_MS = 130_000;
const IDLE_MS = 60_000;
const ROUNDS = 20;

/**
 * Runs the agent as a separate process on an in-memory API server with `nodeCount` nodes and as many FencingTargets.
 * Prints a table: memory, CPU and requests at rest, and the time from the end of a condition's duration to the creation
 * of the remediation. The BMCs of the hosts do not exist, so nothing is ever powered.
 */
export async function benchAgent(nodeCount: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-bench-"));
  const kube = await startKubeMock({ clock: systemClock, random: systemRandom });
  const stopping = new AbortController();
  try {
    for (const yaml of await readCrds()) kube.server.load(yaml);
    fill(kube.server, nodeCount);
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, kube.kubeconfig, { mode: 0o600 });
    const requests = { reads: 0, writes: 0 };
    kube.server.onRequest(({ method, watch, path }) => {
      if (watch || path.includes("/leases/ironfence")) return;
      if (method === "GET") requests.reads++;
      else requests.writes++;
    });
    const agent = await startBenchAgent(folder, kubeconfig);
    void heartbeats(kube.server, nodeCount, stopping.signal);
    try {
      const ended = await Promise.race([agent.ended, measure(kube.server, nodeCount, agent.pid, requests)]);
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

/** Measures all figures of one agent, one after the other. */
async function measure(
  server: ApiServer,
  nodeCount: number,
  pid: number,
  requests: { readonly reads: number; readonly writes: number },
): Promise<undefined> {
  await settled(server, nodeCount, requests);
  await delay(REST_MS);
  const atRest = await measureRest(nodeCount, pid, requests);
  const delays: number[] = [];
  const readsEach: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const readsBefore = requests.reads;
    delays.push(await expiryToRemediation(server, `node-${round}`));
    readsEach.push(requests.reads - readsBefore);
  }
  row(
    `${nodeCount} nodes: duration over → remediation created (${ROUNDS} rounds)`,
    `median ${median(delays).toFixed(0)} ms, p95 ${quantile(delays, 0.95).toFixed(0)} ms, max ${Math.max(...delays).toFixed(0)} ms; reads a round: ${median(readsEach)}`,
  );
  const end = await readUsage(pid);
  row(`${nodeCount} nodes: RSS after it, peak`, `${mib(end.rssBytes)} MiB, ${mib(end.rssPeakBytes)} MiB`);
  await measureHalfAtOnce(server, nodeCount, pid);
  await measureLeases(server, nodeCount, pid, atRest.cpuMs);
}

/** Measures memory, CPU and requests at rest. The aims are those for 5,000 nodes. */
async function measureRest(
  nodeCount: number,
  pid: number,
  requests: { readonly reads: number; readonly writes: number },
): Promise<{ cpuMs: number }> {
  const before = await readUsage(pid);
  const requestsBefore = { ...requests };
  await delay(IDLE_MS);
  const after = await readUsage(pid);
  const cpuMs = ((after.cpuMs - before.cpuMs) * 60_000) / IDLE_MS;
  const perSecond = (count: number): number => (count * 1_000) / IDLE_MS;
  const what = `${nodeCount} nodes, at rest`;
  figure({ what: `${what}: RSS`, value: after.rssBytes / 2 ** 20, unit: "MiB", aim: 130, fails: true });
  row(`${what}: RSS, peak so far`, `${mib(after.rssPeakBytes)} MiB`);
  figure({ what: `${what}: CPU a minute`, value: cpuMs / 1_000, unit: "s", aim: 1.2, fails: false });
  const beside = "in addition to watches and the leader's lease";
  row(`${what}: reads ${beside}`, `${perSecond(requests.reads - requestsBefore.reads).toFixed(2)} a second`);
  const writes = perSecond(requests.writes - requestsBefore.writes);
  figure({ what: `${what}: writes ${beside}`, value: writes, unit: "a second", aim: 0.5, fails: true });
  return { cpuMs };
}

/** Resolves when every target has been probed and its writes have been sent. */
async function settled(server: ApiServer, nodeCount: number, requests: { readonly writes: number }): Promise<void> {
  const targets = server.collection<FencingTarget>(FENCING_TARGETS);
  const endMs = systemClock.monotonicMs() + SETTLE_MS_MAX;
  for (let index = 0; index < nodeCount;) {
    const target = targets.get({ namespace: NAMESPACE, name: `node-${index}` });
    if (target?.status?.lastProbeTime !== undefined) index++;
    else if (systemClock.monotonicMs() > endMs) throw new Error(`node-${index} has not been probed`);
    else await delay(1_000);
  }
  for (let writesBefore = -SETTLED_WRITES_MAX; requests.writes - writesBefore >= SETTLED_WRITES_MAX;) {
    if (systemClock.monotonicMs() > endMs)
      throw new Error(`the agent still writes, ${SETTLE_MS_MAX} ms after its start`);
    writesBefore = requests.writes;
    await delay(SETTLE_MS);
  }
}

/**
 * Stops the renewals of one node. @returns milliseconds from the end of its condition's duration to the creation of its
 * remediation.
 */
async function expiryToRemediation(server: ApiServer, name: string): Promise<number> {
  // lastTransitionTime has whole seconds, so the duration counts from the start of the second.
  await delay(1_000 - (systemClock.nowMs() % 1_000));
  const transitionMs = Math.floor(systemClock.nowMs() / 1_000) * 1_000;
  const created = new Promise<number>((resolve) => {
    const unsubscribe = server
      .collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS)
      .subscribe(({ type, object }) => {
        if (type !== "ADDED" || object.metadata.name !== name) return;
        unsubscribe();
        resolve(systemClock.nowMs());
      });
  });
  server.collection(NODES).mergePatch({ name }, { status: nodeStatus("Unknown") }, "status");
  const createdMs = await Promise.race([created, delay(30_000, Number.NaN)]);
  server.collection(NODES).mergePatch({ name }, { status: nodeStatus("True") }, "status");
  return createdMs - transitionMs - CONDITION_MS;
}
