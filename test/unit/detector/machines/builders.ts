import type { Cluster, Machine } from "../../../../src/api/cluster-api/cluster-api.ts";
import { readCluster, readMachine } from "../../../../src/api/cluster-api/cluster-api.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { MachineHealthCheck } from "../../../../src/api/cluster-api/machine-health-check.ts";
import { readMachineHealthCheck } from "../../../../src/api/cluster-api/machine-health-check.ts";
import { CLUSTER_API_CHECKS } from "../../../../src/detector/machines/vendors/cluster-api.ts";
import { decideMachineCheck } from "../../../../src/detector/machines/decide/decide.ts";
import type {
  MachineCheckDecision,
  MachineCheckSnapshot,
  MachineFacts,
} from "../../../../src/detector/machines/decide/decision.ts";
import { compileMachinePolicy } from "../../../../src/detector/machines/decide/policy.ts";
import type { MachinePolicy } from "../../../../src/detector/machines/decide/policy.ts";
import type { Fault, ObservedMachine } from "../../../../src/detector/machines/decide/observed-machine.ts";
import type { Remediation } from "../../../../src/detector/shared/model/remediation.ts";
import { readRemediation } from "../../../../src/detector/shared/model/remediation.ts";
import type { Template } from "../../../../src/detector/shared/model/template.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import { parseTimeMs, toTime } from "../../../../src/runtime/time.ts";

// A small world of plain objects for table tests, without a server.

export const T0 = 1_800_000_000_000;
export const MINUTE = 60_000;

/** An object as a server sends it, with fields that our types do not name. */
function rawOf(object: KubeObject & Record<string, unknown>): KubeObject {
  return object;
}

export function conditionsOf(types: Record<string, { status: string; sinceMs: number; reason?: string }>) {
  return Object.entries(types).map(([type, { status, sinceMs, reason = type }]) => ({
    type,
    status,
    reason,
    message: "",
    lastTransitionTime: toTime(sinceMs),
  }));
}

export function machineOf(
  name = "m0",
  parts: { metadata?: object; spec?: object; status?: object; createdMs?: number; version?: string } = {},
): Machine {
  const { metadata = {}, spec = {}, status = {}, createdMs = T0 - 3 * 24 * 60 * MINUTE, version = "v1beta2" } = parts;
  return readMachine(
    rawOf({
      apiVersion: `cluster.x-k8s.io/${version}`,
      kind: "Machine",
      metadata: {
        namespace: "tenant",
        name,
        uid: `uid-${name}`,
        resourceVersion: "1",
        creationTimestamp: toTime(createdMs),
        labels: { "cluster.x-k8s.io/cluster-name": "prod", pool: "a" },
        ...metadata,
      },
      spec: { clusterName: "prod", ...spec },
      status: { nodeRef: { name }, ...status },
    }),
  );
}

export function clusterOf(ready: { initializedMs?: number; infrastructureMs?: number } = {}): Cluster {
  const { initializedMs, infrastructureMs } = {
    initializedMs: T0 - 86_400_000,
    infrastructureMs: T0 - 86_400_000,
    ...ready,
  };
  return readCluster(
    rawOf({
      apiVersion: "cluster.x-k8s.io/v1beta2",
      kind: "Cluster",
      metadata: { namespace: "tenant", name: "prod", uid: "c", resourceVersion: "1" },
      status: {
        conditions: conditionsOf({
          ...(initializedMs >= 0 && { ControlPlaneInitialized: { status: "True", sinceMs: initializedMs } }),
          ...(infrastructureMs >= 0 && { InfrastructureReady: { status: "True", sinceMs: infrastructureMs } }),
        }),
      },
    }),
  );
}

export function nodeOf(name: string, types: Parameters<typeof conditionsOf>[0]): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, uid: `node-${name}`, resourceVersion: "1" },
    spec: {},
    status: { conditions: conditionsOf(types) },
  };
}

export function targetOf(parts: Partial<ObservedMachine> = {}): ObservedMachine {
  return {
    machine: machineOf(),
    cluster: clusterOf(),
    node: { state: "there", node: nodeOf("m0", { Ready: { status: "True", sinceMs: T0 - MINUTE } }) },
    nodeSinceMs: ({ lastTransitionTime }) => parseTimeMs(lastTransitionTime),
    ...parts,
  };
}

