import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { Controller } from "../../../kube/reconcile/controller.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Change, Watched } from "../../../kube/watched.ts";
import { keyOf, keyText, parseKey } from "../../../kube/watched.ts";
import type { NodeClusters } from "../../clusters/node-clusters.ts";
import { updateTargetStatus } from "../../hosts/fencing-target/target-store.ts";
import type { FencingTargetDirectory } from "../../hosts/fencing-target/directory.ts";
import { mayRunEtcd } from "../../machine/rules/admission/quorum.ts";
import type { DeletedMembers, EtcdMemberRecord } from "./deleted-members.ts";
import { targetNode } from "./deleted-members.ts";

export interface RecordMembersDeps {
  runtime: KubeRuntime;
  targets: Watched<FencingTarget>;
  directory: Pick<FencingTargetDirectory, "index">;
  clusters: NodeClusters;
  members: DeletedMembers;
}

/**
 * Records in the status of each FencingTarget whether its node has a member of etcd, until `signal` aborts. The record
 * is written while the Node exists, so that no agent has to run when the Node is deleted. It stays when the Node is
 * gone.
 */
export async function recordMembers(deps: RecordMembersDeps, signal: AbortSignal): Promise<void> {
  const { runtime, targets, clusters, directory, members } = deps;
  const isOwn = clusters.isOwn.bind(clusters);
  const controller: Controller = new Controller(runtime, {
    name: "etcd-members",
    concurrency: 2,
    reconcile: async (key, running) => {
      const target = targets.get(parseKey(key));
      if (target === undefined) return;
      const { cluster, name } = targetNode(target, isOwn);
      const { nodes, problem } = clusters.of(cluster);
      if (problem !== undefined) return;
      const record = members.recordFor(target, nodes.get({ name }));
      if (!isSame(record, target.status?.etcdMember)) await write(runtime, target, record, running);
    },
  });
  const enqueue = (concerned: Iterable<FencingTarget>): void => {
    for (const target of concerned) controller.enqueue(keyText(keyOf(target)));
  };
  const unsubscribe = [
    targets.subscribe((change) => enqueue([change.object])),
    clusters.subscribe({
      onNode: (cluster, change) => {
        if (!mattersToRecord(change)) return;
        const { name } = change.object.metadata;
        enqueue(directory.index.byNode({ cluster, name }));
      },
      onConnection: (cluster) => enqueue(directory.index.byCluster(cluster)),
    }),
  ];
  try {
    await controller.run(signal);
  } finally {
    for (const stop of unsubscribe) stop();
  }
}

function mattersToRecord(change: Change<Node>): boolean {
  if (change.type !== "updated") return mayRunEtcd(change.object);
  return mayRunEtcd(change.object) !== mayRunEtcd(change.previous);
}

function isSame(a: EtcdMemberRecord | undefined, b: EtcdMemberRecord | undefined): boolean {
  const textOf = (record: EtcdMemberRecord | undefined): string =>
    JSON.stringify([record?.nodeName, record?.role, record?.clusterRef?.namespace, record?.clusterRef?.name]);
  return textOf(a) === textOf(b);
}

async function write(
  runtime: KubeRuntime,
  target: FencingTarget,
  record: EtcdMemberRecord | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { uid, namespace = "", name } = target.metadata;
  const ref = { kind: target.kind, uid, namespace, name };
  const etcdMember = record === undefined ? null : { clusterRef: null, ...record };
  try {
    await updateTargetStatus(
      runtime,
      ref,
      // If the target has changed since it was read, its next watch event starts this again.
      (live) => (live.metadata.generation === target.metadata.generation ? { etcdMember } : undefined),
      signal,
      target,
    );
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
}
