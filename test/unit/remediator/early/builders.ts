import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { KubeletLease } from "../../../../src/nodes/leases/kubelet-leases.ts";

/** A Ready node. */
export const nodeOf = (name: string): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, uid: name, resourceVersion: "1" },
  spec: {},
  status: { nodeInfo: { bootID: "boot" }, conditions: [{ type: "Ready", status: "True" }] },
});

/** Its target, whose host was read On in the present boot. */
export const targetOf = (name: string): FencingTarget =>
  ({
    metadata: { name, uid: name, namespace: "ironfence", generation: 1 },
    spec: { nodeName: name },
    status: {
      observedGeneration: 1,
      onInBoot: "boot",
      conditions: ["Ready", "IdentityVerified"].map((type) => ({ type, status: "True" })),
    },
  }) as unknown as FencingTarget;

/** A lease that has not changed since that monotonic time. */
export const leaseOf = (sinceMs: number, resourceVersion = "1"): KubeletLease => ({
  uid: "lease",
  resourceVersion,
  durationMs: 40_000,
  gapsMs: [10_000, 10_000],
  sinceMs,
});
