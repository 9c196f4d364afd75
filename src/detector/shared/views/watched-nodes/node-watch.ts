import type { Node } from "../../../../api/kubernetes/core.ts";
import type { ClockOffset } from "../../../../kube/server-time.ts";
import type { KubeClient } from "../../../../kube/client.ts";
import type { Change, Watched } from "../../../../kube/watched.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { MonotonicTimes } from "./condition-times.ts";
import { CurrentNodes } from "./current-nodes.ts";
import { nodeDiffers } from "./compare-nodes.ts";
import { ViewFreshness } from "./view-freshness.ts";

export interface NodeWatchDeps {
  client: KubeClient;
  clock: Clock;
  /** The clock offset of the cluster's API server; undefined if it is not known. */
  clockOffset: ClockOffset | undefined;
}

/** The watched nodes of one cluster, since when their conditions have their status, and whether the view is fresh. */
export class NodeWatch {
  readonly nodes: Watched<Node>;
  readonly times: MonotonicTimes;
  readonly current: CurrentNodes;
  readonly #unsubscribe: () => void;

  /**
   * @param onChange is called for each change of a field that health checks use, but not for nodes that exist already.
   */
  constructor(deps: NodeWatchDeps, nodes: Watched<Node>, onChange: (change: Change<Node>) => void) {
    const { client, clock, clockOffset } = deps;
    const freshness = new ViewFreshness();
    this.nodes = nodes;
    this.times = new MonotonicTimes(clock, clockOffset);
    this.current = new CurrentNodes({ client, clock, nodes, freshness });
    // The process did not observe when the conditions of existing nodes changed.
    let isExisting = true;
    this.#unsubscribe = nodes.subscribe((change) => {
      if (isExisting) return;
      freshness.observe(clock.monotonicMs(), this.times.observe(change));
      if (change.type !== "updated" || nodeDiffers(change.previous, change.object)) onChange(change);
    });
    isExisting = false;
  }

  close(): void {
    this.#unsubscribe();
  }
}
