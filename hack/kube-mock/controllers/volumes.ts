import { NODES, PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS } from "../../../src/api/kubernetes/core-types.ts";
import type { VolumeAttachment } from "../../../src/api/kubernetes/core.ts";
import { keyOf, keyText } from "../../../src/kube/watched.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { ApiServer } from "../api-server.ts";
import { CLAIMS, conditionStatus, isOutOfService, isTerminated } from "./cluster-types.ts";
import type { ClusterNode, ClusterPod, PersistentVolume, PersistentVolumeClaim } from "./cluster-types.ts";
import { KeyQueue } from "./key-queue.ts";

const DRIVER = "csi.kube-mock.example";
const RECHECK_MS = 1_000;

/** Delays of attaching, and how long a volume in use stays attached to a node that is not Ready. */
export interface VolumeOptions {
  attachLagMs: number;
  detachLagMs: number;
  forceDetachMs: number;
  /**
   * ControllerUnpublish of the CSI driver, called before an attachment is removed. If it returns false, it has failed:
   * the attachment stays, and the call is repeated a second later.
   */
  unpublish?: (attachment: VolumeAttachment) => boolean;
}

/**
 * A provisioner with persistentvolume-binder, attach-detach and external-attacher. Every claim gets its own volume, and
 * a VolumeAttachment exists while pods use it. A volume is attached to one node at a time. It is detached when no pod
 * on the node uses it and `status.volumesInUse` of the node does not name it. With the out-of-service taint, or when
 * the node has not been Ready for `forceDetachMs`, `status.volumesInUse` is ignored.
 */
export function startVolumes(
  { server, clock }: { server: ApiServer; clock: Clock },
  options: VolumeOptions,
): () => void {
  const binder = startBinder(server, clock);
  const attacher = startAttachDetach(server, clock, options);
  return () => {
    binder();
    attacher();
  };
}

function startBinder(server: ApiServer, clock: Clock): () => void {
  const claims = server.collection<PersistentVolumeClaim>(CLAIMS);
  const volumes = server.collection<PersistentVolume>(PERSISTENT_VOLUMES);
  const pods = server.collection<ClusterPod>(PODS);

  const isUsed = (claim: PersistentVolumeClaim): boolean => {
    return [...pods.values()].some((pod) => !isTerminated(pod) && claimKeys(pod).includes(keyText(keyOf(claim))));
  };
  const bind = (key: string): number | undefined => {
    const [namespace = "", name = ""] = key.split("/");
    const claim = claims.get({ namespace, name });
    if (claim === undefined) return undefined;
    if (claim.metadata.deletionTimestamp !== undefined) {
      if (isUsed(claim)) return RECHECK_MS;
      claims.mergePatch({ namespace, name }, { metadata: { finalizers: null } });
      return undefined;
    }
    if (claim.status?.phase === "Bound") return undefined;
    const volumeName = claim.spec.volumeName ?? `pvc-${claim.metadata.uid}`;
    if (volumes.get({ name: volumeName }) === undefined) {
      volumes.create({ metadata: { name: volumeName }, spec: volumeSpec(claim, volumeName) });
    }
    volumes.mergePatch({ name: volumeName }, { status: { phase: "Bound" } }, "status");
    claims.mergePatch({ namespace, name }, { spec: { volumeName } });
    claims.mergePatch({ namespace, name }, { status: { phase: "Bound" } }, "status");
    return undefined;
  };

  const queue = new KeyQueue(clock, bind);
  const unsubscribe = claims.subscribe(({ type, object }) => {
    if (type !== "DELETED") queue.enqueue(keyText(keyOf(object)), 0);
  });
  return () => {
    unsubscribe();
    queue.stop();
  };
}

function volumeSpec({ metadata }: PersistentVolumeClaim, volumeName: string): Record<string, unknown> {
  return {
    capacity: { storage: "1Gi" },
    accessModes: ["ReadWriteOnce"],
    csi: { driver: DRIVER, volumeHandle: volumeName },
    claimRef: { namespace: metadata.namespace, name: metadata.name, uid: metadata.uid },
  };
}

/** `namespace/name` of the claims that a pod uses. */
function claimKeys(pod: ClusterPod): string[] {
  return (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) => {
    return claim === undefined ? [] : [`${pod.metadata.namespace}/${claim.claimName}`];
  });
}

