import { NODE_NAME } from "../api/names/annotations.ts";
import type { BareMetalRemediation } from "../api/ironfence/bare-metal-remediation.ts";
import type { Machine } from "../api/cluster-api/cluster-api.ts";
import { clusterRefSchema } from "../api/schema/meta.ts";
import { CLUSTER_API_GROUP } from "../api/cluster-api/cluster-api.ts";
import { OKD_MACHINE_GROUP } from "../api/okd/okd-machine.ts";
import type { ClusterRef } from "../clusters/workload-clusters.ts";
import type { OwnerReference, ResourceType } from "../kube/resource.ts";

/**
 * A Machine of Cluster API or OKD that asked for a remediation. The UID distinguishes it from another Machine with the
 * same name.
 */
export interface MachineRef {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  uid: string;
}

/** A Cluster, with the facts that were recorded with it in the status. */
export interface KnownCluster extends ClusterRef {
  /** Distinguishes it from another cluster that its kubeconfig may point to later (`readClusterUid`). */
  uid?: string | undefined;
  /** Whether it is the cluster that the agent runs in: a management cluster that manages itself. */
  own?: boolean | undefined;
}

/** The node or Machine that a remediation is about. */
export interface Subject {
  /** Undefined for a Machine that has not become a Node. */
  nodeName: string | undefined;
  /** The Cluster of Cluster API that the node belongs to; undefined for the cluster that the agent runs in. */
  cluster: KnownCluster | undefined;
  /** Undefined if the remediation names only a node. */
  machine: MachineRef | undefined;
}

/** The subject for a node of the agent's own cluster, without a Machine. */
export function localNode(nodeName: string): Subject {
  return { nodeName, cluster: undefined, machine: undefined };
}

/**
 * The subject of a remediation. A stored subject takes precedence, because an annotation may be edited while a host is
 * off. Otherwise it is the node that the annotation names, or the node with the name of the remediation. A remediation
 * of a Machine has the name of the Machine, which an unrelated node may have, too. Only the live Machine shows its node
 * and cluster, so the subject has neither until the Machine was read.
 */
export function subjectOf({ metadata, status }: BareMetalRemediation): Subject {
  const { node, machine } = status ?? {};
  // If another version of ironfence wrote the cluster in a form that cannot be read, the node is not known.
  const isReadable = node?.cluster === undefined || clusterRefSchema.safeParse(node.cluster).success;
  if (!isReadable) return { nodeName: undefined, cluster: undefined, machine };
  if (node !== undefined || machine !== undefined) return { nodeName: node?.name, cluster: node?.cluster, machine };
  const [owner] = machineOwners(metadata.ownerReferences);
  const named = metadata.annotations?.[NODE_NAME];
  if (owner === undefined) return localNode(named ?? metadata.name);
  const { apiVersion, kind, name, uid } = owner;
  const ref = { apiVersion, kind, namespace: metadata.namespace ?? "", name, uid };
  // The node of an OKD Machine is in the cluster that stores the Machine, and the health check has named the node.
  const nodeName = groupOf(apiVersion) === OKD_MACHINE_GROUP ? named : undefined;
  return { nodeName, cluster: undefined, machine: ref };
}

/** Whether the live Machine must be read first, because nothing else identifies the node. */
export function isUnresolved(remediation: BareMetalRemediation): boolean {
  if (remediation.status?.machine !== undefined) return false;
  const { nodeName, machine } = subjectOf(remediation);
  return machine !== undefined && nodeName === undefined;
}

/** The Cluster that the node of a Machine belongs to; undefined for the cluster that the agent runs in. */
export function clusterOf({ metadata, clusterName }: Machine): ClusterRef | undefined {
  return clusterName === "" ? undefined : { namespace: metadata.namespace, name: clusterName };
}

/** The references to Machines among an object's owners. */
export function machineOwners(owners: readonly OwnerReference[] | undefined): OwnerReference[] {
  return (owners ?? []).filter(
    ({ apiVersion, kind }) =>
      kind === "Machine" && [CLUSTER_API_GROUP, OKD_MACHINE_GROUP].includes(groupOf(apiVersion)),
  );
}

/** The resource type of a Machine, in the version of its reference. */
export function machineResource({ apiVersion, kind }: Pick<MachineRef, "apiVersion" | "kind">): ResourceType {
  const [group = "", version = ""] = apiVersion.split("/");
  return { group, version, kind, plural: "machines", namespaced: true };
}

/**
 * The text that identifies a cluster; empty for the cluster that the agent runs in, also if it is named as a workload
 * cluster.
 */
export function clusterKey(cluster: KnownCluster | undefined): string {
  return cluster === undefined || cluster.own === true ? "" : `${cluster.namespace}/${cluster.name}`;
}

/** The name of a node together with its cluster: a node of the same name in another cluster is another node. */
export interface NodeId {
  cluster: KnownCluster | undefined;
  name: string;
}

/** The text that identifies a node in all clusters; only its name for a node of the cluster that the agent runs in. */
export function nodeKey({ cluster, name }: NodeId): string {
  const key = clusterKey(cluster);
  return key === "" ? name : `${key}/${name}`;
}

/** Parses the result of `nodeKey`. Names of objects contain no slash. */
export function parseNodeKey(text: string): NodeId {
  const [first = "", clusterName, name] = text.split("/");
  if (clusterName === undefined || name === undefined) return { cluster: undefined, name: text };
  return { cluster: { namespace: first, name: clusterName }, name };
}

export function groupOf(apiVersion: string): string {
  return apiVersion.split("/", 1)[0] ?? "";
}
