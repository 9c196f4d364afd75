import type { KubeApi } from "../lib/kube-api.ts";
import { ApiStatusError } from "../lib/kube-api.ts";

/** The CSI driver whose volumes the fake hosts use. */
export const CSI_DRIVER = "csi.ironfence.test";

const FINALIZER = `external-attacher/${CSI_DRIVER}`;
const PATH = "/apis/storage.k8s.io/v1/volumeattachments";

interface VolumeAttachment {
  metadata: { name: string; deletionTimestamp?: string; finalizers?: string[] };
  spec: { attacher: string; nodeName: string; source: { persistentVolumeName: string } };
  status?: { attached: boolean };
}

/**
 * Replaces the external-attacher of the CSI driver, and the part of the kubelet that reports mounted volumes. Without
 * those reports, controllers would detach volumes without waiting for a dead node.
 */
export async function runAttacher(api: KubeApi, signal: AbortSignal): Promise<void> {
  await api.watch<VolumeAttachment>(
    PATH,
    ({ type, object }) => {
      if (type === "DELETED" || object.spec.attacher !== CSI_DRIVER) return;
      void serve(api, object).catch((error: unknown) => {
        // A newer version of the object follows on the watch, or the test is ending.
        if (!signal.aborted && !(error instanceof ApiStatusError)) throw error;
      });
    },
    signal,
  );
}

async function serve(api: KubeApi, attachment: VolumeAttachment): Promise<void> {
  const { metadata, spec, status } = attachment;
  const path = `${PATH}/${metadata.name}`;
  if (metadata.deletionTimestamp !== undefined) {
    if (metadata.finalizers?.includes(FINALIZER) === true) {
      await api.mergePatch(path, { metadata: { finalizers: null } });
    }
  } else if (status?.attached !== true) {
    await api.mergePatch(path, { metadata: { finalizers: [FINALIZER] } });
    await api.mergePatch(`${path}/status`, { status: { attached: true } });
    await reportMounted(api, spec.nodeName, spec.source.persistentVolumeName);
  }
}

async function reportMounted(api: KubeApi, node: string, volume: string): Promise<void> {
  const { spec } = await api.get<{ spec: { csi: { volumeHandle: string } } }>(`/api/v1/persistentvolumes/${volume}`);
  const name = `kubernetes.io/csi/${CSI_DRIVER}^${spec.csi.volumeHandle}`;
  const path = `/api/v1/nodes/${node}`;
  const { status } = await api.get<{ status: { volumesInUse?: string[] } }>(path);
  const volumesInUse = [...new Set([...(status.volumesInUse ?? []), name])];
  await api.mergePatch(`${path}/status`, { status: { volumesInUse } });
}
