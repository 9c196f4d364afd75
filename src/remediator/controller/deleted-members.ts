import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { Node } from "../../api/core.ts";
import type { Change } from "../../kube/watched.ts";
import { mayRunEtcd } from "../machine/rules/quorum.ts";
import { nodeKey } from "../../nodes/subject.ts";

/** Nodes remembered; the oldest go first. Control planes have a handful. */
const REMEMBERED_MAX = 1_000;

/**
 * Nodes with a member of etcd whose objects were deleted before our eyes: a Node that is gone is no member that is gone. They
 * count as down for as long as a target names their host. Another process knows nothing of them.
 */
export class DeletedMembers {
  readonly #isExpected: (cluster: ClusterRef | undefined, name: string) => boolean;
  readonly #lost = new Map<string, { cluster: ClusterRef | undefined; node: Node }>();

  /** @param isExpected whether the host of a node is still meant to be in use. */
  constructor(isExpected: (cluster: ClusterRef | undefined, name: string) => boolean) {
    this.#isExpected = isExpected;
  }

  observe(cluster: ClusterRef | undefined, { type, object }: Change<Node>): void {
    const key = nodeKey({ cluster, name: object.metadata.name });
    this.#lost.delete(key);
    if (type !== "deleted" || !mayRunEtcd(object)) return;
    // What it said of itself last counts for nothing: it is not Ready.
    this.#lost.set(key, { cluster, node: { ...object, status: {} } });
    for (const oldest of this.#lost.keys()) {
      if (this.#lost.size <= REMEMBERED_MAX) break;
      this.#lost.delete(oldest);
    }
  }

  /** The nodes of a cluster, and those that it has lost. */
  *among(cluster: ClusterRef | undefined, nodes: Iterable<Node>): Generator<Node> {
    yield* nodes;
    for (const [key, lost] of this.#lost) {
      const { name } = lost.node.metadata;
      if (key === nodeKey({ cluster, name }) && this.#isExpected(cluster, name)) yield lost.node;
    }
  }
}
