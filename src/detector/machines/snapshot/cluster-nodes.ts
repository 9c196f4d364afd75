import { NODES } from "../../../api/core-types.ts";
import type { Node, NodeCondition } from "../../../api/core.ts";
import { trimNode } from "../../../api/trim.ts";
import type { ClusterRef, HeldCluster, WorkloadClusters } from "../../../clusters/workload-clusters.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { differs } from "../../shared/views/node-changes.ts";
import type { ListedNodes } from "../../shared/views/current-nodes.ts";
import { CurrentNodes } from "../../shared/views/current-nodes.ts";
import { MonotonicTimes } from "../../shared/views/condition-times.ts";
import { ViewFreshness } from "../../shared/views/view-freshness.ts";
import type { ObservedNode } from "../decide/target.ts";

export interface ClusterNodesDeps {
  clusters: WorkloadClusters;
  clock: Clock;
  /** The clock that machines are judged by. */
  times: MonotonicTimes;
  /** Is called with the node whose health may have changed; undefined: any node. */
  onChange: (nodeName: string | undefined) => void;
}

/** The nodes of one cluster, as the health checks over its machines see them. */
export class ClusterNodes {
  readonly #deps: ClusterNodesDeps;
  readonly #deferred: HeldCluster;
  /** The nodes that are watched now, and the times of their conditions: each cluster has a clock of its own. */
  #heard:
    | { nodes: Watched<Node>; times: MonotonicTimes; currentNodes: CurrentNodes; unsubscribe: () => void }
    | undefined;

  constructor(deps: ClusterNodesDeps, ref: ClusterRef) {
    this.#deps = deps;
    this.#deferred = deps.clusters.hold(ref, () => this.#onConnection());
    this.#listen();
  }

  /** Whether it is not known yet how the cluster can be reached. */
  get isPending(): boolean {
    return this.#deferred.connection.state === "connecting";
  }

  /** Why the cluster's nodes cannot be known, in words. */
  get unreachable(): string | undefined {
    const { connection, ref } = this.#deferred;
    if (connection.state === "connected") return undefined;
    const cluster = `cluster ${ref.namespace}/${ref.name}`;
    return connection.state === "away" ? `${cluster}: ${connection.message}` : `connecting to ${cluster}`;
  }

  /** Whether the cluster has nodes, but none of the given names; false if no name is given. */
  hasOnlyOthers(nodeNames: Iterable<string>): boolean {
    const { connection } = this.#deferred;
    if (connection.state !== "connected" || connection.nodes.values().next().done === true) return false;
    let isAnyNamed = false;
    for (const name of nodeNames) {
      if (connection.nodes.get({ name }) !== undefined) return false;
      isAnyNamed = true;
    }
    return isAnyNamed;
  }

  nodeNamed(nodeName: string): ObservedNode {
    const { connection } = this.#deferred;
    if (connection.state !== "connected") return { state: "unknown", reason: this.unreachable ?? "" };
    const node = connection.nodes.get({ name: nodeName });
    return node === undefined ? { state: "gone" } : { state: "there", node };
  }

  /** Lists the nodes unless the view is proven to show how they are. @throws KubeError if they cannot be listed. */
  async confirm(signal: AbortSignal): Promise<void> {
    if (this.#deferred.connection.state === "connected") await this.#heard?.currentNodes.confirm(signal);
  }

  /** What was listed a moment ago; undefined if nothing was. */
  get listed(): ListedNodes | undefined {
    return this.#heard?.currentNodes.listed;
  }

  /**
   * Reads a node now. Conditions that differ from the view are left out: their change was not observed yet, and they are
   * judged when it is.
   */
  async readHost(nodeName: string, signal: AbortSignal): Promise<ObservedNode> {
    const { connection } = this.#deferred;
    if (connection.state !== "connected") return { state: "unknown", reason: this.unreachable ?? "" };
    const shown = connection.nodes.get({ name: nodeName });
    try {
      const live = trimNode(await connection.runtime.client.get(NODES, { name: nodeName }, signal));
      const conditions = (live.status.conditions ?? []).filter((condition) =>
        shown?.status.conditions?.some(
          ({ type, status, lastTransitionTime }) =>
            type === condition.type &&
            status === condition.status &&
            lastTransitionTime === condition.lastTransitionTime,
        ),
      );
      return { state: "there", node: { ...live, status: { ...live.status, conditions } } };
    } catch (error) {
      // Only a NotFound from the cluster itself proves that the node is gone.
      if (isKubeError(error, "NotFound")) return { state: "gone" };
      throw error;
    }
  }

  /** Since when a condition counts as standing, on the clock that machines are judged by. */
  sinceMs(nodeName: string, condition: NodeCondition): number | undefined {
    const { times } = this.#heard ?? {};
    const sinceMs = times?.sinceMs(nodeName, condition);
    return sinceMs === undefined || times === undefined
      ? undefined
      : sinceMs + this.#deps.times.nowMs() - times.nowMs();
  }

  close(): void {
    this.#heard?.unsubscribe();
    this.#deferred.release();
  }

  #onConnection(): void {
    this.#listen();
    this.#deps.onChange(undefined);
  }

  /** Subscribes to the current nodes; a cluster may become reachable again with the same ones. */
  #listen(): void {
    const { connection } = this.#deferred;
    if (connection.state !== "connected" || this.#heard?.nodes === connection.nodes) return;
    this.#heard?.unsubscribe();
    const { nodes, runtime } = connection;
    const { clock } = this.#deps;
    const times = new MonotonicTimes(clock, runtime.clockOffset?.());
    const freshness = new ViewFreshness();
    // Nodes that exist already: when their conditions changed was not observed.
    let isNews = false;
    const unsubscribe = nodes.subscribe((change) => {
      if (!isNews) return;
      freshness.heard(clock.monotonicMs(), times.observe(change));
      if (change.type === "updated" && !differs(change.previous, change.object)) return;
      this.#deps.onChange(change.object.metadata.name);
    });
    isNews = true;
    this.#heard = {
      nodes,
      times,
      currentNodes: new CurrentNodes({ client: runtime.client, clock }, freshness),
      unsubscribe,
    };
  }
}
