import type { Node } from "../../../api/kubernetes/core.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { Change } from "../../../kube/watched.ts";
import type { NodeClusters } from "../../clusters/node-clusters.ts";
import type { NodeId } from "../../../nodes/subject.ts";
import { nodeKey } from "../../../nodes/subject.ts";
import { MultiMap } from "../../../runtime/multi-map.ts";
import { canonicalUuid, meaningfulUuid } from "../model/identity.ts";

/**
 * Which nodes report which system UUID, in all clusters whose nodes are watched. A UUID that two nodes report does not
 * identify a host, even if only one of them has a FencingTarget.
 */
export class NodeUuids {
  readonly #clusters: Pick<NodeClusters, "of" | "isHeld" | "subscribe">;
  /** By UUID. An entry may be outdated until it is read. */
  readonly #nodes = new MultiMap<NodeId & { uid: string }>();

  constructor(clusters: Pick<NodeClusters, "of" | "isHeld" | "subscribe">) {
    this.#clusters = clusters;
  }

  /** Follows the nodes until `signal` aborts. */
  follow(signal: AbortSignal): void {
    const stop = this.#clusters.subscribe({
      onNode: (cluster, change) => this.#apply(cluster, change),
      onConnection: () => undefined,
    });
    signal.addEventListener("abort", stop, { once: true });
  }

  /** A node other than the named one that reports this UUID; undefined if none does. */
  otherWith(uuid: string, own: NodeId): NodeId | undefined {
    const key = canonicalUuid(uuid);
    // The agent's own cluster may be a Cluster as well: the same Node under its other name is not another node.
    const ownUid = this.#watchedNode(own)?.metadata.uid ?? this.#entryOf(key, own)?.uid;
    for (const node of this.#nodes.get(key)) {
      if (!this.#stillReports(node, uuid)) this.#nodes.delete(key, node);
      else if (!isSameNode(node, own) && node.uid !== ownUid) return node;
    }
    return undefined;
  }

  #apply(cluster: ClusterRef | undefined, change: Change<Node>): void {
    const { name, uid } = change.object.metadata;
    const id = { cluster, name };
    const before =
      change.type === "added" ? undefined : keyOf(change.type === "updated" ? change.previous : change.object);
    const now = change.type === "deleted" ? undefined : keyOf(change.object);
    const known = before === undefined ? undefined : this.#entryOf(before, id);
    if (before === now && known?.uid === uid) return;
    if (before !== undefined && known !== undefined) this.#nodes.delete(before, known);
    if (now === undefined) return;
    const present = this.#entryOf(now, id);
    if (present !== undefined) this.#nodes.delete(now, present);
    this.#nodes.add(now, { ...id, uid });
  }

  #entryOf(uuid: string, node: NodeId): (NodeId & { uid: string }) | undefined {
    for (const entry of this.#nodes.get(uuid)) if (isSameNode(entry, node)) return entry;
    return undefined;
  }

  /**
   * Whether an entry still counts. For a cluster that cannot be reached it does, because nothing newer is known, unless
   * nothing holds that cluster any more.
   */
  #stillReports(node: NodeId, uuid: string): boolean {
    if (this.#clusters.of(node.cluster).problem !== undefined) return this.#clusters.isHeld(node.cluster);
    const watched = this.#watchedNode(node);
    return watched !== undefined && keyOf(watched) === canonicalUuid(uuid);
  }

  #watchedNode({ cluster, name }: NodeId): Node | undefined {
    return this.#clusters.of(cluster).nodes.get({ name });
  }
}

function isSameNode(a: NodeId, b: NodeId): boolean {
  return a.name === b.name && nodeKey(a) === nodeKey(b);
}

function keyOf(node: Node): string | undefined {
  const uuid = meaningfulUuid(node.status.nodeInfo?.systemUUID);
  return uuid === undefined ? undefined : canonicalUuid(uuid);
}
