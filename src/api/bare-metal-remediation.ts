import { z } from "zod";
import type { CustomKind } from "./kind.ts";
import type { KubeObject } from "../kube/resource.ts";
import { conditionsSchema, timeSchema } from "./meta.ts";
import { DURATION_PATTERN } from "../runtime/duration.ts";

const duration = (value: string, description: string) =>
  z.string().regex(new RegExp(DURATION_PATTERN, "u")).default(value).meta({ description });

export const strategySchema = z
  .object({
    type: z.enum(["Reboot", "Reprovision", "Escalate"]).default("Reboot").meta({
      description:
        "Reboot: off, proven off, workloads released, on again. Reprovision: the same, then booted from the network so that the host is installed anew. Escalate: 1 + retryLimit reboots, then one reprovision, in one remediation.",
    }),
    retryLimit: z.int().min(0).max(10).default(1).meta({
      description: "How many more reboots follow one that did not help.",
    }),
    timeout: duration("600s", "How long the node may take to be Ready again after power-on."),
    powerOffTimeout: duration("120s", "How long the host may take to be proven off."),
    powerOnTimeout: duration("300s", "How long the host may take to be on after the order."),
    drainTimeout: duration(
      "300s",
      "How long pods and volume attachments may take to leave the node after it is proven off.",
    ),
    workloadRelease: z.enum(["OutOfServiceTaint", "DeleteNode"]).default("OutOfServiceTaint").meta({
      description: "How workloads are freed once the host is proven off.",
    }),
    podRelease: z.enum(["Eager", "GarbageCollector"]).default("Eager").meta({
      description:
        "Eager: ironfence deletes the pods of the proven-off host itself, at once. GarbageCollector: Kubernetes' own sweep does, every 20 s.",
    }),
    via: z.enum(["NetworkBoot"]).default("NetworkBoot").meta({
      description: "How a host is reprovisioned. NetworkBoot: its boot override is set once to the network.",
    }),
    requireReboot: z.boolean().default(true).meta({
      description:
        "Refuse to reprovision a host unless a proven reboot of this outage is on record: a host is never wiped because its BMC was away.",
    }),
  })
  .meta({ description: "What is done to bring the node back." });
export type Strategy = z.infer<typeof strategySchema>;

export const bareMetalRemediationSpecSchema = z.object({
  strategy: strategySchema.prefault({}).meta({ default: {} }),
});
export type BareMetalRemediationSpec = z.infer<typeof bareMetalRemediationSpecSchema>;

const taintSchema = z.object({
  key: z.string(),
  value: z.string().optional(),
  effect: z.string(),
  timeAdded: z.string().optional(),
});

export const bareMetalRemediationStatusSchema = z.object({
  observedGeneration: z.int().optional(),
  phase: z.string().optional().meta({ description: "The step that the remediation is at, for people." }),
  conditions: conditionsSchema.optional(),
  attempt: z
    .object({
      id: z.string().meta({ description: "Identifies one power cycle; marks on the node carry it." }),
      action: z.string().meta({ description: "The step that was stored before it was taken." }),
      startedAt: timeSchema,
      deadline: timeSchema,
    })
    .optional(),
  retryCount: z.int().min(0).optional(),
  lastRemediated: timeSchema.optional(),
  node: z
    .object({
      name: z.string(),
      uid: z.string().optional(),
      bootID: z.string().optional(),
    })
    .optional(),
  target: z
    .object({
      kind: z.string(),
      name: z.string(),
      namespace: z.string().optional(),
      uid: z.string(),
    })
    .optional(),
  backup: z
    .object({
      labels: z.record(z.string(), z.string()).optional(),
      annotations: z.record(z.string(), z.string()).optional(),
      taints: z.array(taintSchema).optional(),
      unschedulable: z.boolean().optional(),
    })
    .optional(),
  timeline: z
    .array(
      z.object({ step: z.string(), time: z.string().meta({ format: "date-time" }), message: z.string().optional() }),
    )
    .max(200)
    .optional(),
});
export type BareMetalRemediationStatus = z.infer<typeof bareMetalRemediationStatusSchema>;

/** `ironfence.io/v1alpha1` BareMetalRemediation. */
export interface BareMetalRemediation extends KubeObject {
  spec: BareMetalRemediationSpec;
  status?: BareMetalRemediationStatus;
}

export const BARE_METAL_REMEDIATIONS: CustomKind = {
  group: "ironfence.io",
  version: "v1alpha1",
  kind: "BareMetalRemediation",
  plural: "baremetalremediations",
  singular: "baremetalremediation",
  namespaced: true,
  shortNames: ["bmr"],
  categories: ["ironfence"],
  description:
    "Fences one node through its BMC and brings it back. The health check that finds the node unhealthy creates it.",
  spec: bareMetalRemediationSpecSchema,
  status: bareMetalRemediationStatusSchema,
  printerColumns: [
    { name: "Node", type: "string", jsonPath: ".status.node.name" },
    { name: "Phase", type: "string", jsonPath: ".status.phase" },
    { name: "Attempt", type: "integer", jsonPath: ".status.retryCount" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
    { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Succeeded")].reason' },
  ],
};

export const bareMetalRemediationTemplateSpecSchema = z.object({
  template: z.object({ spec: bareMetalRemediationSpecSchema.prefault({}).meta({ default: {} }) }),
});

export const BARE_METAL_REMEDIATION_TEMPLATES: CustomKind = {
  group: "ironfence.io",
  version: "v1alpha1",
  kind: "BareMetalRemediationTemplate",
  plural: "baremetalremediationtemplates",
  singular: "baremetalremediationtemplate",
  namespaced: true,
  shortNames: ["bmrt"],
  categories: ["ironfence"],
  description: "What a health check copies into each BareMetalRemediation that it creates.",
  spec: bareMetalRemediationTemplateSpecSchema,
  printerColumns: [
    { name: "Strategy", type: "string", jsonPath: ".spec.template.spec.strategy.type" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ],
};
