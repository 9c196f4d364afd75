import type { ClusterRef } from "../clusters/workload-clusters.ts";

/** A Machine, of Cluster API or of OKD, by which a remediation was asked for. The UID tells it from a namesake. */
export interface MachineRef {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  uid: string;
}

/** What a remediation is about. */
export interface Subject {
  /** Undefined for a Machine that has not become a Node. */
  nodeName: string | undefined;
  /** The Cluster of Cluster API whose Node it is; undefined for the cluster that the agent lives in. */
  cluster: ClusterRef | undefined;
  /** Undefined where a Node alone was named. */
  machine: MachineRef | undefined;
}

/** A node of the agent's own cluster that is named by itself. */
export function localNode(nodeName: string): Subject {
  return { nodeName, cluster: undefined, machine: undefined };
}