export function checkOf(
  parts: { spec?: object; status?: object; annotations?: Record<string, string>; version?: "v1beta1" | "v1beta2" } = {},
): MachineHealthCheck {
  const { spec = {}, status = {}, annotations = {}, version = "v1beta2" } = parts;
  return readMachineHealthCheck(
    rawOf({
      apiVersion: `cluster.x-k8s.io/${version}`,
      kind: "MachineHealthCheck",
      metadata: { namespace: "tenant", name: "check", uid: "check", resourceVersion: "1", generation: 3, annotations },
      spec: {
        clusterName: "prod",
        selector: { matchLabels: { pool: "a" } },
        remediation: { templateRef: { apiVersion: "fence.example/v1", kind: "FenceTemplate", name: "t" } },
        ...spec,
      },
      status,
    }),
  );
}

export const TEMPLATE: Template = {
  name: "t",
  namespace: "tenant",
  type: { group: "fence.example", version: "v1", kind: "Fence", plural: "fences", namespaced: true },
  remediationSpec: { mode: "off" },
  labels: {},
  annotations: {},
  manyPerNode: false,
};

export const FAULT: Fault = {
  reason: "UnhealthyNode",
  message: "Health check failed:\n  * it is",
  v1beta1: { reason: "UnhealthyNode", message: "it is" },
};

export function requestOf(
  machine: Machine,
  parts: { terminating?: boolean; createdMs?: number; failedMs?: number; metal3Failed?: boolean } = {},
): Remediation {
  const failure = { status: "False", reason: "BMCUnreachable", message: "no route" };
  const failed = parts.failedMs === undefined ? undefined : { ...failure, lastTransitionTime: toTime(parts.failedMs) };
  const { name, uid } = machine.metadata;
  return readRemediation({
    apiVersion: "fence.example/v1",
    kind: "Fence",
    metadata: {
      namespace: "tenant",
      name,
      uid: `request-${name}`,
      resourceVersion: "1",
      creationTimestamp: toTime(parts.createdMs ?? T0),
      ...(parts.terminating === true && { deletionTimestamp: toTime(T0) }),
      annotations: { "cluster.x-k8s.io/cloned-from-groupkind": "FenceTemplate.fence.example" },
      ownerReferences: [{ apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name, uid }],
    },
    conditions: failed === undefined ? [] : [{ type: "Succeeded", ...failed }],
    powerOrdered: false,
    phaseFailed: parts.metal3Failed === true,
    failedAt: undefined,
  });
}

export function factsOf(parts: Partial<MachineFacts> = {}): MachineFacts {
  return {
    machine: machineOf(),
    health: { state: "unhealthy", fault: FAULT },
    requests: [],
    foreign: undefined,
    neededBy: undefined,
    controlPlaneBusy: undefined,
    attempts: [],
    deferral: undefined,
    fenceableSinceMs: undefined,
    ...parts,
  };
}

export function policyOf(check: MachineHealthCheck): MachinePolicy {
  const policy = compileMachinePolicy(CLUSTER_API_CHECKS, check);
  if (typeof policy === "string") throw new Error(policy);
  return policy;
}

/** Decides for unhealthy targets and `healthy` healthy ones. */
export function decideFor(
  targets: readonly MachineFacts[],
  parts: Partial<MachineCheckSnapshot> & { others?: number } = {},
): MachineCheckDecision {
  const { others = 3, ...rest } = parts;
  const check = parts.check ?? checkOf();
  const healthyOnes = targets.filter(({ health }) => health.state === "healthy").length;
  const names = [
    ...targets.map(({ machine }) => machine.metadata.name),
    ...Array.from({ length: others }, (_, i) => `z${i}`),
  ];
  return decideMachineCheck(
    CLUSTER_API_CHECKS,
    {
      check,
      policy: policyOf(check),
      machineNames: names,
      healthy: others + healthyOnes,
      machines: targets,
      template: TEMPLATE,
      blocked: undefined,
      unreachable: undefined,
      deleting: undefined,
      isHistoryFull: false,
      ...rest,
    },
    T0,
  );
}

/** The actions in short form: `request m0`. */
export function deedsOf({ actions }: MachineCheckDecision): string[] {
  return actions.flatMap((action) => {
    if (action.type === "recordAttempts") return [`record ${action.key} ${action.attempts.length}`];
    if (action.type === "conditions") return [];
    return [`${action.type} ${action.machine.metadata.name}`];
  });
}

/** The conditions that are written to machines: `m0 HealthCheckSucceeded=False UnhealthyNode`. */
export function reportedBy({ actions }: MachineCheckDecision): string[] {
  return actions.flatMap((action) =>
    action.type === "conditions"
      ? [
          ...action.wanted.map(
            ({ type, status, reason }) => `${action.machine.metadata.name} ${type}=${status} ${reason}`,
          ),
          ...action.unwanted.map((type) => `${action.machine.metadata.name} no ${type}`),
        ]
      : [],
  );
}
