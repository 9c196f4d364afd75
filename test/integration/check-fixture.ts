import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS } from "../../hack/kube-mock/kinds/admission.ts";
import { DEPLOYMENTS } from "../../hack/kube-mock/kinds/plain.ts";
import { readManifests } from "../../hack/lib/apply.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { AGENT_FAMILIES, AGENT_NOT_READY, AGENT_VERSION } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { LEASE } from "../../src/kube/lease/lease-record.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { VERSION } from "../../src/runtime/version.ts";

// A cluster with three nodes. ironfence is installed and can fence each of them.

export const NAMESPACE = "ironfence-system";
export const NODE_NAMES = ["worker-1", "worker-2", "worker-3"];

export interface HealthyOptions {
  /** The address of each node's BMC; by default nothing answers there. */
  address?: string;
  /** More fields of each device. */
  device?: object;
}

/** Creates all objects. */
export async function installHealthy(server: ApiServer, options: HealthyOptions = {}): Promise<void> {
  for (const crd of await readCrds()) server.load(crd);
  for (const name of [NAMESPACE, "other"]) server.collection(NAMESPACES).create({ metadata: { name } });
  await installAdmission(server);
  for (const name of NODE_NAMES) {
    server.collection(NODES).create({ metadata: { name, labels: { role: "worker" } } });
    createTarget(server, name, options);
  }
  const template = { namespace: NAMESPACE, name: "reboot" };
  server.collection(BARE_METAL_REMEDIATION_TEMPLATES).create({ metadata: template, spec: { template: { spec: {} } } });
  const { group, version, kind } = BARE_METAL_REMEDIATION_TEMPLATES;
  server.collection(NODE_HEALTH_CHECKS).create({
    metadata: { name: "workers" },
    spec: {
      selector: { matchLabels: { role: "worker" } },
      minHealthy: 1,
      remediationTemplate: { apiVersion: `${group}/${version}`, kind, ...template },
    },
  });
  installAgent(server);
}

async function installAdmission(server: ApiServer): Promise<void> {
  const types: readonly ResourceType[] = [ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS];
  for (const { kind, metadata, spec } of await readManifests("deploy/kustomize")) {
    const type = types.find((candidate) => candidate.kind === kind);
    if (type !== undefined) server.collection(type).create({ metadata, spec });
  }
}

function installAgent(server: ApiServer): void {
  const metadata = { namespace: NAMESPACE, name: "ironfence", labels: { "app.kubernetes.io/name": "ironfence" } };
  const deployments = server.collection(DEPLOYMENTS);
  deployments.create({ metadata, spec: { replicas: 2, template: { spec: { serviceAccountName: "ironfence" } } } });
  const status = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };
  deployments.mergePatch(metadata, { status }, "status");
  const annotations = { [AGENT_VERSION]: VERSION, [AGENT_FAMILIES]: "node-health-check", [AGENT_NOT_READY]: "" };
  server.collection(LEASE).create({
    metadata: { namespace: NAMESPACE, name: "ironfence", annotations },
    spec: { holderIdentity: "agent-1", leaseDurationSeconds: 3_600, renewTime: microTime() },
  });
}

/** Creates a target that the agent has found usable. */
function createTarget(server: ApiServer, name: string, { address, device }: HealthyOptions): void {
  const targets = server.collection(FENCING_TARGETS);
  const credentialsSecretRef = { name: "bmc" };
  const devices = [{ address: address ?? "redfish://127.0.0.1:1", credentialsSecretRef, ...device }];
  targets.create({ metadata: { namespace: NAMESPACE, name }, spec: { nodeName: name, devices } });
  setTargetReady(server, name, "True", "Usable", "the host can be fenced");
}

/** Writes the status that a probe by the agent would have written. */
export function setTargetReady(
  server: ApiServer,
  name: string,
  status: "True" | "False",
  reason: string,
  message: string,
): void {
  const lastTransitionTime = new Date(Date.now() - 60_000).toISOString().replace(/\.\d+Z$/, "Z");
  const targets = server.collection(FENCING_TARGETS);
  const key = { namespace: NAMESPACE, name };
  const observedGeneration = targets.get(key)?.metadata.generation;
  const conditions = [{ type: "Ready", status, reason, message, lastTransitionTime, observedGeneration }];
  targets.mergePatch(key, { status: { conditions, lastProbeTime: lastTransitionTime } }, "status");
}

function microTime(): string {
  return new Date().toISOString().replace("Z", "000Z");
}
