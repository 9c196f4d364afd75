// Labels that ironfence reads or writes.

/** Selects the objects of an installation: the manifests and the Helm chart put this label on them. */
export const OF_IRONFENCE = { labelSelector: "app.kubernetes.io/name=ironfence" } as const;
/** On a remediation CR that the detector created, with the value `PART_OF_VALUE`. */
export const PART_OF = "app.kubernetes.io/part-of";
export const PART_OF_VALUE = "node-healthcheck-controller";
/** On a remediation CR: its node is a control plane node. */
export const IS_CONTROL_PLANE_NODE = "remediation.medik8s.io/isControlPlaneNode";
/** On a node: only the value `true` keeps it from being remediated. */
export const EXCLUDE_FROM_REMEDIATION = "remediation.medik8s.io/exclude-from-remediation";
/** On a node: it runs the control plane. Either label counts. */
export const CONTROL_PLANE_ROLES: readonly string[] = [
  "node-role.kubernetes.io/control-plane",
  "node-role.kubernetes.io/master",
];
/** On a node: it runs etcd, if etcd does not run on the control plane nodes. */
export const ETCD_ROLE = "node-role.kubernetes.io/etcd";
/** On an object that Velero has restored: the name of the restore. */
export const RESTORED_BY_VELERO = "velero.io/restore-name";
/** On a BareMetalRemediation that serves a request of another project: the family of the request. */
export const REQUEST = "ironfence.io/request";
