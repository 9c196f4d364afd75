// Types of the Kubernetes API that all kinds share.

/** How the API server serves one kind. */
export interface ResourceType {
  /** API group; empty for core/v1. */
  group: string;
  version: string;
  kind: string;
  plural: string;
  namespaced: boolean;
}

/** `group/version`, or `version` alone in the core group. */
export function apiVersionOf(type: Pick<ResourceType, "group" | "version">): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** One owner of an object (`metav1.OwnerReference`). */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** The part of `metav1.ObjectMeta` that ironfence reads or writes. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  /** Which writer set which fields, and when, by the API server's clock. Caches leave it out. */
  managedFields?: { time?: string; subresource?: string }[];
}

/** Any object of the Kubernetes API. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}
