import type { Node } from "../../../api/kubernetes/core.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { CurrentNodes } from "../../shared/views/watched-nodes/current-nodes.ts";
import { isOwnedBy } from "../../shared/model/remediation.ts";
import type { OverdueNodes } from "../../shared/views/overdue-nodes.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { chooseCounts, judgeThreshold, withoutOverdue } from "../decide/threshold.ts";
import type { CompiledNodeCheck, NodeCheckState } from "../snapshot/check-state.ts";
import { isStateOf } from "../snapshot/check-state.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import type { Platform } from "../snapshot/platform.ts";
import { countNodesNow, countLiveNodes, countOverdue, groupByNode } from "../snapshot/snapshot.ts";

export interface NodeStartGuardDeps {
  clock: Clock;
  /** The health checks, each in the newest version known. */
  checks: { get: (key: { name: string }) => HealthCheckObject | undefined };
  nodes: Watched<Node>;
  remediations: RemediationStore;
  currentNodes: CurrentNodes;
  platform: Platform;
  overdue: OverdueNodes | undefined;
}

/**
 * Checks immediately before a remediation is created that it may still start. The check sends no request, and nothing
 * is awaited between the check and the creation.
 */
export class NodeStartGuard {
  readonly #deps: NodeStartGuardDeps;

  constructor(deps: NodeStartGuardDeps) {
    this.#deps = deps;
  }

  /**
   * The node in the view and, if there is a recent one, in the live list; undefined for each in which it does not
   * exist.
   */
  nodesNamed(name: string): (Node | undefined)[] {
    const { nodes, currentNodes } = this.#deps;
    const { liveNodes } = currentNodes;
    const watched = nodes.get({ name });
    return liveNodes === undefined ? [watched] : [watched, liveNodes.get(name)];
  }

  /**
   * Whether a remediation that was decided may still start: the spec is the same, there is no upgrade or conflict, and
   * the threshold is met by the view and by the live list.
   */
  mayStart(check: HealthCheckObject, state: NodeCheckState, { policy, tracker }: CompiledNodeCheck): boolean {
    const { checks, clock, nodes, currentNodes, remediations } = this.#deps;
    const current = checks.get({ name: check.metadata.name });
    if (current === undefined || !isStateOf(state, current) || current.metadata.deletionTimestamp !== undefined)
      return false;
    if (!currentNodes.isKnown) return false;
    const nowMs = clock.nowMs();
    const { liveNodes } = currentNodes;
    // The counts are cached, because this runs before every creation, and usually nothing that they depend on has
    // changed.
    if (state.counts?.countsVersion !== tracker.countsVersion || state.counts.liveNodes !== liveNodes) {
      const platform = this.#deps.platform.read();
      if (platform === "pending" || (platform.upgrading ?? platform.conflict ?? platform.unknown) !== undefined)
        return false;
      const all = [...remediations.values()];
      const watched = countNodesNow(check, tracker, nodes, all, nowMs);
      const live = liveNodes && countLiveNodes(check, tracker, liveNodes, all, nowMs);
      const counts = chooseCounts(policy.threshold, watched, live);
      state.counts = { counts, countsVersion: tracker.countsVersion, liveNodes };
    }
    return judgeThreshold(policy.threshold, state.counts.counts).isMet;
  }

  /**
   * Whether the threshold would also be met if all nodes with an overdue renewal counted as unhealthy. Called after
   * `mayStart`.
   */
  mayStartEarly(check: HealthCheckObject, state: NodeCheckState, { policy, tracker }: CompiledNodeCheck): boolean {
    const { remediations, overdue } = this.#deps;
    if (state.counts === undefined || overdue === undefined) return false;
    const own = groupByNode([...remediations.values()].filter(({ object }) => isOwnedBy(object, check.metadata.uid)));
    const counts = withoutOverdue(state.counts.counts, countOverdue(tracker, own, overdue));
    return judgeThreshold(policy.threshold, counts).isMet;
  }
}
