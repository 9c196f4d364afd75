import type { ResourceType } from "../../kube/resource.ts";

// The built-in kinds of Kubernetes that ironfence uses.

const core = (kind: string, plural: string, namespaced: boolean): ResourceType => ({
  group: "",
  version: "v1",
  kind,
  plural,
  namespaced,
});

export const NODES = core("Node", "nodes", false);
export const NAMESPACES = core("Namespace", "namespaces", false);
export const PODS = core("Pod", "pods", true);
export const SECRETS = core("Secret", "secrets", true);
export const CONFIG_MAPS = core("ConfigMap", "configmaps", true);
export const PERSISTENT_VOLUMES = core("PersistentVolume", "persistentvolumes", false);
export const DEPLOYMENTS: ResourceType = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  namespaced: true,
};
export const VOLUME_ATTACHMENTS: ResourceType = {
  group: "storage.k8s.io",
  version: "v1",
  kind: "VolumeAttachment",
  plural: "volumeattachments",
  namespaced: false,
};
export const LEASES: ResourceType = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  namespaced: true,
};
/** The namespace of node leases. Each lease has the name of its node. */
export const NODE_LEASE_NAMESPACE = "kube-node-lease";
export const EVENTS: ResourceType = {
  group: "events.k8s.io",
  version: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
};
