import type { KubeObject } from "../../kube/resource.ts";
import type { Machine } from "../cluster-api/cluster-api.ts";
import { conditionsAt, textAt } from "../schema/read-fields.ts";
import { trimMeta } from "../kubernetes/trim.ts";

// OKD's Machine (machine.openshift.io/v1beta1). The strings are upstream's contract.

export const OKD_MACHINE_GROUP = "machine.openshift.io";
export const OKD_MACHINE_VERSIONS = ["v1beta1"] as const;
/** How they are served. */
export const OKD_MACHINES = { group: OKD_MACHINE_GROUP, kind: "Machine", versions: OKD_MACHINE_VERSIONS } as const;

/** On a Machine: `master` or `worker`, among others that users choose. */
const OKD_MACHINE_ROLE_LABEL = "machine.openshift.io/cluster-api-machine-role";
/** On a Machine: what it is used for; the installer sets it to the same as the role. */
const OKD_MACHINE_TYPE_LABEL = "machine.openshift.io/cluster-api-machine-type";
/** On a Machine: the health check's half of OKD's external remediation asks the other half for power fencing. */
export const EXTERNAL_REMEDIATION_ANNOTATION = "host.metal3.io/external-remediation";

/** Phases in which the host of a Machine is there. */
const PROVISIONED_PHASES: readonly (string | undefined)[] = ["Provisioned", "Running"];

/** Reads an OKD Machine into the shape of Cluster API's; what OKD does not know is undefined or empty. */
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
    // Either label keeps a Machine from being deleted: one may have been taken off, or mistyped.
    isControlPlane: [OKD_MACHINE_ROLE_LABEL, OKD_MACHINE_TYPE_LABEL].some((key) => metadata.labels?.[key] === "master"),
    conditions: conditionsAt(raw, "status", "conditions"),
    v1beta1Conditions: [],
  };
}
