import type { Node } from "../../../api/core.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { ActionContext, ActionDeps, SingleAction } from "./actions.ts";
import { actionKey, takeAction } from "./actions.ts";
import type { Announcer } from "./announcer.ts";
import { countThatCounts, judgeThreshold } from "../decide/threshold.ts";
import type { CheckState, Compiled } from "../snapshot/check-state.ts";
import { isStateOf } from "../snapshot/check-state.ts";
import type { HealthCheckStore } from "./check-store.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import type { HostPower } from "../../shared/views/fencing-target-watch.ts";
import type { Platform } from "../snapshot/platform.ts";
import type { PresentNodes } from "../../shared/views/current-nodes.ts";
import { sideBySide } from "../../shared/shell/parallel.ts";
import { takeCensusNow, takeLiveCensus } from "../snapshot/snapshot.ts";

/** Requests of one pass under way at a time: many nodes may die at once. */
const ACTIONS_PARALLEL_MAX = 32;

export interface ActionRunnerDeps extends ActionDeps {
  checks: HealthCheckStore;
  nodes: Watched<Node>;
  present: PresentNodes;
  platform: Platform;
  hostPower: Pick<HostPower, "readSight" | "sightOf">;
  announcer: Announcer;
}

/** Takes the actions that a pass has decided on. */
export class ActionRunner {
  readonly #deps: ActionRunnerDeps;
  /** Nodes for which a CR is being created, by the name of the health check: two passes must not both start. */
  readonly #starting = new Map<string, string>();

  constructor(deps: ActionRunnerDeps) {
    this.#deps = deps;
  }

  /** Nodes for which a CR is being created at this moment, and by which health check. */
  get starting(): ReadonlyMap<string, string> {
    return this.#starting;
  }

  /** Takes the actions side by side. @returns what failed; one failure never keeps the others from being taken. */
  takeAll(
    check: HealthCheckObject,
    state: CheckState,
    compiled: Compiled,
    actions: readonly SingleAction[],
    signal: AbortSignal,
  ): Promise<unknown[]> {
    const { logger } = this.#deps;
    const creations = actions.flatMap((action) => (action.type === "create" ? [action.node] : []));
    for (const node of creations) this.#starting.set(node.metadata.name, check.metadata.name);
    const context = this.#contextOf(check, state, compiled);
    state.census = undefined;
    return sideBySide(actions, ACTIONS_PARALLEL_MAX, async (action) => {
      try {
        await takeAction(this.#deps, context, action, signal);
        // It counts from now on, which makes no difference as long as its node counted as unhealthy anyway.
        if (action.type === "create" && !compiled.tracker.isAiling(action.node.metadata.name)) state.census = undefined;
      } catch (error) {
        const fields = { nodeHealthCheck: check.metadata.name, action: actionKey(action) };
        if (!signal.aborted) logger.warn({ err: error, ...fields }, "an action failed");
        throw error;
      } finally {
        if (action.type === "create") this.#starting.delete(action.node.metadata.name);
      }
    });
  }

  #contextOf(check: HealthCheckObject, state: CheckState, compiled: Compiled): ActionContext {
    const { announcer, hostPower, present } = this.#deps;
    const platform = this.#deps.platform.read();
    return {
      check,
      ...compiled,
      state,
      isOkd: platform !== "pending" && platform.isOkd,
      confirmNodes: (signal) => present.confirm(signal),
      mayStart: () => this.#mayStart(check, state, compiled),
      looksOf: (nodeName) => this.#looksOf(nodeName),
      sightOf: (nodeName) => hostPower.sightOf(nodeName),
      tell: (type, reason, note, related) => announcer.tell(check, { type, reason, note }, related),
    };
  }

  #looksOf(name: string): (Node | undefined)[] {
    const { nodes, present } = this.#deps;
    const { listed } = present;
    const seen = nodes.get({ name });
    return listed === undefined ? [seen] : [seen, listed.get(name)];
  }

  /**
   * Whether a remediation that was decided on may still start: same spec, no upgrade or conflict, and the threshold holds as
   * things are now, whether the view shows them so or a list.
   */
  #mayStart(check: HealthCheckObject, state: CheckState, { policy, tracker }: Compiled): boolean {
    const { checks, clock, nodes, present, remediations } = this.#deps;
    const current = checks.get(check.metadata.name);
    if (current === undefined || !isStateOf(state, current) || current.metadata.deletionTimestamp !== undefined)
      return false;
    if (!present.isKnown) return false;
    const nowMs = clock.nowMs();
    const { listed } = present;
    // Asked for every creation, while nearly always nothing has changed but that there is one remediation more.
    if (state.census?.countsVersion !== tracker.countsVersion || state.census.listed !== listed) {
      const platform = this.#deps.platform.read();
      if (platform === "pending" || (platform.upgrading ?? platform.conflict ?? platform.unknown) !== undefined)
        return false;
      const all = [...remediations.values()];
      const seen = takeCensusNow(check, tracker, nodes, all, nowMs);
      const live = listed && takeLiveCensus(check, tracker, listed, all, nowMs);
      const census = countThatCounts(policy.threshold, seen, live);
      state.census = { census, countsVersion: tracker.countsVersion, listed };
    }
    return judgeThreshold(policy.threshold, state.census.census).holds;
  }
}
