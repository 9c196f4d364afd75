import * as z from "zod";
import type { CustomKind } from "../schema/kind.ts";
import type { KubeObject } from "../../kube/resource.ts";
import { clusterRefSchema, conditionsSchema, nameSchema, timeSchema } from "../schema/meta.ts";
import { DURATION_PATTERN } from "../../runtime/duration.ts";

const deviceSchema = z.object({
  address: z.string().min(1).max(2048).meta({
    description:
      "The BMC, for example redfish://bmc-3.example/redfish/v1/Systems/1. The path names the System. It may be omitted if the BMC has only one. Other forms are ipmi://HOST, driver://HOST/PATH and snmp://HOST/OUTLET.",
  }),
  allowPlainHTTP: z.boolean().optional().meta({
    description: "Allow an address with plain HTTP. The password is then sent unencrypted, and answers can be forged.",
  }),
  credentialsSecretRef: z.object({ name: nameSchema }).meta({
    description:
      "A Secret of this namespace with keys username and password, or for a driver server tls.crt and tls.key, and kg if an IPMI BMC has its own key (K_G). For SNMP also privPassword if it is not the password, or only community for v2c. Its annotation ironfence.io/allowed-addresses lists the addresses that it may be sent to.",
  }),
  level: z.int().min(1).max(9).default(1).meta({
    description: "Levels are tried from the lowest to the highest; all devices of one level must prove the host off.",
  }),
  tls: z
    .object({
      caSecretRef: z
        .object({
          name: nameSchema,
          key: z
            .string()
            .max(253)
            .regex(/^[-._a-zA-Z0-9]+$/)
            .default("ca.crt"),
        })
        .optional()
        .meta({ description: "A Secret of this namespace with the PEM bundle that signed the BMC's certificate." }),
      sha256Fingerprint: z
        .string()
        .regex(/^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$/)
        .optional()
        .meta({
          description:
            "SHA-256 of the BMC's certificate, in hex, with or without colons. Only this certificate is trusted.",
        }),
      insecureSkipVerify: z.boolean().default(false).meta({
        description: "Trust any certificate. An attacker between ironfence and the BMC can then read its password.",
      }),
      minVersion: z.enum(["1.0", "1.1", "1.2", "1.3"]).optional().meta({
        description:
          "Oldest version of TLS that is accepted; the default is 1.2. A lower version, for BMCs that support nothing newer, also accepts weak ciphers, short keys and finite-field Diffie-Hellman.",
      }),
    })
    .optional(),
  redfish: z
    .object({
      powerChassis: z
        .array(
          z
            .string()
            .regex(/^\/redfish\/v1\/[\x21-\x7e]+$/)
            .max(512),
        )
        .max(4)
        .optional()
        .meta({
          description:
            "Paths of the Chassis that have to read Off for the host to be off, for example /redfish/v1/Chassis/1. With an empty list, no Chassis counts. The default is every Chassis that the System links to and that contains only this System.",
          "x-kubernetes-list-type": "atomic",
        }),
    })
    .optional()
    .meta({ description: "For Redfish only." }),
  ipmi: z
    .object({
      cipherSuites: z
        .array(z.literal([1, 2, 3, 15, 16, 17]))
        .min(1)
        .max(6)
        .optional()
        .meta({
          description:
            "Cipher suites to try, in this order. The default is 17, then 3. Suites 2 and 16 do not encrypt. With 1 and 15, an attacker who can send packets in the name of the BMC can make a running host look off.",
          "x-kubernetes-list-type": "atomic",
        }),
      bootMode: z.enum(["UEFI", "Legacy"]).optional().meta({
        description: "Firmware that a network boot is ordered for. The default is UEFI.",
      }),
    })
    .optional()
    .meta({ description: "For IPMI only." }),
  snmp: z
    .object({
      version: z.enum(["v3", "v2c"]).default("v3").meta({
        description:
          "SNMPv2c sends the community unencrypted, and anyone on the network can forge an Off. It needs allowPlainText.",
      }),
      allowPlainText: z.boolean().optional().meta({ description: "Allow v2c." }),
      securityLevel: z.enum(["authPriv", "authNoPriv"]).default("authPriv").meta({
        description: "With authNoPriv, messages are signed and not encrypted.",
      }),
      authProtocol: z.enum(["SHA-512", "SHA-384", "SHA-256", "SHA-224", "SHA", "MD5"]).default("SHA-256").meta({
        description: "How messages are signed. MD5 and SHA are for PDUs that support nothing newer.",
      }),
      privProtocol: z.enum(["AES", "AES-256", "AES-256-C"]).default("AES").meta({
        description:
          "How messages are encrypted: AES has 128 bits. The two with 256 bits differ in how the key is extended.",
      }),
      mib: z
        .enum(["APC-rPDU2", "APC-rPDU", "Raritan", "Eaton", "Vertiv", "ServerTech-3", "ServerTech-4"])
        .optional()
        .meta({
          description: "The vendor's table of outlets. The default follows from the sysObjectID of the PDU.",
        }),
    })
    .optional()
    .meta({ description: "For outlets of PDUs (SNMP) only." }),
  timeouts: z
    .object({
      connect: z.string().regex(new RegExp(DURATION_PATTERN, "u")).default("5s"),
      call: z.string().regex(new RegExp(DURATION_PATTERN, "u")).default("15s"),
    })
    .optional()
    .meta({ description: "Deadlines of this device's calls." }),
});
export type Device = z.infer<typeof deviceSchema>;

