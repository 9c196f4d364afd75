import type { KubeObject, ObjectMeta } from "../../kube/resource.ts";
import { conditionsAt, flagAt, referenceAt, textAt } from "../schema/read-fields.ts";
import type { Condition, ObjectReference } from "../schema/meta.ts";
import { trimMeta } from "../kubernetes/trim.ts";

// Metal3's BareMetalHost and Metal3Machine. The strings are part of upstream's API.

export const METAL3_GROUP = "metal3.io";
export const METAL3_VERSIONS = ["v1alpha1"] as const;
/** Cluster API's group of infrastructure kinds; Metal3 serves Metal3Machine, Metal3Remediation and others in it. */
export const INFRASTRUCTURE_GROUP = "infrastructure.cluster.x-k8s.io";
export const INFRASTRUCTURE_VERSIONS = ["v1beta2", "v1beta1"] as const;

/** On a Metal3Machine or an OKD Machine: `namespace/name` of its host. */
export const BARE_METAL_HOST_ANNOTATION = "metal3.io/BareMetalHost";
/** On a Secret: it contains the credentials of a BMC. The operator of a BareMetalHost sets this label. */
export const BMC_SECRET_LABEL = "environment.metal3.io";
export const BMC_SECRET_VALUE = "baremetal";
/** On a host: its operator detaches it, and reports this in operationalStatus. */
const DETACHED_ANNOTATION = "baremetalhost.metal3.io/detached";
/** On a host: its operator does not reconcile it. Ironic still controls its power. */
const HOST_PAUSED_ANNOTATION = "baremetalhost.metal3.io/paused";
/**
 * On a host, followed by a key that each writer chooses: the host is rebooted, or is kept off while an annotation with
 * `mode: hard` is present.
 */
export const REBOOT_ANNOTATION_PREFIX = "reboot.metal3.io/";

/** `metal3.io/v1alpha1` BareMetalHost, with the fields that ironfence uses and all annotations. */
export interface BareMetalHost extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  bmc: {
    address: string | undefined;
    /** Secret with `username` and `password` in the host's namespace. */
    credentialsName: string | undefined;
    disableCertificateVerification: boolean;
  };
  /** The power state that its operator enforces. */
  online: boolean;
  consumerRef: (ObjectReference & { kind: string; name: string }) | undefined;
  externallyProvisioned: boolean;
  /** The operator never powers it off, so an Off that it reports cannot be trusted. */
  disablePowerOff: boolean;
  /** Whether the host has the annotation. It is detached only when operationalStatus is `detached`. */
  detached: boolean;
  paused: boolean;
  /** The state that the operator read last. By itself it proves nothing. */
  poweredOn: boolean | undefined;
  provisioningState: string | undefined;
  operationalStatus: string | undefined;
  errorType: string | undefined;
  errorMessage: string | undefined;
  /** When the status was last updated (RFC 3339). */
  lastUpdated: string | undefined;
  serialNumber: string | undefined;
  conditions: readonly Condition[];
}

export function readBareMetalHost(raw: KubeObject): BareMetalHost {
  const { metadata } = raw;
  const { annotations = {} } = metadata;
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: { ...trimMeta(metadata), namespace: metadata.namespace ?? "" },
    bmc: {
      address: textAt(raw, "spec", "bmc", "address"),
      credentialsName: textAt(raw, "spec", "bmc", "credentialsName"),
      disableCertificateVerification: flagAt(raw, "spec", "bmc", "disableCertificateVerification") === true,
    },
    online: flagAt(raw, "spec", "online") === true,
    consumerRef: referenceAt(raw, "spec", "consumerRef"),
    externallyProvisioned: flagAt(raw, "spec", "externallyProvisioned") === true,
    disablePowerOff: flagAt(raw, "spec", "disablePowerOff") === true,
    detached: DETACHED_ANNOTATION in annotations,
    paused: HOST_PAUSED_ANNOTATION in annotations,
    poweredOn: flagAt(raw, "status", "poweredOn"),
    provisioningState: textAt(raw, "status", "provisioning", "state"),
    operationalStatus: textAt(raw, "status", "operationalStatus"),
    errorType: textAt(raw, "status", "errorType"),
    errorMessage: textAt(raw, "status", "errorMessage"),
    lastUpdated: textAt(raw, "status", "lastUpdated"),
    serialNumber: textAt(raw, "status", "hardware", "systemVendor", "serialNumber"),
    conditions: conditionsAt(raw, "status", "conditions"),
  };
}

/** The fields of a Metal3Machine that ironfence uses. */
export interface Metal3Machine extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  providerID: string | undefined;
  /** The BareMetalHost that it uses, from its annotation. */
  host: { namespace: string; name: string } | undefined;
}

/** Reads a Metal3Machine of either version. */
export function readMetal3Machine(raw: KubeObject): Metal3Machine {
  const { metadata } = raw;
  const namespace = metadata.namespace ?? "";
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: { ...trimMeta(metadata), namespace },
    providerID: textAt(raw, "spec", "providerID"),
    host: parseHostName(metadata.annotations?.[BARE_METAL_HOST_ANNOTATION]),
  };
}

/** Parses `namespace/name`; undefined for any other text. */
export function parseHostName(text: string | undefined): { namespace: string; name: string } | undefined {
  const [namespace, name, more] = (text ?? "").split("/");
  return namespace && name && more === undefined ? { namespace, name } : undefined;
}

/** The beginning of each annotation by which ironfence keeps a host off. The UID of the remediation follows. */
export const POWER_OFF_ANNOTATION_PREFIX = `${REBOOT_ANNOTATION_PREFIX}ironfence-`;

/** The annotation by which a remediation keeps a host off. */
export function powerOffAnnotation(owner: { uid: string }): string {
  return `${POWER_OFF_ANNOTATION_PREFIX}${owner.uid}`;
}
