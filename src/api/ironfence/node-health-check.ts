import * as z from "zod";
import type { CustomKind } from "../schema/kind.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { conditionsSchema, labelSelectorSchema, objectReferenceSchema, timeSchema } from "../schema/meta.ts";
import { DURATION_PATTERN } from "../../runtime/duration.ts";

// The format is that of upstream (medik8s node-healthcheck-operator), so that manifests for it work unchanged.

/** Durations as in `DURATION_PATTERN`, but with an optional sign, and `0`. */
export const SIGNED_DURATION_PATTERN = "^(-?([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0)$";
const COUNT_OR_PERCENT_PATTERN = "^((100|[0-9]{1,2})%|[0-9]+)$";

/** A number of nodes, or a percentage such as `51%`. */
const countOrPercent = (description: string) =>
  z.union([z.int(), z.string()]).meta({
    description,
    "x-kubernetes-int-or-string": true,
    pattern: COUNT_OR_PERCENT_PATTERN,
    "x-kubernetes-validations": [{ rule: "type(self) == int ? self >= 0 : true", message: "must not be negative" }],
  });

const conditionDuration = z.string().regex(new RegExp(DURATION_PATTERN, "u"));

const unhealthyConditionSchema = z.object({
  type: z.string().min(1),
  status: z.string().min(1),
  duration: conditionDuration.meta({ description: "How long the condition must have had this status." }),
});

const DEFAULT_UNHEALTHY_CONDITIONS = [
  { type: "Ready", status: "False", duration: "300s" },
  { type: "Ready", status: "Unknown", duration: "300s" },
];

const escalatingRemediationSchema = z.object({
  remediationTemplate: objectReferenceSchema,
  order: z.int().meta({ description: "Position of this step: the step with the lowest order is tried first." }),
  timeout: conditionDuration.meta({
    description: "How long this step may take before the next one starts; at least 1m.",
    "x-kubernetes-validations": [
      {
        rule: `!self.matches('${DURATION_PATTERN.replaceAll("\\", "\\\\")}') || duration(self) >= duration('1m')`,
        message: "must be at least 1m",
      },
    ],
  }),
});
export type EscalatingRemediation = z.infer<typeof escalatingRemediationSchema>;

export const nodeHealthCheckSpecSchema = z.object({
  selector: labelSelectorSchema.meta({ description: "The nodes that this health check covers; it must not be empty." }),
  unhealthyConditions: z
    .array(unhealthyConditionSchema)
    .min(1)
    // Limits the cost of the validation rules on durations in the API server.
    .max(100)
    .default(DEFAULT_UNHEALTHY_CONDITIONS)
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type", "status"] }),
  minHealthy: countOrPercent(
    "Remediation starts only while at least this many of the selected nodes are healthy. The default is 51% if maxUnhealthy is absent, too.",
  ).optional(),
  maxUnhealthy: countOrPercent(
    "Remediation starts only while at most this many of the selected nodes are unhealthy.",
  ).optional(),
  stormCooldownDuration: conditionDuration.optional().meta({
    description:
      "How long no new remediation starts after the number of unhealthy nodes has exceeded the threshold and is within it again.",
  }),
  remediationTemplate: objectReferenceSchema.optional(),
  escalatingRemediations: z
    .array(escalatingRemediationSchema)
    .max(50)
    .meta({ "x-kubernetes-list-type": "atomic" })
    .optional(),
  pauseRequests: z
    .array(z.string())
    .optional()
    .meta({ description: "Any entry keeps new remediations from starting." }),
  healthyDelay: z.string().regex(new RegExp(SIGNED_DURATION_PATTERN, "u")).optional().meta({
    description:
      "How long a recovered node must stay healthy before its remediation is deleted. Negative: until the operator confirms it.",
  }),
});
export type NodeHealthCheckSpec = z.infer<typeof nodeHealthCheckSpecSchema>;

const remediationRecordSchema = z.object({
  resource: objectReferenceSchema,
  started: timeSchema,
  timedOut: timeSchema.optional(),
  templateName: z.string().optional(),
});
export type RemediationRecord = z.infer<typeof remediationRecordSchema>;

const unhealthyNodeSchema = z.object({
  name: z.string(),
  remediations: z.array(remediationRecordSchema).optional(),
  conditionsHealthyTimestamp: timeSchema.optional(),
  healthyDelayed: z.boolean().optional(),
});
export type UnhealthyNode = z.infer<typeof unhealthyNodeSchema>;

