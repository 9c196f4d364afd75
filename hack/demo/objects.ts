import { ALLOWED_ADDRESSES, MULTIPLE_TEMPLATES_SUPPORT } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { LEASES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import type { Secret } from "../../src/runtime/secret.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { NAMESPACES, STATEFUL_SETS } from "../kube-mock/controllers/cluster-types.ts";
import { freeLeases } from "../lib/free-leases.ts";

/** The agent's namespace in the demo: the same as in `deploy/kustomize`. */
export const NAMESPACE = "ironfence-system";
export const NODE_NAMES: readonly string[] = ["node-1", "node-2", "node-3", "node-4", "node-5", "node-6"];
export const BMC_USERNAME = "fencer";
const HEALTH_CHECK = "workers";
export const DATABASE = "database";

/** What FencingTargets need to reach the simulated BMCs. */
export interface BmcAccess {
  /** URL of each node's BMC. */
  urls: ReadonlyMap<string, string>;
  password: Secret;
  caPem: string;
}

/**
 * Creates what a user would apply: Secrets, targets, templates and a health check. Also creates a database whose pods
 * must keep running.
 */
export function createObjects(server: ApiServer, access: BmcAccess): void {
  const create = (
    type: ResourceType,
    metadata: { namespace?: string; name: string; annotations?: Record<string, string> },
    body: object,
  ): void => {
    server.collection(type).create({ apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...body });
  };
  for (const name of [NAMESPACE, "medik8s-leases", "kube-node-lease"]) ensureNamespace(server, name);
  for (const lease of freeLeases(NAMESPACE)) server.collection(LEASES).create(lease);
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  create(
    SECRETS,
    { namespace: NAMESPACE, name: "bmc-credentials", annotations: { [ALLOWED_ADDRESSES]: "https://127.0.0.1:*" } },
    {
      data: { username: base64(BMC_USERNAME), password: base64(access.password.reveal()) },
    },
  );
  create(SECRETS, { namespace: NAMESPACE, name: "bmc-ca" }, { data: { "ca.crt": base64(access.caPem) } });
  for (const [nodeName, url] of access.urls) {
    create(
      FENCING_TARGETS,
      { namespace: NAMESPACE, name: nodeName },
      {
        spec: {
          nodeName,
          devices: [
            {
              address: url.replace(/^https/, "redfish+https"),
              credentialsSecretRef: { name: "bmc-credentials" },
              tls: { caSecretRef: { name: "bmc-ca" } },
              timeouts: { connect: "1s", call: "2s" },
            },
          ],
        },
      },
    );
  }
  const strategy = { retryLimit: 0, timeout: "6s", powerOffTimeout: "4s", powerOnTimeout: "4s", drainTimeout: "10s" };
  // One health check names two templates of this kind, so each template needs this annotation: the remediator can
  // distinguish their remediations.
  const annotations = { [MULTIPLE_TEMPLATES_SUPPORT]: "true" };
  const template = (name: string, type: "Reboot" | "Reprovision", timeout: string): void =>
    create(
      BARE_METAL_REMEDIATION_TEMPLATES,
      { namespace: NAMESPACE, name, annotations },
      { spec: { template: { spec: { strategy: { ...strategy, type, timeout } } } } },
    );
  template("reboot", "Reboot", "6s");
  template("reprovision", "Reprovision", "20s");
  const step = (name: string, order: number): object => ({
    remediationTemplate: {
      apiVersion: apiVersionOf(BARE_METAL_REMEDIATION_TEMPLATES),
      kind: BARE_METAL_REMEDIATION_TEMPLATES.kind,
      namespace: NAMESPACE,
      name,
    },
    order,
    timeout: "5m",
  });
  // Transition times are whole seconds, so a duration may end up to one second early. Nodes that stop together become
  // Unknown within half a second here. With 2 s, all of them count as unhealthy before the first one is due.
  const duration = "2s";
  create(
    NODE_HEALTH_CHECKS,
    { name: HEALTH_CHECK },
    {
      spec: {
        selector: { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "Exists" }] },
        unhealthyConditions: [
          { type: "Ready", status: "Unknown", duration },
          { type: "Ready", status: "False", duration },
        ],
        minHealthy: 4,
        escalatingRemediations: [step("reboot", 1), step("reprovision", 2)],
      },
    },
  );
  create(STATEFUL_SETS, { namespace: "default", name: DATABASE }, databaseSpec());
}

function ensureNamespace(server: ApiServer, name: string): void {
  const namespaces = server.collection(NAMESPACES);
  if (namespaces.get({ name }) === undefined)
    namespaces.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
}

/** Six replicas, each with a volume that only one node at a time may hold. */
function databaseSpec(): object {
  return {
    spec: {
      serviceName: DATABASE,
      replicas: NODE_NAMES.length,
      selector: { matchLabels: { app: DATABASE } },
      template: {
        metadata: { labels: { app: DATABASE } },
        spec: {
          containers: [{ name: "db", image: "postgres" }],
          volumes: [],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: { accessModes: ["ReadWriteOncePod"], resources: { requests: { storage: "1Gi" } } },
        },
      ],
    },
  };
}
