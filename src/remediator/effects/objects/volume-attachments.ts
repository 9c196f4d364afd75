import { VOLUME_ATTACHMENTS } from "../../../api/kubernetes/core-types.ts";
import type { VolumeAttachment } from "../../../api/kubernetes/core.ts";
import type { KubeClient } from "../../../kube/client.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { SharedWork } from "../../../runtime/shared-work.ts";

/**
 * Larger than other pages, because attachments are small: 250 of them are about 0.5 MiB. An untrusted API server may
 * send 16 KiB and 240 JSON values for each.
 */
const PAGE_SIZE = 250;

/** By the client of a cluster. */
const lists = new WeakMap<KubeClient, SharedWork<VolumeAttachment[]>>();

/**
 * All volume attachments of a cluster, by a live list that begins after this call. The API server cannot select them
 * by node, so hosts that are released at the same time share the list.
 */
export function listAttachments(client: KubeClient, signal: AbortSignal): Promise<VolumeAttachment[]> {
  const list = lists.get(client) ?? new SharedWork((running) => listAll(client, running));
  lists.set(client, list);
  return list.run(signal);
}

async function listAll(client: KubeClient, signal: AbortSignal): Promise<VolumeAttachment[]> {
  const options = { trim: trimAttachment, pageSize: PAGE_SIZE, bulk: true };
  return (await client.list<VolumeAttachment>(VOLUME_ATTACHMENTS, options, signal)).items;
}

/** Keeps only the node and the volume of an attachment, because the list has those of the whole cluster. */
function trimAttachment({ apiVersion, kind, metadata, ...rest }: KubeObject): VolumeAttachment {
  const { name, uid, resourceVersion } = metadata;
  const { spec } = rest as Pick<VolumeAttachment, "spec">;
  const { nodeName, attacher, source } = spec;
  const { persistentVolumeName } = source;
  return {
    apiVersion,
    kind,
    metadata: { name, uid, resourceVersion },
    spec: { nodeName, attacher, source: persistentVolumeName === undefined ? {} : { persistentVolumeName } },
  };
}
