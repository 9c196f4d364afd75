import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";

// One health check with two templates of two kinds. The in-memory and the real API server get the same objects.

export const NAMESPACE = "ironfence-system";
export const LEASE_NAMESPACE = "medik8s-leases";
export const HEALTH_CHECK = "bench";
/** Long enough to write half of the nodes before the duration of the first is over. */
export const CONDITION_MS = 15_000;

/** A kind of a vendor. No controller serves it. */
const POWER_CUTS: ResourceType = {
  group: "bench.example",
  version: "v1",
  kind: "PowerCut",
  plural: "powercuts",
  namespaced: true,
};
const POWER_CUT_TEMPLATES: ResourceType = { ...POWER_CUTS, kind: "PowerCutTemplate", plural: "powercuttemplates" };
const TEMPLATE_TYPES = [BARE_METAL_REMEDIATION_TEMPLATES, POWER_CUT_TEMPLATES];

/** The CRDs of the vendor. They keep unknown fields. */
export const VENDOR_CRDS = [POWER_CUTS, POWER_CUT_TEMPLATES].map(({ group, version, kind, plural }) => {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [{ name: version, served: true, storage: true, subresources: { status: {} }, schema }],
    },
  };
});

/** Templates and health check, in the order in which they must be created. */
export const DETECTOR_OBJECTS = [
  ...TEMPLATE_TYPES.map((type) => ({
    type,
    metadata: { namespace: NAMESPACE, name: "bench" },
    spec: { template: { spec: {} } },
  })),
  {
    type: NODE_HEALTH_CHECKS,
    metadata: { name: HEALTH_CHECK },
    spec: {
      selector: { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "Exists" }] },
      unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: `${CONDITION_MS / 1_000}s` }],
      minHealthy: 0,
      escalatingRemediations: TEMPLATE_TYPES.map((type, index) => ({
        remediationTemplate: { apiVersion: apiVersionOf(type), kind: type.kind, namespace: NAMESPACE, name: "bench" },
        order: index + 1,
        timeout: "1h",
      })),
    },
  },
].map(({ type, ...object }) => ({ type, object: { apiVersion: apiVersionOf(type), kind: type.kind, ...object } }));

export function nodeNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `node-${index}`);
}
