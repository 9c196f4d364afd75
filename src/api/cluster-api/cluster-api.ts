import type { KubeObject, ObjectMeta } from "../../kube/resource.ts";
import { conditionOf, conditionsAt, fieldAt, flagAt, referenceAt, textAt } from "../schema/read-fields.ts";
import type { Node } from "../kubernetes/core.ts";
import type { Condition } from "../schema/meta.ts";
import { trimMeta } from "../kubernetes/trim.ts";
import { sharedText, shareTexts } from "../../runtime/text/shared-text.ts";

// Cluster API's Cluster and Machine, in versions v1beta1 and v1beta2. The strings are part of upstream's API.

export const CLUSTER_API_GROUP = "cluster.x-k8s.io";
/** The newest version first: the first one that the API server serves is used. */
export const CLUSTER_API_VERSIONS = ["v1beta2", "v1beta1"] as const;

/** On every object of a cluster: the name of the cluster. */
export const CLUSTER_NAME_LABEL = "cluster.x-k8s.io/cluster-name";
/** On a Machine, with any value: the Machine belongs to the control plane. */
const CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane";
/** On any object: controllers do not change the object, whatever the value of the annotation is. */
export const PAUSED_ANNOTATION = "cluster.x-k8s.io/paused";
/**
 * The value of the paused annotation that makes ironfence serve a MachineHealthCheck in place of Cluster API's own
 * controller, which skips paused objects.
 */
export const PAUSED_FOR_OTHERS = "ironfence.io";
/** On a Machine: health checks skip it. */
export const SKIP_REMEDIATION_ANNOTATION = "cluster.x-k8s.io/skip-remediation";
/** On a Machine: a user marks it as unhealthy, without waiting for a condition. */
export const REMEDIATE_MACHINE_ANNOTATION = "cluster.x-k8s.io/remediate-machine";

/** On an object made from a template: the template's name, and its `Kind.group`. */
export const CLONED_FROM_NAME = "cluster.x-k8s.io/cloned-from-name";
export const CLONED_FROM_GROUP_KIND = "cluster.x-k8s.io/cloned-from-groupkind";
/** On a Machine: the MachineDeployment that it belongs to. */
export const DEPLOYMENT_NAME_LABEL = "cluster.x-k8s.io/deployment-name";

/** The fields of a Machine of Cluster API or OKD that ironfence uses. */
export interface Machine extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  /** Empty for OKD, whose Machines belong to the cluster that stores them. */
  clusterName: string;
  providerID: string | undefined;
  infrastructureRef: { kind: string; name: string; namespace: string; group: string } | undefined;
  /** The Node of this Machine; undefined until there is one. It is kept when the Node is deleted. */
  nodeName: string | undefined;
  phase: string | undefined;
  /** A permanent failure. Cluster API 1.11 and newer set neither field. */
  failureReason: string | undefined;
  failureMessage: string | undefined;
  infrastructureReady: boolean;
  /** RFC 3339; undefined if it is not ready, or if the time is not known. */
  infrastructureReadySince: string | undefined;
  /** When OKD last changed its status (RFC 3339). Cluster API does not report this. */
  lastUpdated?: string;
  isControlPlane: boolean;
  /** The conditions in the current form (`metav1.Condition`); for OKD, in the form of OKD. */
  conditions: readonly Condition[];
  /** The conditions in Cluster API's older form, which uses the same types with other reasons. */
  v1beta1Conditions: readonly Condition[];
}

/** The fields of a Cluster of Cluster API that ironfence uses. */
export interface Cluster extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  /**
   * `spec.paused`, which pauses all objects of the cluster. The paused annotation pauses only the object that has it.
   */
  paused: boolean;
  infrastructureReady: boolean;
  infrastructureReadySince: string | undefined;
  controlPlaneInitialized: boolean;
  controlPlaneInitializedSince: string | undefined;
  conditions: readonly Condition[];
  v1beta1Conditions: readonly Condition[];
}

/** Reads a Machine of either version. */
export function readMachine(raw: KubeObject): Machine {
  const metadata = namespaced(raw);
  const conditions = readConditions(raw);
  const infrastructure = readReadiness(raw, conditions, INFRASTRUCTURE_READY);
  return {
    apiVersion: sharedText(raw.apiVersion),
    kind: raw.kind,
    metadata,
    clusterName: sharedText(textAt(raw, "spec", "clusterName") ?? metadata.labels?.[CLUSTER_NAME_LABEL] ?? ""),
    providerID: textAt(raw, "spec", "providerID"),
    infrastructureRef: readInfrastructureRef(raw, metadata.namespace),
    nodeName: textAt(raw, "status", "nodeRef", "name"),
    phase: textAt(raw, "status", "phase"),
    failureReason:
      textAt(raw, "status", "failureReason") ?? textAt(raw, "status", "deprecated", "v1beta1", "failureReason"),
    failureMessage:
      textAt(raw, "status", "failureMessage") ?? textAt(raw, "status", "deprecated", "v1beta1", "failureMessage"),
    infrastructureReady: infrastructure.is,
    infrastructureReadySince: infrastructure.since,
    isControlPlane: metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined,
    ...conditions,
  };
}

