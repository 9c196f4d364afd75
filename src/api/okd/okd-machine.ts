import type { KubeObject } from "../../kube/resource.ts";
import type { Machine } from "../cluster-api/cluster-api.ts";
import { conditionsAt, textAt } from "../schema/read-fields.ts";
import { trimMeta } from "../kubernetes/trim.ts";

// OKD's Machine (machine.openshift.io/v1beta1). The strings are part of upstream's API.

export const OKD_MACHINE_GROUP = "machine.openshift.io";
export const OKD_MACHINE_VERSIONS = ["v1beta1"] as const;
/** The group, kind and versions by which the API server serves them. */
export const OKD_MACHINES = { group: OKD_MACHINE_GROUP, kind: "Machine", versions: OKD_MACHINE_VERSIONS } as const;

/** On a Machine: `master` or `worker`, among others that users choose. */
const OKD_MACHINE_ROLE_LABEL = "machine.openshift.io/cluster-api-machine-role";
/** On a Machine: its type. The installer sets it to the same value as the role. */
const OKD_MACHINE_TYPE_LABEL = "machine.openshift.io/cluster-api-machine-type";
/** On a Machine: the health check requests power fencing by another controller (external remediation of OKD). */
export const EXTERNAL_REMEDIATION_ANNOTATION = "host.metal3.io/external-remediation";

/** The phases in which a Machine has a host. */
const PROVISIONED_PHASES: readonly (string | undefined)[] = ["Provisioned", "Running"];

const READY_IN_BOOT = "ready-in-boot=";

/**
 * The value of the annotation with which ironfence's health check requests power fencing. OKD checks only whether the
 * annotation exists.
 *
 * @param readyInBoot the boot in which the node was Ready, empty if it was not Ready; undefined if that is not known.
 */
export function requestValue(readyInBoot: string | undefined): string {
  return readyInBoot === undefined ? "" : `${READY_IN_BOOT}${readyInBoot}`;
}

/** The same from the annotation; undefined if the request has no such value. */
export function readyInBootOf({ metadata }: Pick<KubeObject, "metadata">): string | undefined {
  const value = metadata.annotations?.[EXTERNAL_REMEDIATION_ANNOTATION];
  return value?.startsWith(READY_IN_BOOT) === true ? value.slice(READY_IN_BOOT.length) : undefined;
}

/** Reads a Machine of OKD into the type for Cluster API. Fields that OKD does not have are undefined or empty. */
export function readOkdMachine(raw: KubeObject): Machine {
  const { metadata } = raw;
  const phase = textAt(raw, "status", "phase");
  const lastUpdated = textAt(raw, "status", "lastUpdated");
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: { ...trimMeta(metadata), namespace: metadata.namespace ?? "" },
    clusterName: "",
    providerID: textAt(raw, "spec", "providerID"),
    infrastructureRef: undefined,
    nodeName: textAt(raw, "status", "nodeRef", "name"),
    phase,
    failureReason: textAt(raw, "status", "errorReason"),
    failureMessage: textAt(raw, "status", "errorMessage"),
    infrastructureReady: PROVISIONED_PHASES.includes(phase),
    infrastructureReadySince: undefined,
    ...(lastUpdated !== undefined && { lastUpdated }),
    // Either label protects a Machine from deletion, because one of them may be missing or misspelled.
    isControlPlane: [OKD_MACHINE_ROLE_LABEL, OKD_MACHINE_TYPE_LABEL].some((key) => metadata.labels?.[key] === "master"),
    conditions: conditionsAt(raw, "status", "conditions"),
    v1beta1Conditions: [],
  };
}
