import type { Node } from "../../../api/core.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { CurrentNodes } from "../../shared/views/current-nodes.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { countThatCounts, judgeThreshold } from "../decide/threshold.ts";
import type { Compiled, NodeCheckState } from "../snapshot/check-state.ts";
import { isStateOf } from "../snapshot/check-state.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import type { Platform } from "../snapshot/platform.ts";
import { takeCensusNow, takeLiveCensus } from "../snapshot/snapshot.ts";

export interface LastCheckDeps {
  clock: Clock;
  /** The health checks, each in the newest version known. */
  checks: { get: (key: { name: string }) => HealthCheckObject | undefined };
  nodes: Watched<Node>;
  remediations: RemediationStore;
  currentNodes: CurrentNodes;
  platform: Platform;
}

/** What is known right before a remediation is created, without a request: nothing is awaited between this and the creation. */
export class LastCheck {
  readonly #deps: LastCheckDeps;

  constructor(deps: LastCheckDeps) {
    this.#deps = deps;
  }

  /** A node in the view, and in a list if there is a recent one; undefined: it is gone. */
  nodesNamed(name: string): (Node | undefined)[] {
    const { nodes, currentNodes } = this.#deps;
    const { listed } = currentNodes;
    const watched = nodes.get({ name });
    return listed === undefined ? [watched] : [watched, listed.get(name)];
  }

  /**
   * Whether a remediation that was decided on may still start: same spec, no upgrade or conflict, and the threshold holds as
   * things are now, by the view and by a list.
   */
  mayStart(check: HealthCheckObject, state: NodeCheckState, { policy, tracker }: Compiled): boolean {
    const { checks, clock, nodes, currentNodes, remediations } = this.#deps;
    const current = checks.get({ name: check.metadata.name });
    if (current === undefined || !isStateOf(state, current) || current.metadata.deletionTimestamp !== undefined)
      return false;
    if (!currentNodes.isKnown) return false;
    const nowMs = clock.nowMs();
    const { listed } = currentNodes;
    // Checked before every creation, when nearly always the only change is one more remediation.
    if (state.census?.countsVersion !== tracker.countsVersion || state.census.listed !== listed) {
      const platform = this.#deps.platform.read();
      if (platform === "pending" || (platform.upgrading ?? platform.conflict ?? platform.unknown) !== undefined)
        return false;
      const all = [...remediations.values()];
      const watched = takeCensusNow(check, tracker, nodes, all, nowMs);
      const live = listed && takeLiveCensus(check, tracker, listed, all, nowMs);
      const census = countThatCounts(policy.threshold, watched, live);
      state.census = { census, countsVersion: tracker.countsVersion, listed };
    }
    return judgeThreshold(policy.threshold, state.census.census).isMet;
  }
}
