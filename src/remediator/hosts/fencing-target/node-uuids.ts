import type { Node } from "../../../api/kubernetes/core.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { Change } from "../../../kube/watched.ts";
import type { NodeClusters } from "../../clusters/node-clusters.ts";
import type { NodeId } from "../../../nodes/subject.ts";
import { nodeKey } from "../../../nodes/subject.ts";
import { canonicalUuid, meaningfulUuid } from "../model/identity.ts";

/**
 * Which nodes report which system UUID, in all clusters whose nodes are watched. A UUID that two nodes report does not
 * identify a host, even if only one of them has a FencingTarget.
 */
export class NodeUuids {
  readonly #clusters: Pick<NodeClusters, "of" | "isHeld" | "subscribe">;
  /** By UUID, then by node. An entry may be outdated until it is read. */
  readonly #nodes = new Map<string, Map<string, NodeId & { uid: string }>>();

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
    const nodes = this.#nodes.get(canonicalUuid(uuid));
    if (nodes === undefined) return undefined;
    // The agent's own cluster may be a Cluster as well: the same Node under its other name is not another node.
    const ownUid = this.#watchedNode(own)?.metadata.uid ?? nodes.get(nodeKey(own))?.uid;
    for (const [key, node] of nodes) {
      if (!this.#stillReports(node, uuid)) nodes.delete(key);
      else if (key !== nodeKey(own) && node.uid !== ownUid) return node;
    }
    return undefined;
  }

  #apply(cluster: ClusterRef | undefined, change: Change<Node>): void {
    const { name, uid } = change.object.metadata;
    const id = { cluster, name };
    const before =
      change.type === "added" ? undefined : keyOf(change.type === "updated" ? change.previous : change.object);
    const now = change.type === "deleted" ? undefined : keyOf(change.object);
    if (before !== undefined && before !== now) {
      this.#nodes.get(before)?.delete(nodeKey(id));
      if (this.#nodes.get(before)?.size === 0) this.#nodes.delete(before);
    }
    if (now === undefined) return;
    const nodes = this.#nodes.get(now) ?? new Map<string, NodeId & { uid: string }>();
    nodes.set(nodeKey(id), { ...id, uid });
    this.#nodes.set(now, nodes);
  }

  /**
   * A cluster that cannot be reached reports nothing new, and one that no remediation uses any more does not matter.
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

function keyOf(node: Node): string | undefined {
  const uuid = meaningfulUuid(node.status.nodeInfo?.systemUUID);
  return uuid === undefined ? undefined : canonicalUuid(uuid);
}
