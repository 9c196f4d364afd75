import { randomUUID } from "node:crypto";
import type { KubeApi } from "../lib/kube-api.ts";

/** What a kubelet reports about its node when it registers. */
export interface NodeRegistration {
  name: string;
  /** Labels that the kubelet is configured with, in addition to the well-known ones. */
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
  systemUUID?: string;
  bootID?: string;
}

/** Registers a node as its kubelet would. A kwok then keeps it up to date. */
export async function registerNode(api: KubeApi, node: NodeRegistration): Promise<void> {
  const { name } = node;
  await api.create("/api/v1/nodes", {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        ...node.labels,
      },
      annotations: {
        "kwok.x-k8s.io/node": "fake",
        // Without this annotation, the attach-detach controller expects the kubelet to attach volumes.
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        ...node.annotations,
      },
    },
  });
  await reportBoot(api, name, { systemUUID: node.systemUUID ?? randomUUID(), bootID: node.bootID ?? randomUUID() });
}

/** Reports a node's machine and boot, as a kubelet does when it has started. */
export async function reportBoot(
  api: KubeApi,
  name: string,
  boot: { systemUUID: string; bootID: string },
): Promise<void> {
  await api.mergePatch(`/api/v1/nodes/${name}/status`, {
    status: {
      nodeInfo: {
        ...boot,
        machineID: boot.systemUUID,
        architecture: "amd64",
        operatingSystem: "linux",
        osImage: "fake",
        kernelVersion: "6.12.0-fake",
        kubeletVersion: "v1.36.3",
        kubeProxyVersion: "",
        containerRuntimeVersion: "kwok://0.8.0",
      },
    },
  });
}
