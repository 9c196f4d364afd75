import { MANUALLY_CONFIRMED_HEALTHY } from "../../../api/annotations.ts";
import type { Node } from "../../../api/core.ts";
import type { Change } from "../../../kube/watched.ts";
import type { Health } from "../decide/health.ts";
import { judgeHealth } from "../decide/health.ts";
import type { Policy } from "../decide/policy.ts";
import type { ConditionTimes } from "../../shared/views/condition-times.ts";

/** If the wall clock differs from the monotonic one by more than this, it was set. */
const CLOCK_SET_MS = 1_000;

/**
 * The nodes that one health check covers, and how each is. It is kept up to date node by node, so that a change costs the
 * same whether there are ten nodes or ten thousand.
 */
export class NodeTracker {
  readonly #policy: Policy;
  readonly #times: ConditionTimes;
  /** How far the wall clock was ahead of the monotonic one when nodes were last judged. */
  #driftMs: number;
  readonly #selected = new Set<string>();
  /** Nodes that are not healthy, or that the operator confirmed. */
  readonly #notable = new Map<string, { node: Node; health: Health }>();
  #countsVersion = 0;

  constructor(policy: Policy, nodes: Iterable<Node>, nowMs: number, times: ConditionTimes) {
    this.#policy = policy;
    this.#times = times;
    this.#driftMs = nowMs - times.nowMs();
    for (const node of nodes) this.#take(node, nowMs);
  }

  /** The same for other nodes, or for the same ones as they were seen elsewhere. */
  over(nodes: Iterable<Node>, nowMs: number): NodeTracker {
    return new NodeTracker(this.#policy, nodes, nowMs, this.#times);
  }

  /** Changes whenever a node comes to be selected or not, or to be healthy or not: what counts of nodes are made of. */
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
  get notable(): ReadonlyMap<string, { node: Node; health: Health }> {
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

  /** Judges those nodes again whose duration is over; after the wall clock was set, all whose duration runs. */
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

  /** How a node is by this health check's conditions, selected or not. */
  judge(node: Node, nowMs: number): Health {
    const { conditions } = node.status;
    const driftMs = nowMs - this.#times.nowMs();
    return judgeHealth(this.#policy.rules, conditions, nowMs, (condition) => {
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
