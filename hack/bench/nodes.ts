import { setTimeout as delay } from "node:timers/promises";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { toMicroTime, toTime } from "../../src/runtime/time.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";

// Nodes of about the size that real ones have.

/** A kubelet posts an unchanged status every five minutes. */
const STATUS_PERIOD_MS = 300_000;
/** A kubelet renews its lease of 40 s every 10 s. */
const RENEWAL_PERIOD_MS = 10_000;
/** Renewals are written in batches, since no timer is fine enough for those of many nodes. */
const RENEWAL_BATCH_MS = 20;
const LEASE_NAMESPACE = "kube-node-lease";

/** As many labels as on a real node, which has a dozen labels, five conditions and fifty images. */
export function labelsOf(name: string): Record<string, string> {
  const labels: Record<string, string> = { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" };
  for (let index = 0; index < 10; index++) labels[`example.com/label-${index}`] = `value-${index}`;
  return labels;
}

/** @param transitionMs when the conditions last changed; now by default. */
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

/** Posts unchanged statuses of `node-0`, `node-1` and so on, as real kubelets do. */
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

/** The lease of a node, as its kubelet makes it. */
export function createLease(server: ApiServer, name: string): void {
  server.collection(LEASES).create({
    apiVersion: apiVersionOf(LEASES),
    kind: LEASES.kind,
    metadata: {
      namespace: LEASE_NAMESPACE,
      name,
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: systemRandom.uuid() }],
    },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: toMicroTime(systemClock.nowMs()) },
  });
}

/** Renews the leases of `node-0`, `node-1` and so on every 10 s, one after the other. */
export async function renewals(server: ApiServer, nodeCount: number, signal: AbortSignal): Promise<void> {
  const leases = server.collection(LEASES);
  const beganMs = systemClock.monotonicMs();
  for (let index = 0; !signal.aborted; await delay(RENEWAL_BATCH_MS)) {
    const due = ((systemClock.monotonicMs() - beganMs) * nodeCount) / RENEWAL_PERIOD_MS;
    for (; index < due; index++) {
      const key = { namespace: LEASE_NAMESPACE, name: `node-${index % nodeCount}` };
      leases.mergePatch(key, { spec: { renewTime: toMicroTime(systemClock.nowMs()) } });
    }
  }
}
