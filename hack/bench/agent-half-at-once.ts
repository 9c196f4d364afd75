import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { systemClock } from "../../src/runtime/system.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { CONDITION_MS } from "./agent-objects.ts";
import { RequestTally } from "./detector-requests.ts";
import { nodeStatus } from "./nodes.ts";
import { readUsage } from "./process-usage.ts";
import { figure, seconds, row } from "./report.ts";

/** The share of the nodes that fails. If more failed, the health check would do nothing. */
const SHARE = 0.5;
const PHASE_MS_MAX = 180_000;
const SETTLE_MS = 5_000;
const POLL_MS = 50;
const BATCH = 25;
/**
 * Requests for each remediation that waits for the end of a maintenance: the lease of its node, the remediation and its
 * status. One list usually proves all nodes current; on a busy machine some are read one by one.
 */
const REQUESTS_MAX = 3.5;

/** Half of all nodes fail as fast as the API server can store it, and recover when each has its remediation. */
export async function measureHalfAtOnce(server: ApiServer, nodeCount: number, pid: number): Promise<void> {
  const names = Array.from({ length: Math.floor(nodeCount * SHARE) }, (_, index) => `node-${index}`);
  const what = `${nodeCount} nodes, ${names.length} at once`;
  const remediations = server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS);
  const count = (): number => [...remediations.values()].length;
  await until(() => count() === 0);
  let created = 0;
  let lastMs = Number.NaN;
  const unsubscribe = remediations.subscribe(({ type }) => {
    if (type !== "ADDED") return;
    created += 1;
    lastMs = systemClock.nowMs();
  });
  const tally = new RequestTally(server);
  let lists = 0;
  server.onRequest(({ method, path, watch }) => {
    if (method === "GET" && !watch && path.startsWith("/api/v1/nodes?")) lists += 1;
  });
  await delay(1_000 - (systemClock.nowMs() % 1_000));
  const before = await readUsage(pid);
  await setReady(server, names, "Unknown");
  const transitionMs = Math.floor(systemClock.nowMs() / 1_000) * 1_000;
  await delay(transitionMs + CONDITION_MS - systemClock.nowMs());
  const over = await readUsage(pid);
  const serverOver = process.cpuUsage();
  await until(() => created >= names.length);
  const last = await readUsage(pid);
  const serverCpu = process.cpuUsage(serverOver);
  row(`${what}: remediations created`, `${created} within ${PHASE_MS_MAX / 1_000} s`);
  // The last ones report what they wait for a moment later.
  await until(() => [...remediations.values()].every(({ status }) => status !== undefined));
  await delay(SETTLE_MS);
  unsubscribe();
  const after = await readUsage(pid);
  row(`${what}: requests until all have reported, events included`, tally.toString());
  const each = tally.each(names.length);
  figure({ what: `${what}: requests a remediation`, value: each, unit: "", aim: REQUESTS_MAX, fails: true });
  const lastS = created < names.length ? Infinity : (lastMs - transitionMs - CONDITION_MS) / 1_000;
  figure({ what: `${what}: last duration over → last CR`, value: lastS, unit: "s", aim: 2.5, fails: false });
  // The agent and this API server share the cores of this machine. CPU time that neither used went to other processes.
  row(
    `${what}: CPU within that, of the agent; of this API server`,
    `${seconds(last.cpuMs - over.cpuMs)} s; ${seconds((serverCpu.user + serverCpu.system) / 1_000)} s`,
  );
  const listsEach = lists / names.length;
  figure({ what: `${what}: lists of nodes a remediation, by page`, value: listsEach, unit: "", aim: 0.1, fails: true });
  figure({ what: `${what}: peak RSS`, value: after.rssPeakBytes / 2 ** 20, unit: "MiB", aim: 150, fails: true });
  row(
    `${what}: CPU, ${SETTLE_MS / 1_000} s after the last report included`,
    `${seconds(after.cpuMs - before.cpuMs)} s`,
  );
  await setReady(server, names, "True");
  await until(() => count() === 0);
}

/**
 * Stamps each node with the present time, because an event that comes late does not prove that the view is fresh. The
 * API server is in this process and answers between two batches. Without that, the agent would lose its lease on a busy
 * machine.
 */
async function setReady(server: ApiServer, names: readonly string[], ready: "True" | "Unknown"): Promise<void> {
  const nodes = server.collection(NODES);
  for (const [index, name] of names.entries()) {
    nodes.mergePatch({ name }, { status: nodeStatus(ready) }, "status");
    if (index % BATCH === BATCH - 1) await nextTurn();
  }
}

/** Waits until `holds` is true, for at most `PHASE_MS_MAX`. The figures show what is still missing then. */
async function until(holds: () => boolean): Promise<void> {
  const endMs = systemClock.monotonicMs() + PHASE_MS_MAX;
  while (!holds() && systemClock.monotonicMs() < endMs) await delay(POLL_MS);
}
