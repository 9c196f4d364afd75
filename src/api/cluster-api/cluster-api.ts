import type { KubeObject, ObjectMeta } from "../../kube/resource.ts";
import { conditionOf, conditionsAt, fieldAt, flagAt, referenceAt, textAt } from "../schema/read-fields.ts";
import type { Node } from "../kubernetes/core.ts";
import type { Condition } from "../schema/meta.ts";
import { trimMeta } from "../kubernetes/trim.ts";

// Cluster API's Cluster and Machine, of v1beta1 and v1beta2 alike. The strings are upstream's contract.

export const CLUSTER_API_GROUP = "cluster.x-k8s.io";
/** The newest first: what is asked for is the first one served. */
export const CLUSTER_API_VERSIONS = ["v1beta2", "v1beta1"] as const;

/** On every object of a cluster: the cluster's name. */
export const CLUSTER_NAME_LABEL = "cluster.x-k8s.io/cluster-name";
/** On a Machine: it belongs to the control plane, whatever the label's value. */
const CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane";
/** On any object: controllers leave it alone, whatever the annotation's value. */
export const PAUSED_ANNOTATION = "cluster.x-k8s.io/paused";
/** Its value on a MachineHealthCheck that ironfence serves in place of Cluster API's own controller, which sees it paused. */
export const PAUSED_FOR_OTHERS = "ironfence.io";
/** On a Machine: health checks do not look at it. */
export const SKIP_REMEDIATION_ANNOTATION = "cluster.x-k8s.io/skip-remediation";
/** On a Machine: unhealthy at once, because a user says so. */
export const REMEDIATE_MACHINE_ANNOTATION = "cluster.x-k8s.io/remediate-machine";

/** On an object made from a template: the template's name, and its `Kind.group`. */
export const CLONED_FROM_NAME = "cluster.x-k8s.io/cloned-from-name";
export const CLONED_FROM_GROUP_KIND = "cluster.x-k8s.io/cloned-from-groupkind";
/** On a Machine: the MachineDeployment that it is of. */
export const DEPLOYMENT_NAME_LABEL = "cluster.x-k8s.io/deployment-name";

/** A Machine of Cluster API or of OKD, as far as ironfence looks at it. */
export interface Machine extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  /** Empty for OKD, whose machines are of the cluster that they are objects of. */
  clusterName: string;
  providerID: string | undefined;
  infrastructureRef: { kind: string; name: string; namespace: string; group: string } | undefined;
  /** The Node that it has become; undefined before that. It stays when the Node is gone. */
  nodeName: string | undefined;
  phase: string | undefined;
  /** What has failed permanently; Cluster API 1.11 and newer set neither. */
  failureReason: string | undefined;
  failureMessage: string | undefined;
  infrastructureReady: boolean;
  /** RFC 3339; undefined if it is not ready, or if the time is not known. */
  infrastructureReadySince: string | undefined;
  /** RFC 3339; when OKD last changed its status. Cluster API does not tell. */
  lastUpdated?: string;
  isControlPlane: boolean;
  /** Of the current form (`metav1.Condition`); OKD's own for its machines. */
  conditions: readonly Condition[];
  /** Of Cluster API's older form, which has conditions by the same names with other reasons. */
  v1beta1Conditions: readonly Condition[];
}

/** A Cluster of Cluster API, as far as ironfence looks at it. */
export interface Cluster extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  /** By its spec. The annotation of that name on other objects is each object's own. */
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
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata,
    clusterName: textAt(raw, "spec", "clusterName") ?? metadata.labels?.[CLUSTER_NAME_LABEL] ?? "",
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
 * Whether a Node of the name that a Machine gives can be the Machine's: it is by its providerID that Cluster API finds a Machine's
 * Node, so where both have one it is the same. The kubeconfig may lead to another cluster than the Machine's.
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

/** Either version holds the conditions of its own form, and those of the other form in a corner. */
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

/** Where one fact of readiness may lie. */
interface ReadinessFields {
  /** Of the condition, in both forms. */
  type: string;
  /** In `status.initialization` of v1beta2. */
  initialization: string;
  /** In `status` of v1beta1. */
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

/** Upstream uses the condition; the flags are for objects without it. */
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

/** v1beta1 names the version too, v1beta2 the group alone. */
function readInfrastructureRef(raw: KubeObject, namespace: string): Machine["infrastructureRef"] {
  const found = referenceAt(raw, "spec", "infrastructureRef");
  if (found === undefined) return undefined;
  const group = textAt(fieldAt(raw, "spec", "infrastructureRef"), "apiGroup") ?? found.apiVersion?.split("/", 1)[0];
  return { kind: found.kind, name: found.name, namespace: found.namespace ?? namespace, group: group ?? "" };
}

function namespaced({ metadata }: KubeObject): ObjectMeta & { namespace: string } {
  return { ...trimMeta(metadata), namespace: metadata.namespace ?? "" };
}
