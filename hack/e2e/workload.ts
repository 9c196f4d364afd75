import { applyObject } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { CSI_DRIVER } from "./attacher.ts";
import { eventually } from "./eventually.ts";

const RUNNING_TIMEOUT_MS = 60_000;

/** The fields of a Pod that tests read. */
export interface PodView {
  metadata: { name: string; namespace: string; uid: string; deletionTimestamp?: string };
  spec: { nodeName?: string };
  status: { phase?: string; conditions?: { type: string }[] };
}

/** A single-writer database: a StatefulSet of one pod with one volume. */
export interface Database {
  readonly podPath: string;
  pod(): Promise<PodView | undefined>;
  /** Waits until the pod runs and its volume is attached to its node. @returns the name of that node. */
  runningNode(): Promise<string>;
  /** The node of a pod with another UID than `formerUid`, if the pod runs and its volume is attached to that node. */
  successorNode(formerUid: string | undefined): Promise<string | undefined>;
  attachedNodes(): Promise<string[]>;
  remove(): Promise<void>;
}

/** Deploys a database into namespace `default`. */
export async function deployDatabase(api: KubeApi, name: string): Promise<Database> {
  const storageClass = `${name}-disk`;
  await applyObject(api, {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: storageClass },
    provisioner: "kubernetes.io/no-provisioner",
  });
  await applyObject(api, {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: `${name}-0` },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      storageClassName: storageClass,
      csi: { driver: CSI_DRIVER, volumeHandle: `${name}-0` },
    },
  });
  await applyObject(api, {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace: "default" },
    spec: {
      serviceName: name,
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [{ name: "db", image: "fake", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            storageClassName: storageClass,
            resources: { requests: { storage: "1Gi" } },
          },
        },
      ],
    },
  });

  const podPath = `/api/v1/namespaces/default/pods/${name}-0`;
  const pod = (): Promise<PodView | undefined> => api.find<PodView>(podPath);
  const attachedNodes = async (): Promise<string[]> => {
    const attachments = await api.list<{ spec: { nodeName: string; source: { persistentVolumeName?: string } } }>(
      "/apis/storage.k8s.io/v1/volumeattachments",
    );
    return attachments
      .filter(({ spec }) => spec.source.persistentVolumeName === `${name}-0`)
      .map(({ spec }) => spec.nodeName);
  };
  const successorNode = async (formerUid: string | undefined): Promise<string | undefined> => {
    const current = await pod();
    const node = current?.spec.nodeName;
    if (current?.status.phase !== "Running" || current.metadata.deletionTimestamp !== undefined) return undefined;
    if (current.metadata.uid === formerUid || node === undefined) return undefined;
    return (await attachedNodes()).includes(node) ? node : undefined;
  };
  return {
    podPath,
    pod,
    attachedNodes,
    successorNode,
    runningNode: () =>
      eventually(`${name}-0 runs with its volume attached`, RUNNING_TIMEOUT_MS, () => successorNode(undefined)),
    remove: async () => {
      await api.delete(`/apis/apps/v1/namespaces/default/statefulsets/${name}`);
      await api.delete(`/api/v1/namespaces/default/persistentvolumeclaims/data-${name}-0`);
      await api.delete(`/api/v1/persistentvolumes/${name}-0`);
    },
  };
}
