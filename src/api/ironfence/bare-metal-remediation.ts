import * as z from "zod";
import type { CustomKind } from "../schema/kind.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { clusterRefSchema, conditionsSchema, timeSchema } from "../schema/meta.ts";
import { DURATION_PATTERN } from "../../runtime/duration.ts";

const duration = (value: string, description: string) =>
  z.string().regex(new RegExp(DURATION_PATTERN, "u")).default(value).meta({ description });

const strategySchema = z
  .object({
    type: z.enum(["Reboot", "Reprovision", "Escalate"]).default("Reboot").meta({
      description:
        "Reboot: power off, prove off, release the workloads, power on. Reprovision: the same, but the host is installed again. Escalate: 1 + retryLimit reboots, then one reprovision, in one remediation.",
    }),
    retryLimit: z.int().min(0).max(10).default(1).meta({
      description: "How many more reboots are tried if the first one does not help.",
    }),
    timeout: duration("600s", "How long the node may take to be Ready again after power-on."),
    powerOffTimeout: duration("120s", "How long the host may take to be proven off."),
    powerOnTimeout: duration(
      "300s",
      "How long the host may take to be on after the order; at least 30s. No duration counts for more than 24h.",
    ),
    drainTimeout: duration(
      "300s",
      "How long pods and volume attachments may take to leave the node, from the moment at which their release begins.",
    ),
    workloadRelease: z.enum(["OutOfServiceTaint", "DeleteNode"]).default("OutOfServiceTaint").meta({
      description: "How workloads are freed once the host is proven off.",
    }),
    podRelease: z.enum(["Eager", "GarbageCollector"]).default("Eager").meta({
      description:
        "Eager: ironfence deletes the pods of the proven-off host itself, at once. GarbageCollector: the pod garbage collector of Kubernetes deletes them, every 20 s.",
    }),
    via: z.enum(["NetworkBoot", "BareMetalHost", "MachineDeletion"]).default("NetworkBoot").meta({
      description:
        "How a host is reprovisioned. NetworkBoot: its boot override is set once to the network. BareMetalHost: Metal3 removes its image and installs it again; only for hosts without a consumer. MachineDeletion: its Machine is deleted, so that its MachineSet creates another one; never for a Machine of the control plane.",
    }),
    diagnostics: z.enum(["None", "NMI"]).default("None").meta({
      description:
        "NMI: before the first power-off the BMC sends the host a diagnostic interrupt, once, so that its kernel writes a crash dump. The power-off then waits for diagnosticsTimeout. The interrupt proves nothing.",
    }),
    diagnosticsTimeout: duration(
      "60s",
      "How long the first power-off waits for a crash dump. A host that hangs may continue to write to its disks during this time. No duration counts for more than 10m.",
    ),
    powerOn: z.enum(["On", "ACCycle"]).default("On").meta({
      description:
        "ACCycle: before the power-on of a reboot, the mains power of the host is interrupted once, for boards that need this. Its BMC does it, or its enrolled outlets if no BMC of the host accepts the order. It is ordered only after the host was proven off, its workloads have left and its taint was removed.",
    }),
    acCycleTimeout: duration(
      "300s",
      "How long the agent waits for the BMC to answer again after an AC cycle before it powers the host on as usual. No duration counts for more than 30m.",
    ),
    requireReboot: z.boolean().default(true).meta({
      description:
        "Refuse to reprovision a host unless the status records a proven reboot of this outage: a host is never erased because its BMC was unreachable.",
    }),
  })
  .meta({ description: "What is done to bring the node back." });

/** The fields that a template may have. When a host may be powered on differs from one remediation to the next. */
const templateStrategySchema = z.object({ strategy: strategySchema.prefault({}).meta({ default: {} }) });

