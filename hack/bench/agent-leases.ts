import { setTimeout as delay } from "node:timers/promises";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { HEALTH_CHECK } from "./agent-objects.ts";
import { createLease, renewals } from "./nodes.ts";
import { readUsage } from "./process-usage.ts";
import { figure } from "./report.ts";

const SETTLE_MS = 15_000;
const MEASURED_MS = 60_000;

/**
 * Measures what the watch of node leases costs in addition. A health check with early releases needs that watch. Each
 * node renews its lease every 10 s.
 *
 * @param restMs CPU time per minute without that watch, in milliseconds.
 */
export async function measureLeases(server: ApiServer, nodeCount: number, pid: number, restMs: number): Promise<void> {
  for (let index = 0; index < nodeCount; index++) createLease(server, `node-${index}`);
  const allowing = { metadata: { annotations: { [SKIP_DURATION_IF_OFF]: null } } };
  server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: HEALTH_CHECK }, allowing);
  const stopping = new AbortController();
  const renewing = renewals(server, nodeCount, stopping.signal);
  await delay(SETTLE_MS);
  const before = await readUsage(pid);
  await delay(MEASURED_MS);
  const after = await readUsage(pid);
  stopping.abort();
  await renewing;
  const cpuMs = ((after.cpuMs - before.cpuMs) * 60_000) / MEASURED_MS - restMs;
  const what = `${nodeCount} nodes, leases watched (${nodeCount / 10} events a second)`;
  figure({ what: `${what}: CPU a minute in addition`, value: cpuMs / 1_000, unit: "s", aim: 3, fails: false });
}