const fencingTargetSpecSchema = z.object({
  nodeName: nameSchema.meta({ description: "The node that these devices power." }),
  clusterRef: clusterRefSchema.optional().meta({
    description:
      "The Cluster of Cluster API that the node belongs to. Absent for the cluster that the agent runs in. A node of the same name in another cluster is another node.",
  }),
  maintenance: z
    .boolean()
    .default(false)
    .meta({ description: "While this is true, no power order is sent, neither Off nor On." }),
  identity: z
    .object({
      systemUUID: z
        .string()
        .regex(/^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/)
        .optional()
        .meta({ description: "SMBIOS system UUID, in either byte order." }),
      serialNumber: z.string().min(1).max(256).optional(),
      verification: z.enum(["Required", "None"]).default("Required").meta({
        description:
          "None also fences a host whose BMC reports neither UUID nor serial number: a swapped cable then powers off the wrong host. A mismatch is still refused.",
      }),
    })
    .prefault({})
    .meta({
      default: {},
      description:
        "The identity that the host must have. If neither value is given, the systemUUID of the Ready node is pinned at the first probe.",
    }),
  devices: z.array(deviceSchema).min(1).max(8).meta({ "x-kubernetes-list-type": "atomic" }),
});
export type FencingTargetSpec = z.infer<typeof fencingTargetSpecSchema>;