export const bareMetalRemediationSpecSchema = templateStrategySchema.extend({
  powerOnNotBefore: timeSchema.optional().meta({
    description:
      "The end of the duration of the health check. Before this time the host is not powered on, and not powered off again if it has come back by itself. A health check sets this if it does not wait for the duration, because the host is proven off.",
  }),
  earlyProof: z
    .object({
      leaseUID: z.string(),
      leaseResourceVersion: z.string().meta({
        description:
          "The resourceVersion of the node lease while it was silent. A later one shows that a kubelet lives.",
      }),
    })
    .optional()
    .meta({
      description:
        "The proof on which powerOnNotBefore rests. Without it nothing is done to the host or its node before that time.",
    }),
});
export type BareMetalRemediationSpec = z.infer<typeof bareMetalRemediationSpecSchema>;

const taintSchema = z.object({
  key: z.string(),
  value: z.string().optional(),
  effect: z.string(),
  timeAdded: z.string().optional(),
});

/** How many entries and sensors `status.evidence` has at most. */
export const EVIDENCE_ENTRIES_MAX = 8;
export const EVIDENCE_SENSORS_MAX = 5;

const evidenceSchema = z
  .object({
    class: z.enum(["Memory", "CPU", "PSU", "Thermal", "Disk", "PCIe", "Watchdog", "None"]).meta({
      description: "Why the host died, if its BMC shows that. None: the BMC shows no cause.",
    }),
    message: z.string().max(512).meta({ description: "The same as one sentence, from text of the BMC." }),
    readAt: timeSchema.meta({ description: "When the BMC was read." }),
    nodeLostAt: timeSchema.optional().meta({
      description: "When the lease of the node was last written. Absent if that is not known.",
    }),
    entries: z
      .array(
        z.object({
          log: z.string().max(64).meta({ description: "The log that has the entry, such as SEL." }),
          class: z
            .enum(["Memory", "CPU", "PSU", "Thermal", "Disk", "PCIe", "Watchdog", "Power", "None"])
            .meta({ description: "What the entry is about. Power: the host was switched on or off, or reset." }),
          severity: z.enum(["OK", "Warning", "Critical", "Fatal"]).meta({
            description: "By the words of the entry if they show it, otherwise the severity that the BMC reports.",
          }),
          time: timeSchema.optional().meta({
            description: "When it was written, corrected by the clock of the BMC. Absent if that is not known.",
          }),
          message: z.string().max(256).meta({ description: "The text of the BMC, as plain text." }),
        }),
      )
      .max(EVIDENCE_ENTRIES_MAX)
      .meta({ description: "Entries of the logs of the BMC, the most relevant one first." }),
    sensors: z
      .array(z.string().max(256))
      .max(EVIDENCE_SENSORS_MAX)
      .optional()
      .meta({ description: "Sensors that were above a limit, and parts that reported themselves as critical." }),
    lastReset: timeSchema.optional().meta({ description: "The last reset of the host before the power-off." }),
    clockOffsetSeconds: z.int().optional().meta({
      description:
        "How many seconds the clock of the BMC was ahead of the clock of the agent; negative if it was behind. Absent if the BMC showed no time.",
    }),
    incomplete: z
      .string()
      .max(256)
      .optional()
      .meta({ description: "Why some of it was not read. Absent if everything was read." }),
  })
  .meta({ description: "What the BMC showed about why the host died, read once after the first power-off order." });
export type Evidence = z.infer<typeof evidenceSchema>;

const diagnosticsSchema = z
  .object({
    orderedAt: z.string().meta({ format: "date-time", description: "Stored before the NMI is sent." }),
    endsAt: z.string().meta({ format: "date-time", description: "When the power-off no longer waits for the host." }),
    result: z.enum(["Sent", "Uncertain", "NotSent", "Rebooted"]).optional().meta({
      description:
        "Uncertain: the answer of the BMC was lost, so it counts as sent. Rebooted: the node reports another boot. Absent until the BMC has answered; an agent that starts before that treats the NMI as sent.",
    }),
    message: z.string().max(512).optional().meta({ description: "What the BMC answered." }),
  })
  .meta({ description: "The NMI of strategy.diagnostics. A remediation sends at most one." });

