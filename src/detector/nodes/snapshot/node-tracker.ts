import { MANUALLY_CONFIRMED_HEALTHY } from "../../../api/names/annotations.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { Change } from "../../../kube/watched.ts";
import type { NodeHealth } from "../decide/health.ts";
import { judgeHealth } from "../decide/health.ts";
import type { NodePolicy } from "../decide/policy.ts";
import type { ConditionTimes } from "../../shared/views/condition-times.ts";

/** If the wall clock differs from the monotonic one by more than this, it was set. */
const CLOCK_SET_MS = 1_000;

/**
 * The nodes that one health check covers, and the health of each. It is updated node by node, so that a change costs
 * the same for ten nodes and for ten thousand.
 */
export class NodeTracker {
  readonly #policy: NodePolicy;
  readonly #times: ConditionTimes;
  /** How far the wall clock was ahead of the monotonic one when nodes were last judged. */
  #driftMs: number;
  readonly #selected = new Set<string>();
  /** Nodes that are not healthy, or that the operator confirmed. */
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

  /** Increases when a node becomes selected or not, or healthy or not, which is what the counts depend on. */
  get countsVersion(): number {
    return this.#countsVersion;
  }

  /** Whether the node is selected and not healthy. */
  isNotHealthy(name: string): boolean {
    const found = this.#notable.get(name);
    return found !== undefined && found.health.state !== "healthy";
  }

  /** How many nodes the selector covers. */
  get selectedNodes(): number {
    return this.#selected.size;
  }

  selects(name: string): boolean {
    return this.#selected.has(name);
  }

  /** The selected nodes that are not healthy, or that the operator confirmed, by name. */
  get notable(): ReadonlyMap<string, { node: Node; health: NodeHealth }> {
    return this.#notable;
  }

  /** @returns whether the health check's decision may differ for it. */
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

  /** Judges the nodes again whose duration is over. If the wall clock was set, judges all nodes whose duration runs. */
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

  /** The health of a node by the conditions of this health check, whether it is selected or not. */
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
