import { NODES } from "../../../api/kubernetes/core-types.ts";
import type { Node, NodeCondition } from "../../../api/kubernetes/core.ts";
import { trimNode } from "../../../api/kubernetes/trim.ts";
import type { ClusterRef, HeldCluster, WorkloadClusters } from "../../../clusters/workload-clusters.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { keepKnownConditions } from "../../shared/views/watched-nodes/compare-nodes.ts";
import { NodeWatch } from "../../shared/views/watched-nodes/node-watch.ts";
import type { LiveNodes } from "../../shared/views/watched-nodes/current-nodes.ts";
import type { MonotonicTimes } from "../../shared/views/watched-nodes/condition-times.ts";
import type { ObservedNode } from "../decide/observed-machine.ts";

export interface ClusterNodesDeps {
  clusters: WorkloadClusters;
  clock: Clock;
  /** The clock by which Machines are judged. */
  times: MonotonicTimes;
  /** Is called with the name of a node whose health may have changed; with undefined if it may be any node. */
  onChange: (nodeName: string | undefined) => void;
}

/** The nodes of one cluster, for the health checks over its Machines. */
export class ClusterNodes {
  readonly #deps: ClusterNodesDeps;
  readonly #cluster: HeldCluster;
  /** The watched nodes, and the times of their conditions. Each cluster has its own clock. */
  #watch: NodeWatch | undefined;

  constructor(deps: ClusterNodesDeps, ref: ClusterRef) {
    this.#deps = deps;
    this.#cluster = deps.clusters.hold(ref, () => this.#onConnection());
    this.#listen();
  }

  /** Whether the first connection to the cluster has neither succeeded nor failed yet. */
  get isPending(): boolean {
    return this.#cluster.connection.state === "connecting";
  }

  /** Why the nodes of the cluster cannot be read. Text for the operator. */
  get unreachable(): string | undefined {
    const { connection, ref } = this.#cluster;
    if (connection.state === "connected") return undefined;
    const cluster = `cluster ${ref.namespace}/${ref.name}`;
    return connection.state === "disconnected" ? `${cluster}: ${connection.message}` : `connecting to ${cluster}`;
  }

  /** Whether the cluster has nodes, but none of the given names; false if no name is given. */
  hasOnlyOthers(nodeNames: Iterable<string>): boolean {
    const { connection } = this.#cluster;
    if (connection.state !== "connected" || connection.nodes.values().next().done === true) return false;
    let isAnyNamed = false;
    for (const name of nodeNames) {
      if (connection.nodes.get({ name }) !== undefined) return false;
      isAnyNamed = true;
    }
    return isAnyNamed;
  }

  nodeNamed(nodeName: string): ObservedNode {
    const { connection } = this.#cluster;
    if (connection.state !== "connected") return { state: "unknown", reason: this.unreachable ?? "" };
    const node = connection.nodes.get({ name: nodeName });
    return node === undefined ? { state: "gone" } : { state: "there", node };
  }

  /** Lists the nodes unless the view is proven to be up to date. @throws KubeError if they cannot be listed. */
  async confirm(signal: AbortSignal): Promise<void> {
    if (this.#cluster.connection.state === "connected") await this.#watch?.current.confirm(signal);
  }

  /** The nodes of a recent live list; undefined if there is none. */
  get liveNodes(): LiveNodes | undefined {
    return this.#watch?.current.liveNodes;
  }

  /**
   * Reads a node live. Conditions that differ from the view are left out. They are judged when the watch has reported
   * their change.
   */
  async readNode(nodeName: string, signal: AbortSignal): Promise<ObservedNode> {
    const { connection } = this.#cluster;
    if (connection.state !== "connected") return { state: "unknown", reason: this.unreachable ?? "" };
    const known = connection.nodes.get({ name: nodeName });
    // Only a NotFound from the cluster itself proves that the node is gone.
    const live = await findObject<Node>(connection.runtime.client, NODES, { name: nodeName }, signal);
    return live === undefined
      ? { state: "gone" }
      : { state: "there", node: keepKnownConditions(trimNode(live), known) };
  }

  /** Since when a condition counts as having its status, on the clock by which Machines are judged. */
  sinceMs(nodeName: string, condition: NodeCondition): number | undefined {
    const { times } = this.#watch ?? {};
    const sinceMs = times?.sinceMs(nodeName, condition);
    return sinceMs === undefined || times === undefined
      ? undefined
      : sinceMs + this.#deps.times.nowMs() - times.nowMs();
  }

  close(): void {
    this.#watch?.close();
    this.#cluster.release();
  }

  #onConnection(): void {
    this.#listen();
    this.#deps.onChange(undefined);
  }

  /**
   * Watches the nodes of the current connection, unless it already does: a cluster may become reachable again with the
   * same view.
   */
  #listen(): void {
    const { connection } = this.#cluster;
    if (connection.state !== "connected" || this.#watch?.nodes === connection.nodes) return;
    this.#watch?.close();
    const { nodes, runtime } = connection;
    const deps = { client: runtime.client, clock: this.#deps.clock, clockOffset: runtime.clockOffset?.() };
    this.#watch = new NodeWatch(deps, nodes, ({ object }) => this.#deps.onChange(object.metadata.name));
  }
}
