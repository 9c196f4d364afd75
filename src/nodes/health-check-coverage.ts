import type { Node } from "../api/kubernetes/core.ts";

/** Whether a health check would remediate a node if that node failed. */
export type CoverageJudge = (node: Node) => boolean;

/**
 * The nodes that the health checks of this agent cover. The detector adds its health checks, and the remediator counts
 * the nodes. The coverage is computed by each call of `judge`.
 */
export class HealthCheckCoverage {
  readonly #judges = new Set<() => CoverageJudge>();

  /** @param judge reads the current health checks. It is used until `signal` aborts. */
  add(judge: () => CoverageJudge, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#judges.add(judge);
    signal.addEventListener("abort", () => this.#judges.delete(judge), { once: true });
  }

  judge(): CoverageJudge {
    const judges = [...this.#judges].map((read) => read());
    return (node) => judges.some((covers) => covers(node));
  }
}