export const nodeHealthCheckStatusSchema = z.object({
  observedGeneration: z.int().optional(),
  observedNodes: z.int().optional(),
  healthyNodes: z.int().optional(),
  unhealthyNodes: z
    .array(unhealthyNodeSchema)
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] })
    .optional(),
  inFlightRemediations: z.record(z.string(), z.string()).optional().meta({
    description:
      "Nodes with a remediation of this health check in progress, and when it started. While there are any, selector and templates cannot change and the health check cannot be deleted.",
  }),
  conditions: conditionsSchema.optional(),
  phase: z.string().optional(),
  reason: z.string().optional(),
  lastUpdateTime: timeSchema.optional(),
});
export type NodeHealthCheckStatus = z.infer<typeof nodeHealthCheckStatusSchema>;

/** `remediation.medik8s.io/v1alpha1` NodeHealthCheck. */
export interface NodeHealthCheck extends KubeObject {
  spec: NodeHealthCheckSpec;
  status?: NodeHealthCheckStatus;
}

// A disabled health check may always be corrected: it remediates nothing with its present spec.
const remediating =
  "has(oldSelf.status) && has(oldSelf.status.inFlightRemediations) && size(oldSelf.status.inFlightRemediations) > 0 && !(has(oldSelf.status.phase) && oldSelf.status.phase == 'Disabled')";
const unchangedWhileRemediating = (field: string) =>
  `!(${remediating}) || (has(self.spec.${field}) == has(oldSelf.spec.${field}) && (!has(self.spec.${field}) || self.spec.${field} == oldSelf.spec.${field}))`;

export const NODE_HEALTH_CHECKS: CustomKind = {
  group: "remediation.medik8s.io",
  version: "v1alpha1",
  kind: "NodeHealthCheck",
  plural: "nodehealthchecks",
  singular: "nodehealthcheck",
  namespaced: false,
  shortNames: ["nhc"],
  categories: ["ironfence"],
  description: "Finds unhealthy nodes and creates a remediation for each from a template.",
  spec: nodeHealthCheckSpecSchema,
  status: nodeHealthCheckStatusSchema,
  rootRules: [
    {
      rule: "(has(self.spec.selector.matchLabels) && size(self.spec.selector.matchLabels) > 0) || (has(self.spec.selector.matchExpressions) && size(self.spec.selector.matchExpressions) > 0)",
      message: "spec.selector must not be empty: it would cover every node",
      fieldPath: ".spec.selector",
    },
    {
      rule: "has(self.spec.remediationTemplate) != has(self.spec.escalatingRemediations)",
      message: "exactly one of spec.remediationTemplate and spec.escalatingRemediations must be set",
      fieldPath: ".spec.remediationTemplate",
    },
    {
      rule: "!(has(self.spec.minHealthy) && has(self.spec.maxUnhealthy))",
      message: "spec.minHealthy and spec.maxUnhealthy are mutually exclusive",
      fieldPath: ".spec.maxUnhealthy",
    },
    {
      rule: "!has(self.spec.escalatingRemediations) || self.spec.escalatingRemediations.all(a, self.spec.escalatingRemediations.exists_one(b, a.order == b.order))",
      message: "spec.escalatingRemediations: every order must be unique",
      fieldPath: ".spec.escalatingRemediations",
    },
    {
      rule: "!has(self.spec.maxUnhealthy) || !has(self.spec.remediationTemplate) || !has(self.spec.remediationTemplate.kind) || self.spec.remediationTemplate.kind != 'MachineDeletionRemediationTemplate'",
      message: "spec.maxUnhealthy cannot be used with a MachineDeletionRemediationTemplate",
      fieldPath: ".spec.maxUnhealthy",
    },
    {
      rule: "!has(self.spec.maxUnhealthy) || !has(self.spec.escalatingRemediations) || self.spec.escalatingRemediations.all(a, !has(a.remediationTemplate.kind) || a.remediationTemplate.kind != 'MachineDeletionRemediationTemplate')",
      message: "spec.maxUnhealthy cannot be used with a MachineDeletionRemediationTemplate",
      fieldPath: ".spec.maxUnhealthy",
    },
    ...["selector", "remediationTemplate", "escalatingRemediations"].map((field) => ({
      rule: unchangedWhileRemediating(field),
      message: `spec.${field} must not change while a node is being remediated`,
      fieldPath: `.spec.${field}`,
    })),
  ],
  printerColumns: [
    { name: "Observed", type: "integer", jsonPath: ".status.observedNodes" },
    { name: "Healthy", type: "integer", jsonPath: ".status.healthyNodes" },
    { name: "Phase", type: "string", jsonPath: ".status.phase" },
    { name: "Reason", type: "string", jsonPath: ".status.reason" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ],
};
