import { NODE_NAME } from "../../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import type { NodeHealthCheck } from "../../../../src/api/ironfence/node-health-check.ts";
import { AT } from "../overview-fixture.ts";

type Status = NonNullable<BareMetalRemediation["status"]>;

/** A node, Ready unless `ready` says otherwise. */
export function node(name: string, ready = "True", labels: Record<string, string> = {}): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, uid: `uid-${name}`, resourceVersion: "1", labels: { pool: "workers", ...labels } },
    spec: {},
    status: { conditions: [{ type: "Ready", status: ready, lastTransitionTime: AT }] },
  };
}

export interface TargetOptions {
  reason?: string;
  message?: string;
  maintenance?: boolean;
  /** The observed generation of the condition Ready. The generation of the spec is 2. */
  observed?: number;
  status?: FencingTarget["status"];
}

/** A target that can be fenced, unless `reason` says otherwise. */
export function target(nodeName: string, options: TargetOptions = {}): FencingTarget {
  const { reason = "Usable", message = "said", maintenance = false, observed = 2, status } = options;
  const isReady = reason === "Usable" || reason === "Degraded";
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: {
      namespace: "ironfence-system",
      name: `t-${nodeName}`,
      uid: `t-${nodeName}`,
      resourceVersion: "1",
      generation: 2,
    },
    spec: {
      nodeName,
      maintenance,
      identity: { verification: "Required" },
      devices: [{ address: "redfish://bmc", credentialsSecretRef: { name: "s" }, level: 1 }],
    },
    status: {
      powerState: "On",
      lastProbeTime: AT,
      conditions: [
        {
          type: "Ready",
          status: isReady ? "True" : "False",
          reason,
          message,
          lastTransitionTime: AT,
          observedGeneration: observed,
        },
      ],
      ...status,
    },
  };
}

/** A remediation of a node in a phase, with the reason of its wait. */
export function remediation(nodeName: string, phase: string, reason: string, status: Partial<Status> = {}) {
  const object: BareMetalRemediation = {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: {
      namespace: "ironfence-system",
      name: `r-${nodeName}`,
      uid: `r-${nodeName}`,
      resourceVersion: "1",
      creationTimestamp: AT,
      annotations: { [NODE_NAME]: nodeName },
    },
    spec: {} as BareMetalRemediation["spec"],
    status: {
      phase,
      node: { name: nodeName },
      conditions: [{ type: "Processing", status: "True", reason, message: "said", lastTransitionTime: AT }],
      ...status,
    },
  };
  return object;
}

/** A health check of all nodes of the pool `workers`. */
export function healthCheck(status: NodeHealthCheck["status"] = {}): NodeHealthCheck {
  return {
    apiVersion: "remediation.medik8s.io/v1alpha1",
    kind: "NodeHealthCheck",
    metadata: { name: "workers", uid: "h", resourceVersion: "1" },
    spec: {
      selector: { matchLabels: { pool: "workers" } },
      unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "300s" }],
      minHealthy: "1%",
      remediationTemplate: {
        apiVersion: "ironfence.io/v1alpha1",
        kind: "BareMetalRemediationTemplate",
        name: "reboot",
      },
    },
    status,
  };
}
