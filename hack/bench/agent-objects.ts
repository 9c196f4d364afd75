import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { LEASES, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { NAMESPACES } from "../kube-mock/controllers/cluster-types.ts";
import { freeLeases } from "../lib/free-leases.ts";
import { labelsOf, nodeStatus } from "./nodes.ts";

// The objects in the API server while the agent is benchmarked.

export const NAMESPACE = "ironfence-system";
export const HEALTH_CHECK = "all";
export const CONDITION_MS = 1_000;

/** Creates nodes, a FencingTarget for each, and one health check that selects all of them. */
export function fill(server: ApiServer, nodeCount: number): void {
  const create = (type: ResourceType, metadata: object, body: object = {}): void => {
    server.collection(type).create({ apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...body });
  };
  for (const name of [NAMESPACE, "medik8s-leases"]) create(NAMESPACES, { name });
  for (const lease of freeLeases(NAMESPACE)) server.collection(LEASES).create(lease);
  create(SECRETS, { namespace: NAMESPACE, name: "bmc" }, { data: { username: btoa("u"), password: btoa("p") } });
  for (let index = 0; index < nodeCount; index++) {
    const name = `node-${index}`;
    create(NODES, { name, labels: labelsOf(name) }, { spec: { podCIDR: "10.0.0.0/24" }, status: nodeStatus("True") });
    const devices = [
      { address: `redfish://127.0.0.1:1/redfish/v1/Systems/${index}`, credentialsSecretRef: { name: "bmc" } },
    ];
    // The target is in maintenance, so the agent sends no power order.
    create(FENCING_TARGETS, { namespace: NAMESPACE, name }, { spec: { nodeName: name, maintenance: true, devices } });
  }
  create(
    BARE_METAL_REMEDIATION_TEMPLATES,
    { namespace: NAMESPACE, name: "reboot" },
    { spec: { template: { spec: {} } } },
  );
  create(
    NODE_HEALTH_CHECKS,
    // `measureLeases` measures the watch of leases separately.
    { name: HEALTH_CHECK, annotations: { [SKIP_DURATION_IF_OFF]: "false" } },
    {
      spec: {
        selector: { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "Exists" }] },
        unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: `${CONDITION_MS / 1_000}s` }],
        minHealthy: "50%",
        remediationTemplate: {
          apiVersion: apiVersionOf(BARE_METAL_REMEDIATION_TEMPLATES),
          kind: BARE_METAL_REMEDIATION_TEMPLATES.kind,
          namespace: NAMESPACE,
          name: "reboot",
        },
      },
    },
  );
}