function startAttachDetach(server: ApiServer, clock: Clock, options: VolumeOptions): () => void {
  const nodes = server.collection<ClusterNode>(NODES);
  const pods = server.collection<ClusterPod>(PODS);
  const claims = server.collection<PersistentVolumeClaim>(CLAIMS);
  const volumes = server.collection<PersistentVolume>(PERSISTENT_VOLUMES);
  const attachments = server.collection<VolumeAttachment>(VOLUME_ATTACHMENTS);
  /** The keys of pods with claims. Other pods are ignored. */
  const podKeys = new Set<string>();
  /** The time since which no pod has used each attachment. */
  const uselessSinceMs = new Map<string, number>();

  /** For each volume, the nodes on which pods need it. */
  const wantedNodes = (): Map<string, Set<string>> => {
    const wanted = new Map<string, Set<string>>();
    for (const key of podKeys) {
      const [namespace = "", name = ""] = key.split("/");
      const pod = pods.get({ namespace, name });
      if (pod?.spec.nodeName === undefined || isTerminated(pod)) continue;
      for (const claimKey of claimKeys(pod)) {
        const [claimNamespace = "", claimName = ""] = claimKey.split("/");
        const volumeName = claims.get({ namespace: claimNamespace, name: claimName })?.spec.volumeName;
        if (volumeName === undefined || volumes.get({ name: volumeName }) === undefined) continue;
        wanted.set(volumeName, (wanted.get(volumeName) ?? new Set()).add(pod.spec.nodeName));
      }
    }
    return wanted;
  };

  const mayDetach = (attachment: VolumeAttachment): boolean => {
    const { name } = attachment.metadata;
    const sinceMs = uselessSinceMs.get(name) ?? clock.monotonicMs();
    uselessSinceMs.set(name, sinceMs);
    const node = nodes.get({ name: attachment.spec.nodeName });
    if (node === undefined || isOutOfService(node)) return true;
    const handle = `^${attachment.spec.source.persistentVolumeName ?? ""}`;
    const isInUse = node.status.volumesInUse?.some((volume) => volume.endsWith(handle)) === true;
    if (!isInUse) return true;
    return conditionStatus(node, "Ready") !== "True" && clock.monotonicMs() - sinceMs >= options.forceDetachMs;
  };

  const reconcile = (): number | undefined => {
    const wanted = wantedNodes();
    const attachedTo = new Map<string, string>();
    let isWaiting = false;
    for (const attachment of attachments.values()) {
      const { name, deletionTimestamp } = attachment.metadata;
      const volumeName = attachment.spec.source.persistentVolumeName ?? "";
      attachedTo.set(volumeName, attachment.spec.nodeName);
      if (deletionTimestamp !== undefined) continue;
      if (wanted.get(volumeName)?.has(attachment.spec.nodeName) === true) uselessSinceMs.delete(name);
      else if (mayDetach(attachment)) attachments.delete({ name });
      else isWaiting = true;
    }
    for (const [volumeName, nodeNames] of wanted) {
      const [nodeName] = nodeNames;
      // A single-writer volume must be detached from every other node first.
      if (nodeName === undefined || attachedTo.has(volumeName)) continue;
      attachments.create({
        metadata: { name: `csi-${volumeName}-${nodeName}`, finalizers: [`external-attacher/${DRIVER}`] },
        spec: { attacher: DRIVER, nodeName, source: { persistentVolumeName: volumeName } },
      });
    }
    return isWaiting ? RECHECK_MS : undefined;
  };

  /** external-attacher: attaches or detaches as a VolumeAttachment requests. */
  const carryOut = (name: string): number | undefined => {
    const attachment = attachments.get({ name });
    if (attachment === undefined) return undefined;
    if (attachment.metadata.deletionTimestamp !== undefined) {
      if (options.unpublish?.(attachment) === false) return RECHECK_MS;
      uselessSinceMs.delete(name);
      attachments.mergePatch({ name }, { metadata: { finalizers: null } });
    } else if (attachment.status?.attached !== true) {
      attachments.mergePatch({ name }, { status: { attached: true } }, "status");
    }
    return undefined;
  };

  const all = new KeyQueue(clock, reconcile);
  const each = new KeyQueue(clock, carryOut);
  const again = (): void => all.enqueue("", 0);
  const unsubscribers = [
    pods.subscribe(({ type, object }) => {
      if (claimKeys(object).length === 0) return;
      const key = keyText(keyOf(object));
      if (type === "DELETED") podKeys.delete(key);
      else podKeys.add(key);
      again();
    }),
    claims.subscribe(again),
    nodes.subscribe(({ object, previous }) => {
      const wasOutOfService = previous !== undefined && isOutOfService(previous);
      if (isOutOfService(object) !== wasOutOfService) again();
    }),
    attachments.subscribe(({ type, object }) => {
      const { name, deletionTimestamp } = object.metadata;
      again();
      if (type !== "DELETED") {
        each.enqueue(name, deletionTimestamp === undefined ? options.attachLagMs : options.detachLagMs);
      }
    }),
  ];
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    all.stop();
    each.stop();
  };
}
