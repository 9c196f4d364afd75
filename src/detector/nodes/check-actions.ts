import { NODE_HEALTH_CHECKS } from "../../api/ironfence/node-health-check.ts";
import type { RemediationListener } from "../shared/model/started-remediation.ts";
import { describeRemedy } from "../shared/model/started-remediation.ts";
import type { Reconcile } from "../shared/shell/health-check-shell.ts";
import type { FencingTargetWatch } from "../shared/views/fencing-target-watch.ts";
import type { CurrentNodes } from "../shared/views/watched-nodes/current-nodes.ts";
import type { NodeCheckDecision } from "./decide/decision.ts";
import type { NodeActionEvent } from "./decide/observe.ts";
import { announceNodeEvent } from "./decide/observe.ts";
import type { NodeActionContext, NodeActionDeps } from "./effects/action-context.ts";
import type { SingleNodeAction } from "./effects/actions.ts";
import { runNodeAction } from "./effects/actions.ts";
import type { NodeHealthCheckMetrics } from "./effects/metrics.ts";
import type { NodeStartGuard } from "./effects/start-guard.ts";
import type { CompiledNodeCheck, NodeCheckState } from "./snapshot/check-state.ts";
import type { HealthCheckObject } from "./snapshot/health-check.ts";
import type { Platform } from "./snapshot/platform.ts";

/** If more actions than this run at the same time, they share one proof that the view of the nodes is current. */
const READ_EACH_MAX = 32;

export interface NodeCheckActionsDeps {
  actionDeps: NodeActionDeps;
  currentNodes: CurrentNodes;
  fencingTargets: Pick<FencingTargetWatch, "hostOf">;
  platform: Platform;
  startGuard: NodeStartGuard;
  metrics: NodeHealthCheckMetrics;
  listener: RemediationListener | undefined;
}

export type NodeReconcile = Reconcile<HealthCheckObject, SingleNodeAction, NodeActionEvent, NodeCheckDecision>;

/** Runs the actions of NodeHealthChecks, and takes what they yield into the states of the health checks. */
export class NodeCheckActions {
  readonly #deps: NodeCheckActionsDeps;
  /**
   * Nodes for which a remediation is being created, each with its health check, so that two reconciles never start one
   * for the same node.
   */
  readonly starting = new Map<string, string>();

  constructor(deps: NodeCheckActionsDeps) {
    this.#deps = deps;
  }

  /** What the shell calls for the actions of one health check. */
  of(
    state: NodeCheckState,
    compiled: CompiledNodeCheck,
    check: HealthCheckObject,
  ): Pick<NodeReconcile, "begin" | "run" | "observe" | "end"> {
    let runningCount = 0;
    const readNode: NodeActionContext["readNode"] = (name, signal) =>
      this.#deps.currentNodes.readNode(name, runningCount > READ_EACH_MAX, signal);
    return {
      begin: (check, actions) => {
        runningCount += actions.length;
        state.counts = undefined;
        for (const action of actions) {
          if (action.type === "create") this.starting.set(action.node.metadata.name, check.metadata.name);
        }
      },
      run: (check, action, signal) =>
        runNodeAction(this.#deps.actionDeps, { ...this.#contextOf(check, state, compiled), readNode }, action, signal),
      observe: (event) => {
        if (event.type === "created" && event.skipped?.isEarly === true) this.#deps.metrics.countEarly();
        if (event.type === "markedOld") this.#deps.metrics.countOld(event.nodeName);
        this.#report(check, event);
        if ("nodeName" in event) state.observations.add(event.nodeName, event);
        return announceNodeEvent(event);
      },
      end: (action) => {
        runningCount -= 1;
        if (action.type !== "create") return;
        const { name } = action.node.metadata;
        this.starting.delete(name);
        // The remediation now counts. If its node already counted as unhealthy, the counts stay the same.
        if (!compiled.tracker.isNotHealthy(name)) state.counts = undefined;
      },
    };
  }

  /** Reports to the listener what an action has started or ended. */
  #report(check: HealthCheckObject, event: NodeActionEvent): void {
    const { listener } = this.#deps;
    const healthCheck = `${NODE_HEALTH_CHECKS.kind} ${check.metadata.name}`;
    if (event.type === "created") {
      const { node, because, remediation } = event;
      const remedy = describeRemedy(remediation);
      listener?.started({ healthCheck, subject: node.metadata.name, about: node, remedy, because });
    }
    // The remediation lease is released when the node needs no remediation and none is left.
    if (event.type === "leaseReleased") listener?.ended({ healthCheck, subject: event.nodeName });
  }

  #contextOf(
    check: HealthCheckObject,
    state: NodeCheckState,
    compiled: CompiledNodeCheck,
  ): Omit<NodeActionContext, "readNode"> {
    const platform = this.#deps.platform.read();
    return {
      check,
      ...compiled,
      isOkd: platform !== "pending" && platform.isOkd,
      confirmNodes: (signal) => this.#deps.currentNodes.confirm(signal),
      mayStart: () => this.#deps.startGuard.mayStart(check, state, compiled),
      mayStartEarly: () => this.#deps.startGuard.mayStartEarly(check, state, compiled),
      nodesNamed: (nodeName) => this.#deps.startGuard.nodesNamed(nodeName),
      hostOf: (nodeName) => this.#deps.fencingTargets.hostOf(nodeName),
    };
  }
}
