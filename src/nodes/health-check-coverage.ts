import type { Node } from "../api/kubernetes/core.ts";

/** Whether a health check would remediate a node if that node failed. */
export type CoverageJudge = (node: Node) => boolean;

/**
 * What the health checks that this agent serves cover: the detector adds to it, and the remediator counts with it. It
 * is worked out when it is asked for.
 */
export class HealthCheckCoverage {
  readonly #judges = new Set<() => CoverageJudge>();

  /** @param judge reads the health checks once. It counts until `signal` aborts. */
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
