import { MANUALLY_CONFIRMED_HEALTHY } from "../../../api/names/annotations.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { Change } from "../../../kube/watched.ts";
import type { NodeHealth } from "../decide/health.ts";
import { judgeHealth } from "../decide/health.ts";
import type { NodePolicy } from "../decide/policy.ts";
import type { ConditionTimes } from "../../shared/views/watched-nodes/condition-times.ts";

/**
 * If the difference between the wall clock and the monotonic clock changes by more than this, the wall clock was set.
 */
const CLOCK_SET_MS = 1_000;

/**
 * The nodes that one health check selects, and the health of each. Each change updates one node, so that it costs the
 * same with ten nodes and with ten thousand.
 */
export class NodeTracker {
  readonly #policy: NodePolicy;
  readonly #times: ConditionTimes;
  /** How far the wall clock was ahead of the monotonic clock when all nodes were last judged. */
  #driftMs: number;
  readonly #selected = new Set<string>();
  /** The selected nodes that are not healthy, or that the operator confirmed to be healthy. */
  readonly #notable = new Map<string, { node: Node; health: NodeHealth }>();
  #countsVersion = 0;

  constructor(policy: NodePolicy, nodes: Iterable<Node>, nowMs: number, times: ConditionTimes) {
    this.#policy = policy;
    this.#times = times;
    this.#driftMs = nowMs - times.nowMs();
    for (const node of nodes) this.#take(node, nowMs);
  }

  /** A tracker with the same policy for other nodes, such as those of a live list. */
  over(nodes: Iterable<Node>, nowMs: number): NodeTracker {
    return new NodeTracker(this.#policy, nodes, nowMs, this.#times);
  }

  /**
   * Increases whenever a change of a node may change the counts: when it begins or ceases to be selected or healthy.
   */
  get countsVersion(): number {
    return this.#countsVersion;
  }

  /** Whether the node is selected and not healthy. */
  isNotHealthy(name: string): boolean {
    const found = this.#notable.get(name);
    return found !== undefined && found.health.state !== "healthy";
  }

  /** How many nodes the selector matches. */
  get selectedNodes(): number {
    return this.#selected.size;
  }

  selects(name: string): boolean {
    return this.#selected.has(name);
  }

  /** The selected nodes that are not healthy, or that the operator confirmed to be healthy, by name. */
  get notable(): ReadonlyMap<string, { node: Node; health: NodeHealth }> {
    return this.#notable;
  }

  /** @returns whether the decision of the health check may change. */
  observe(change: Change<Node>, nowMs: number): boolean {
    const { name } = change.object.metadata;
    const wasSelected = this.#selected.has(name);
    const before = this.#notable.get(name);
    const wasNotHealthy = this.isNotHealthy(name);
    this.#selected.delete(name);
    this.#notable.delete(name);
    if (change.type !== "deleted") this.#take(change.object, nowMs);
    if (wasSelected !== this.#selected.has(name) || wasNotHealthy !== this.isNotHealthy(name)) this.#countsVersion += 1;
    return wasSelected !== this.#selected.has(name) || before !== undefined || this.#notable.has(name);
  }

  /**
   * Judges again the nodes whose duration is over. If the wall clock was set, judges all nodes that are
   * `soonUnhealthy`.
   */
  advance(nowMs: number): void {
    const driftMs = nowMs - this.#times.nowMs();
    const wasSet = Math.abs(driftMs - this.#driftMs) > CLOCK_SET_MS;
    if (wasSet) this.#driftMs = driftMs;
    for (const [name, { node, health }] of this.#notable) {
      if (health.state === "soonUnhealthy" && (wasSet || health.untilMs <= nowMs)) {
        this.#notable.set(name, { node, health: this.judge(node, nowMs) });
        if (!this.isNotHealthy(name)) this.#countsVersion += 1;
      }
    }
  }

  /** The health of a node by the conditions of this health check, even if the node is not selected. */
  judge(node: Node, nowMs: number): NodeHealth {
    const { conditions } = node.status;
    const driftMs = nowMs - this.#times.nowMs();
    return judgeHealth(this.#policy.unhealthyConditions, conditions, nowMs, (condition) => {
      const sinceMs = this.#times.sinceMs(node.metadata.name, condition);
      return sinceMs === undefined ? undefined : sinceMs + driftMs;
    });
  }

  #take(node: Node, nowMs: number): void {
    const { name, labels, annotations } = node.metadata;
    if (!this.#policy.selects(labels)) return;
    this.#selected.add(name);
    const health = this.judge(node, nowMs);
    if (health.state !== "healthy" || annotations?.[MANUALLY_CONFIRMED_HEALTHY] !== undefined) {
      this.#notable.set(name, { node, health });
    }
  }
}