const fencingTargetStatusSchema = z.object({
  observedGeneration: z.int().optional(),
  powerState: z.enum(["Off", "On", "Changing", "Unknown"]).optional(),
  lastProbeTime: timeSchema.optional(),
  certificateNotAfter: timeSchema.optional().meta({
    description:
      "When the first of the TLS certificates that probes have read from the devices expires. Absent if no device has shown one.",
  }),
  identity: z
    .object({
      nodeName: z.string().meta({ description: "The node that it was pinned from. It is not used for another node." }),
      clusterRef: clusterRefSchema
        .optional()
        .meta({ description: "The cluster of that node, as in the spec at that time." }),
      systemUUID: z.string(),
    })
    .optional()
    .meta({ description: "Pinned from the node while it was Ready." }),
  enrolment: z
    .object({
      time: timeSchema.meta({
        description: "When the enrolment showed that the host loses its power by these outlets alone.",
      }),
      enrolledBy: z.string().max(253).optional().meta({
        description: "The user who asked for the enrolment, by the name that the API server knows.",
      }),
      nodeName: z.string().meta({ description: "The node that lost its power." }),
      clusterRef: clusterRefSchema
        .optional()
        .meta({ description: "The cluster of that node, as in the spec at that time." }),
      nodeUID: z.string().meta({ description: "The UID of its Node object at that time." }),
      systemUUID: z.string().meta({ description: "The hardware that the node ran on." }),
      bootIDBefore: z.string().meta({ description: "The boot that ended when all outlets were off." }),
      bootIDAfter: z.string().meta({ description: "The boot that began when they were on again." }),
      specDigest: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .meta({
          description:
            "SHA-256 of the fields of the spec that the enrolment depends on: the outlets, nodeName, clusterRef and identity.",
        }),
      outlets: z
        .array(
          z.object({
            address: z.string().max(2048).meta({ description: "Its address in the spec." }),
            pdu: z.string().max(256).meta({ description: "What the PDU reports as its serial number or engine ID." }),
            outlet: z.string().max(64).meta({ description: "Its number on the PDU." }),
            label: z.string().max(256).optional().meta({ description: "The name that the outlet has on the PDU." }),
            metered: z.literal(true).optional().meta({
              description:
                "The PDU measures the power of the outlet. It must continue to do so, because the outlet counts as off only at 0 W.",
            }),
          }),
        )
        .min(1)
        .max(8)
        .meta({ "x-kubernetes-list-type": "atomic", description: "The outlets, in the order of spec.devices." }),
    })
    .optional()
    .meta({
      description:
        "The outlets of PDUs that feed this host, as ironfence enroll has shown. It counts only while nothing changes: the outlets, the node and the identity in the spec, the hardware, and what the PDUs report.",
    }),
  owner: z
    .object({
      uid: z.string(),
      kind: z.string(),
      namespace: z.string(),
      name: z.string(),
      since: timeSchema,
      stateVersion: z.int().min(1).optional().meta({
        description:
          "The state version of the agent that claimed the host for this remediation. Absent for agent 0.1.0.",
      }),
    })
    .optional()
    .meta({ description: "The one remediation that may send power orders to this host now." }),
  etcdMember: z
    .object({
      nodeName: z
        .string()
        .meta({ description: "The node for which this was recorded. It does not apply to another node." }),
      clusterRef: clusterRefSchema
        .optional()
        .meta({ description: "The cluster of that node, as in the spec at that time." }),
      role: z
        .enum(["etcd", "control-plane"])
        .meta({ description: "The role label that shows that the node has a member." }),
    })
    .optional()
    .meta({
      description:
        "The node has a member of etcd, according to its labels. If its Node is deleted, the member counts as down until the node joins again. Remove this field, or the target, if the member was removed from etcd.",
    }),
  lastReboot: z
    .object({
      time: timeSchema,
      nodeUID: z.string().optional(),
      offConfirmedAt: timeSchema,
      bootID: z.string().optional().meta({ description: "The boot that was ended by this reboot." }),
    })
    .optional()
    .meta({ description: "The last reboot in which the host was proven off and then ordered on." }),
  outcomes: z
    .array(
      z.object({
        time: timeSchema.meta({ description: "When the remediation released the host." }),
        startTime: timeSchema.optional().meta({ description: "When the remediation was created." }),
        result: z.enum(["Succeeded", "Failed", "TimedOut", "CalledOff"]),
        reason: z.string(),
        message: z.string().max(256),
        cause: z.string().max(512).optional().meta({
          description: "Why the host died, if its BMC showed it: `status.evidence` of the remediation.",
        }),
        attempts: z.int().min(1).meta({ description: "Power cycles that were begun." }),
        remediation: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
      }),
    )
    .max(10)
    .optional()
    .meta({
      "x-kubernetes-list-type": "atomic",
      description:
        "The results of the last remediations of this host, the newest first. They outlive the remediations.",
    }),
  offProof: z
    .object({
      time: timeSchema.meta({
        description: "When the second reading was made. A proof is valid for some seconds.",
      }),
      nodeUID: z.string(),
      bootID: z.string().optional(),
      notReadySince: timeSchema.meta({
        description: "The outage that the proof belongs to: when the Ready condition of the node changed.",
      }),
    })
    .optional()
    .meta({
      description:
        "Two readings in a row were Off while the node was not Ready, and the identity of the host was verified. Written if a health check uses it. The next reading that is not Off removes it, and so does a remediation that claims the host.",
    }),
  onInBoot: z.string().optional().meta({
    description:
      "The boot of the Ready node in which a probe last read the host On. An early off proof needs such a reading of the same boot. Written if a health check uses it. The first probe after an edit removes it unless it reads On. Two probes more than 2 minutes apart that read Off while the node is Ready remove it too.",
  }),
  earlyOffProof: z
    .object({
      time: timeSchema.meta({ description: "When the host was last read Off. A proof is valid for 5 s." }),
      nodeUID: z.string(),
      bootID: z.string(),
      leaseUID: z.string(),
      leaseResourceVersion: z.string().meta({
        description:
          "The version of the lease of the node, which was not renewed for longer than a live kubelet takes.",
      }),
    })
    .optional()
    .meta({
      description:
        "Two readings at least 1 s apart were Off while the node was still Ready and did not renew its lease any more, and the identity of the host was verified. Written if a health check uses it, and removed within seconds.",
    }),
  wrongHost: z
    .object({
      time: timeSchema,
      generation: z.int().meta({
        description: "The generation of the target at that time. The finding counts until the spec is edited.",
      }),
    })
    .optional()
    .meta({
      description:
        "A node renewed its lease although its host was proven off, so its BMC may be that of another host. Until the spec is edited, the agent makes no early off proof of this target.",
    }),
  conditions: conditionsSchema.optional(),
});
export type FencingTargetStatus = z.infer<typeof fencingTargetStatusSchema>;
export type OffProof = NonNullable<FencingTargetStatus["offProof"]>;
export type EarlyOffProof = NonNullable<FencingTargetStatus["earlyOffProof"]>;
export type Enrolment = NonNullable<FencingTargetStatus["enrolment"]>;
export type TargetOutcome = NonNullable<FencingTargetStatus["outcomes"]>[number];

/** `ironfence.io/v1alpha1` FencingTarget. */
export interface FencingTarget extends KubeObject {
  spec: FencingTargetSpec;
  status?: FencingTargetStatus;
}

export const FENCING_TARGETS: CustomKind = {
  group: "ironfence.io",
  version: "v1alpha1",
  kind: "FencingTarget",
  plural: "fencingtargets",
  singular: "fencingtarget",
  namespaced: true,
  shortNames: ["ft"],
  categories: ["ironfence"],
  description: "The devices that can power one node off and on. It is used only in the namespace of the agent.",
  spec: fencingTargetSpecSchema,
  status: fencingTargetStatusSchema,
  printerColumns: [
    { name: "Node", type: "string", jsonPath: ".spec.nodeName" },
    { name: "Power", type: "string", jsonPath: ".status.powerState" },
    { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: "Probed", type: "date", jsonPath: ".status.lastProbeTime" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ],
};
