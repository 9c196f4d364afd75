import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { Watched } from "../../kube/watched.ts";
import { sleep } from "../../runtime/clock.ts";
import type { RemediatorMetrics } from "../telemetry/metrics.ts";
import { isFinal } from "../machine/model/decision/state.ts";

/** How often the views are checked. */
const CHECK_INTERVAL_MS = 10_000;
/**
 * A view is stale after this time without contact. A working watch receives a bookmark each minute, and a silent watch
 * is opened again after 90 s.
 */
const SILENT_MAX_MS = 150_000;
/**
 * A view is stale if its problem lasts this long. Shorter problems are normal: a watch is opened again, or an API
 * server restarts.
 */
const TROUBLED_MAX_MS = 50_000;

export type ViewHealth = Pick<Watched<KubeObject>, "synced" | "lastContactMs" | "problem">;

export interface StaleViewsDeps {
  runtime: Pick<KubeRuntime, "clock" | "logger" | "events">;
  /** The views on which the remediator bases decisions, by kind. */
  views: ReadonlyMap<string, ViewHealth>;
  remediations: Pick<Watched<BareMetalRemediation>, "values">;
  metrics: Pick<RemediatorMetrics, "staleViews">;
}

/**
 * Reports views that may be stale: by a log line, a metric, and a warning on each remediation without a verdict.
 * Meanwhile, decisions are safe because of their live reads, but a change that only a watch shows goes unnoticed. It
 * resolves when `signal` aborts.
 */
export async function reportStaleViews(deps: StaleViewsDeps, signal: AbortSignal): Promise<void> {
  const { clock, logger } = deps.runtime;
  const troubledSinceMs = new Map<string, number>();
  const reported = new Set<string>();
  for (;;) {
    // Does not reject on abort: the caller would then no longer wait for its other tasks to end.
    await sleep(clock, CHECK_INTERVAL_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    const nowMs = clock.monotonicMs();
    for (const [kind, view] of deps.views) {
      if (view.problem === undefined) troubledSinceMs.delete(kind);
      else if (!troubledSinceMs.has(kind)) troubledSinceMs.set(kind, nowMs);
      const troubledMs = nowMs - (troubledSinceMs.get(kind) ?? nowMs);
      const isStale = view.synced && (troubledMs >= TROUBLED_MAX_MS || nowMs - view.lastContactMs >= SILENT_MAX_MS);
      if (!isStale && reported.delete(kind)) logger.info({ kind }, "the view is up to date again");
      if (!isStale || reported.has(kind)) continue;
      reported.add(kind);
      const why = view.problem ?? "nothing is received on its watch";
      logger.warn({ kind, why }, "the view may be stale");
      warn(deps, `the agent's view of ${kind} may be minutes old: ${why}`);
    }
    deps.metrics.staleViews(reported.size);
  }
}

function warn({ runtime, remediations }: StaleViewsDeps, note: string): void {
  for (const regarding of remediations.values()) {
    const { phase } = regarding.status ?? {};
    if (isFinal(phase)) continue;
    runtime.events.record({ regarding, type: "Warning", reason: "ViewStale", action: phase ?? "Resolving", note });
  }
}
