import { setTimeout as delay } from "node:timers/promises";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";

// Nodes of about the size that real ones have.

/** A kubelet posts an unchanged status every five minutes. */
const STATUS_PERIOD_MS = 300_000;

/** About as much as a kubelet writes: real nodes carry a dozen labels, five conditions and fifty images. */
export function labelsOf(name: string): Record<string, string> {
  const labels: Record<string, string> = { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" };
  for (let index = 0; index < 10; index++) labels[`example.com/label-${index}`] = `value-${index}`;
  return labels;
}

/** @param transitionMs since when the conditions stand; now by default. */
export function nodeStatus(ready: "True" | "Unknown", transitionMs: number = systemClock.nowMs()): object {
  const condition = (type: string, status: string): object => ({
    type,
    status,
    reason: "Bench",
    message: "a message of about the usual length",
    lastHeartbeatTime: toTime(systemClock.nowMs()),
    lastTransitionTime: toTime(transitionMs),
  });
  return {
    conditions: [
      ...["MemoryPressure", "DiskPressure", "PIDPressure"].map((type) => condition(type, "False")),
      condition("Ready", ready),
    ],
    nodeInfo: { bootID: systemRandom.uuid(), systemUUID: systemRandom.uuid(), machineID: systemRandom.uuid() },
    images: Array.from({ length: 50 }, (_, index) => ({
      names: [`registry.example.com/image-${index}:v1.2.3`],
      sizeBytes: 1e8,
    })),
  };
}

/** Unchanged statuses of `node-0` and so on keep coming, as from real kubelets. */
export async function heartbeats(server: ApiServer, nodeCount: number, signal: AbortSignal): Promise<void> {
  const nodes = server.collection<Node>(NODES);
  for (let index = 0; !signal.aborted; index = (index + 1) % nodeCount) {
    const node = nodes.get({ name: `node-${index}` });
    const conditions = (node?.status.conditions ?? []).map((condition) => ({
      ...condition,
      lastHeartbeatTime: toTime(systemClock.nowMs()),
    }));
    nodes.mergePatch({ name: `node-${index}` }, { status: { conditions } }, "status");
    await delay(STATUS_PERIOD_MS / nodeCount);
  }
}
