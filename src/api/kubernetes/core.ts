import type { KubeObject, ObjectMeta } from "../../kube/resource.ts";

// The fields of the built-in kinds of Kubernetes that ironfence reads. Caches hold objects trimmed to these fields.

export interface Taint {
  key: string;
  value?: string;
  effect: string;
  timeAdded?: string;
}

export interface NodeCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastHeartbeatTime?: string;
  lastTransitionTime?: string;
}

/** `corev1.Node` */
export interface Node extends KubeObject {
  spec: { unschedulable?: boolean; providerID?: string; taints?: Taint[] };
  status: {
    conditions?: NodeCondition[];
    nodeInfo?: { bootID?: string; systemUUID?: string; machineID?: string };
    addresses?: { type: string; address: string }[];
  };
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  tolerationSeconds?: number;
}

/** `corev1.Pod` */
export interface Pod extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  spec: {
    nodeName?: string;
    tolerations?: Toleration[];
    volumes?: { name: string; persistentVolumeClaim?: { claimName: string }; ephemeral?: object }[];
  };
  status?: { phase?: string; conditions?: NodeCondition[] };
}

/** `storagev1.VolumeAttachment` */
export interface VolumeAttachment extends KubeObject {
  spec: { nodeName: string; attacher: string; source: { persistentVolumeName?: string } };
  status?: { attached: boolean };
}

/** `corev1.PersistentVolume` */
export interface PersistentVolume extends KubeObject {
  spec: { claimRef?: { namespace?: string; name?: string; uid?: string } };
}

/** `coordinationv1.Lease` */
export interface Lease extends KubeObject {
  spec: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

/** `corev1.ConfigMap` */
export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}
