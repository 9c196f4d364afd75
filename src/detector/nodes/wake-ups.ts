import type { Node } from "../../api/kubernetes/core.ts";
import type { Change } from "../../kube/watched.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { RemediationObject } from "../shared/model/remediation.ts";
import { isOwnedBy } from "../shared/model/remediation.ts";
import type { HealthCheckStore } from "../shared/shell/health-check-store.ts";
import type { NodeHealthCheckMetrics } from "./effects/metrics.ts";
import type { HealthCheckObject } from "./snapshot/health-check.ts";
import type { NodeCheckStates } from "./snapshot/peers.ts";
import { dropCounts } from "./snapshot/peers.ts";

export interface NodeCheckWakeUpsDeps {
  clock: Clock;
  states: NodeCheckStates;
  checks: HealthCheckStore<HealthCheckObject>;
  metrics: NodeHealthCheckMetrics;
  /** Whether the host of a node is proven off before the duration of the node is over. */
  isProvenEarly: (nodeName: string) => boolean;
  enqueue: (checkName: string) => void;
  enqueueAll: () => void;
}

/** Enqueues the health checks that a change concerns, and takes the change into their states. */
export class NodeCheckWakeUps {
  readonly #deps: NodeCheckWakeUpsDeps;

  constructor(deps: NodeCheckWakeUpsDeps) {
    this.#deps = deps;
  }

  onNode(change: Change<Node>): void {
    const { name } = change.object.metadata;
    const { clock, metrics } = this.#deps;
    const nowMs = clock.nowMs();
    if (change.type === "deleted") metrics.nodeGone(name, clock.monotonicMs());
    else if (change.type === "added") metrics.nodeBack(name);
    for (const [checkName, state] of this.#deps.states.entries()) {
      if ("problem" in state.compiled) continue;
      state.observations.add(name, { type: "nodeChanged" });
      const matters = state.compiled.tracker.observe(change, nowMs);
      if (matters || state.reportedNodes.has(name)) this.#deps.enqueue(checkName);
    }
  }

  onCheck(change: Change<HealthCheckObject>): void {
    const { name, generation } = change.object.metadata;
    const isOwnStatus = change.type === "updated" && change.previous.metadata.generation === generation;
    if (isOwnStatus) this.#deps.enqueue(name);
    // Reconcile all, because health checks depend on each other: two may select the same node, and control plane nodes
    // are remediated one at a time.
    else this.#deps.enqueueAll();
    if (change.type === "deleted") {
      this.#deps.metrics.forget(name, this.#deps.checks.newest(change.object).status);
      this.#deps.enqueue(name);
    }
  }

  onRemediation(change: Change<RemediationObject> | undefined): void {
    dropCounts(this.#deps.states, change);
    // Another health check may wait for the end of this remediation.
    if (change === undefined || change.type === "deleted") return this.#deps.enqueueAll();
    for (const [name, state] of this.#deps.states.entries())
      if (isOwnedBy(change.object, state.uid)) this.#deps.enqueue(name);
  }

  onHostPower(nodeName: string | undefined): void {
    for (const [name, { compiled, reportedNodes }] of this.#deps.states.entries()) {
      if ("problem" in compiled) continue;
      // The cause of the node's last failed remediation may be fixed.
      const isAwaited = nodeName !== undefined && reportedNodes.has(nodeName);
      const { policy, tracker } = compiled;
      const isAsked = policy.skipsDurationIfOff && (nodeName === undefined || tracker.isNotHealthy(nodeName));
      const isEarly =
        policy.beginsEarly &&
        (nodeName === undefined || (tracker.selects(nodeName) && this.#deps.isProvenEarly(nodeName)));
      if (isAwaited || isAsked || isEarly) this.#deps.enqueue(name);
    }
  }
}