/**
 * Whether a Node with the name that a Machine reports can belong to that Machine. Cluster API finds the Node by its
 * providerID, so the two are equal if both exist. They differ if the kubeconfig leads to a cluster other than the
 * Machine's.
 */
export function mayBeNodeOf({ spec }: Pick<Node, "spec">, { providerID }: Pick<Machine, "providerID">): boolean {
  return providerID === undefined || spec.providerID === undefined || spec.providerID === providerID;
}

/** Reads a Cluster of either version. */
export function readCluster(raw: KubeObject): Cluster {
  const conditions = readConditions(raw);
  const infrastructure = readReadiness(raw, conditions, INFRASTRUCTURE_READY);
  const controlPlane = readReadiness(raw, conditions, CONTROL_PLANE_INITIALIZED);
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: namespaced(raw),
    paused: flagAt(raw, "spec", "paused") === true,
    infrastructureReady: infrastructure.is,
    infrastructureReadySince: infrastructure.since,
    controlPlaneInitialized: controlPlane.is,
    controlPlaneInitializedSince: controlPlane.since,
    ...conditions,
  };
}

/** The conditions of an object in the two forms that Cluster API has. */
export type ConditionForms = Pick<Machine, "conditions" | "v1beta1Conditions">;

/**
 * Each API version keeps the conditions of its own form in `status.conditions`, and those of the other form elsewhere.
 */
export function readConditions(raw: KubeObject): ConditionForms {
  return raw.apiVersion === `${CLUSTER_API_GROUP}/v1beta1`
    ? {
        conditions: conditionsAt(raw, "status", "v1beta2", "conditions"),
        v1beta1Conditions: conditionsAt(raw, "status", "conditions"),
      }
    : {
        conditions: conditionsAt(raw, "status", "conditions"),
        v1beta1Conditions: conditionsAt(raw, "status", "deprecated", "v1beta1", "conditions"),
      };
}

/** The fields that may report one part of readiness. */
interface ReadinessFields {
  /** The type of the condition, in both forms. */
  type: string;
  /** The name of the field in `status.initialization` of v1beta2. */
  initialization: string;
  /** The name of the field in `status` of v1beta1. */
  v1beta1Flag: string;
}

const INFRASTRUCTURE_READY: ReadinessFields = {
  type: "InfrastructureReady",
  initialization: "infrastructureProvisioned",
  v1beta1Flag: "infrastructureReady",
};

const CONTROL_PLANE_INITIALIZED: ReadinessFields = {
  type: "ControlPlaneInitialized",
  initialization: "controlPlaneInitialized",
  v1beta1Flag: "controlPlaneReady",
};

/** Upstream uses the condition. The other fields are for objects without that condition. */
function readReadiness(
  raw: KubeObject,
  { conditions, v1beta1Conditions }: ConditionForms,
  { type, initialization, v1beta1Flag }: ReadinessFields,
): { is: boolean; since: string | undefined } {
  const condition = conditionOf(conditions, type) ?? conditionOf(v1beta1Conditions, type);
  if (condition !== undefined) {
    const is = condition.status === "True";
    return { is, since: is && condition.lastTransitionTime !== "" ? condition.lastTransitionTime : undefined };
  }
  const flag = flagAt(raw, "status", "initialization", initialization) ?? flagAt(raw, "status", v1beta1Flag);
  return { is: flag === true, since: undefined };
}

/** The reference contains an `apiVersion` in v1beta1, and only an `apiGroup` in v1beta2. */
function readInfrastructureRef(raw: KubeObject, namespace: string): Machine["infrastructureRef"] {
  const found = referenceAt(raw, "spec", "infrastructureRef");
  if (found === undefined) return undefined;
  const group = textAt(fieldAt(raw, "spec", "infrastructureRef"), "apiGroup") ?? found.apiVersion?.split("/", 1)[0];
  const { kind, name } = found;
  return shareTexts({ kind, name, namespace: found.namespace ?? namespace, group: group ?? "" });
}

function namespaced({ metadata }: KubeObject): ObjectMeta & { namespace: string } {
  return { ...trimMeta(metadata), namespace: metadata.namespace ?? "" };
}