const acCycleSchema = z
  .object({
    attemptID: z
      .string()
      .meta({ description: "The power cycle that it belongs to. Each power cycle has at most one." }),
    orderedAt: z.string().meta({ format: "date-time", description: "Stored before it is ordered." }),
    endsAt: z.string().meta({ format: "date-time", description: "When the power-on no longer waits for the BMC." }),
    result: z.enum(["Done", "NotSent", "Unseen"]).optional().meta({
      description:
        "Done: the BMC stopped answering and answers again. Unseen: it never stopped answering, or did not answer again in time. Absent while the result is not known; an agent that starts in that time treats the order as sent.",
    }),
    message: z.string().max(512).optional().meta({ description: "The result in words." }),
  })
  .meta({ description: "The AC cycle of strategy.powerOn. It proves nothing." });

/** The cause of death in one line. */
export function causeText({ class: found, message }: Evidence): string {
  return found === "None" ? message : `${found}: ${message}`;
}

const bareMetalRemediationStatusSchema = z.object({
  observedGeneration: z.int().optional(),
  phase: z.string().optional().meta({ description: "The state of the remediation." }),
  stateVersion: z.int().min(1).optional().meta({
    description:
      "Version of the format of this status. An agent that knows only older versions does not act on it. Absent: 1, for agents up to 0.1.0.",
  }),
  writtenBy: z.string().optional().meta({ description: "Version of the agent that wrote the phase." }),
  conditions: conditionsSchema.optional(),
  attempt: z
    .object({
      id: z.string().meta({ description: "Identifies one power-off order; the taint on the node contains it." }),
      kind: z.enum(["Reboot", "Reprovision"]).meta({ description: "What this power cycle is for." }),
      action: z.enum(["None", "Inherited", "ForceOff", "On"]).meta({
        description:
          "The last power order, stored before it is sent. Inherited: none yet, but the previous owner may have left the host off.",
      }),
      actionAt: z.string().meta({ format: "date-time" }),
      orders: z.int().min(0).optional().meta({
        description: "Orders of this action in this power cycle that may have taken effect, the stored one included.",
      }),
      sent: z.boolean().meta({ description: "Whether the order was sent. Its answer may have been lost." }),
      done: z.boolean().meta({ description: "Whether the order's effect has been read back." }),
      startedAt: z.string().meta({ format: "date-time" }),
      deadline: z.string().meta({ format: "date-time", description: "When the present phase has taken too long." }),
      offConfirmedAt: z.string().meta({ format: "date-time" }).optional(),
      releasingSince: z.string().meta({ format: "date-time" }).optional(),
      bootOverride: z.boolean().meta({ description: "Whether a boot override may be set and must be cleared." }),
      secondTaint: z.boolean().optional().meta({
        description:
          "Whether an out-of-service taint of this id comes with an ownership taint. Not set for an id of agent 0.1.0, which only annotates the node.",
      }),
    })
    .optional(),
  drain: z
    .object({
      attemptID: z.string().meta({ description: "The power cycle that the counts belong to." }),
      pods: z.int().min(0).meta({ description: "Pods that had to leave the node." }),
      attachments: z.int().min(0).meta({
        description: "Volume attachments that had to leave the node. They are counted once no pod is left.",
      }),
      left: z
        .int()
        .min(0)
        .meta({ description: "Pods and volume attachments that were still bound at the last count." }),
    })
    .optional()
    .meta({ description: "Progress of the release of workloads. Absent if nothing was left at the first count." }),
  retryCount: z.int().min(0).optional().meta({ description: "Power cycles begun after the first." }),
  provenReboots: z.int().min(0).optional().meta({ description: "Reboots in which the host was proven off." }),
  outcome: z
    .object({ verdict: z.enum(["Failed", "TimedOut", "Deleted"]), reason: z.string(), message: z.string() })
    .optional()
    .meta({ description: "Why the remediation is being undone." }),
  lastRemediated: timeSchema.optional(),
  node: z
    .object({
      name: z.string().optional().meta({ description: "Absent for a Machine that has not become a Node." }),
      cluster: clusterRefSchema
        .extend({
          uid: z.string().optional().meta({
            description:
              "UID of its namespace kube-system when the remediation began. If the kubeconfig leads to another cluster, nothing is done there.",
          }),
          own: z.boolean().optional().meta({
            description: "Whether it is the cluster that the agent runs in, as named by --own-cluster.",
          }),
        })
        .optional()
        .meta({
          description:
            "The Cluster of Cluster API that the node belongs to. Absent for the cluster that the agent runs in.",
        }),
      uid: z.string().optional(),
      bootID: z.string().optional().meta({ description: "The boot that the present attempt ends." }),
      bootIDAtStart: z.string().optional().meta({
        description:
          "The boot of the node when the remediation began. If the node is Ready in another boot, it is back.",
      }),
      wasReady: z.boolean().optional().meta({
        description:
          "Whether the node was Ready when the remediation began. A node that was not, and is Ready before any power order, needs no power cycle.",
      }),
      zone: z.string().optional().meta({
        description:
          "Its failure zone when the remediation began. The remediation counts toward the limit of that zone.",
      }),
    })
    .optional(),
  machine: z
    .object({
      apiVersion: z.string(),
      kind: z.string(),
      namespace: z.string(),
      name: z.string(),
      uid: z.string(),
    })
    .optional()
    .meta({ description: "The Machine that requested the remediation." }),
  target: z
    .object({
      kind: z.string(),
      name: z.string(),
      namespace: z.string(),
      uid: z.string(),
      systemUUID: z.string().optional().meta({
        description:
          "System UUID that the target named when the host was last ordered off. A target that is created again must name the same UUID.",
      }),
      serialNumber: z.string().optional(),
    })
    .optional(),
  backup: z
    .object({
      nodeUID: z.string().meta({ description: "The UID of the Node that was saved before it was deleted." }),
      labels: z.record(z.string(), z.string()).optional(),
      annotations: z.record(z.string(), z.string()).optional(),
      taints: z.array(taintSchema).optional(),
      unschedulable: z.boolean().optional(),
    })
    .optional(),
  installation: z
    .object({
      step: z.enum(["Deprovisioning", "Provisioning", "Provisioned"]),
      image: z
        .string()
        .meta({ description: "JSON: the fields of the BareMetalHost that say what is installed on it." }),
    })
    .optional()
    .meta({ description: "What was removed from a BareMetalHost that is reprovisioned, so that it can be restored." }),
  replacement: z
    .object({
      owner: z
        .object({ apiVersion: z.string(), kind: z.string(), name: z.string(), uid: z.string() })
        .meta({ description: "The owner that creates another Machine." }),
      deletedAt: timeSchema.optional().meta({ description: "When the agent saw that the Machine is being deleted." }),
      nodeName: z.string().optional().meta({ description: "The Node that replaced the old one." }),
    })
    .optional()
    .meta({
      description: "Set when the Machine is deleted, or is about to be, so that its owner creates another one.",
    }),
  evidence: evidenceSchema.optional(),
  diagnostics: diagnosticsSchema.optional(),
  acCycle: acCycleSchema.optional(),
  timeline: z
    .array(
      z.object({ step: z.string(), time: z.string().meta({ format: "date-time" }), message: z.string().optional() }),
    )
    .max(200)
    .optional(),
});
/** The fields from which the next step is decided. */
export const bareMetalRemediationStateSchema = bareMetalRemediationStatusSchema.pick({
  stateVersion: true,
  attempt: true,
  outcome: true,
  node: true,
  machine: true,
  target: true,
  backup: true,
  installation: true,
  replacement: true,
  diagnostics: true,
  acCycle: true,
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
    { name: "Succeeded", type: "string", jsonPath: '.status.conditions[?(@.type=="Succeeded")].status' },
    { name: "Attempt", type: "integer", jsonPath: ".status.retryCount" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
    { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Processing")].reason' },
    { name: "Message", type: "string", jsonPath: '.status.conditions[?(@.type=="Processing")].message' },
    { name: "Cause", type: "string", jsonPath: ".status.evidence.message", priority: 1 },
  ],
};

const bareMetalRemediationTemplateSpecSchema = z.object({
  template: z.object({ spec: templateStrategySchema.prefault({}).meta({ default: {} }) }),
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
