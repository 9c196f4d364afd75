import type { Registry } from "prom-client";
import type { Timer } from "../runtime/clock.ts";
import { collectedGauge, metric } from "../telemetry/metric.ts";
import { WorkloadConnection } from "./connection.ts";
import type { ClusterConnection, ClusterRef } from "./connection.ts";
import type { LinkDeps } from "./link.ts";

export type { DisconnectReason, ClusterConnection, ClusterRef } from "./connection.ts";
export { kubeconfigSecret } from "./connection.ts";

/** How long a connection without a holder stays: one remediation ends, and the next one begins. */
const LINGER_MS = 60_000;

export const WORKLOAD_CLUSTERS_METRIC = metric({
  name: "ironfence_workload_clusters",
  type: "gauge",
  help: "workload clusters in use, by the state of their connection",
  labels: { state: ["connecting", "connected", "disconnected"] },
});

/** One holder's hand on a workload cluster. */
export interface HeldCluster {
  readonly ref: ClusterRef;
  /** As it is now: read it again each time. */
  readonly connection: ClusterConnection;
  /** To be called when it is not needed any more. */
  release(): void;
}

/** The workload clusters of a management cluster, each connected for as long as a caller holds it. */
export interface WorkloadClusters {
  /**
   * Connects to a cluster, or joins those who have.
   *
   * @param onChange is called after each change of `connection`, never from within `hold`.
   */
  hold(ref: ClusterRef, onChange: () => void): HeldCluster;
}

export interface WorkloadClustersDeps extends LinkDeps {
  registry: Registry;
}

/**
 * Connections to workload clusters through their `<cluster>-kubeconfig` Secrets. Nothing is read before a caller holds
 * one.
 *
 * @param signal ends every connection; `settled` resolves once nothing of them is left.
 */
export function createWorkloadClusters(
  deps: WorkloadClustersDeps,
  signal: AbortSignal,
): WorkloadClusters & { settled(): Promise<void> } {
  const { clock, logger } = deps.runtime;
  const entries = new Map<string, SharedConnection>();
  const ending = new Set<Promise<void>>();
  countStates(deps.registry, entries, signal);

  const open = (ref: ClusterRef): SharedConnection => {
    const stop = new AbortController();
    const holders = new Set<() => void>();
    const notifyListeners = (): void => {
      // A copy: a listener may let go.
      const listeners = [...holders];
      for (const listener of listeners) {
        try {
          listener();
        } catch (error) {
          logger.error({ cluster: `${ref.namespace}/${ref.name}`, err: error }, "a listener failed on a change");
        }
      }
    };
    const connection = new WorkloadConnection(deps, ref, notifyListeners);
    const ended = connection.run(AbortSignal.any([signal, stop.signal])).finally(() => ending.delete(ended));
    ending.add(ended);
    return { connection, holders, stop, linger: undefined };
  };

  return {
    hold: (ref, onChange) => {
      const key = `${ref.namespace}/${ref.name}`;
      const entry = entries.get(key) ?? open(ref);
      entries.set(key, entry);
      entry.linger?.cancel();
      // Of its own, so that one function may hold twice.
      const listener = (): void => onChange();
      entry.holders.add(listener);
      return {
        ref,
        get connection() {
          return entry.connection.state;
        },
        release: () => {
          if (!entry.holders.delete(listener) || entry.holders.size > 0 || signal.aborted) return;
          entry.linger = clock.schedule(LINGER_MS, () => {
            entries.delete(key);
            entry.stop.abort(new Error("no remediation or health check needs this workload cluster any more"));
          });
        },
      };
    },
    settled: async () => {
      for (const { linger } of entries.values()) linger?.cancel();
      await Promise.allSettled(ending);
    },
  };
}

interface SharedConnection {
  connection: WorkloadConnection;
  holders: Set<() => void>;
  stop: AbortController;
  linger: Timer | undefined;
}

function countStates(registry: Registry, entries: ReadonlyMap<string, SharedConnection>, signal: AbortSignal): void {
  collectedGauge(WORKLOAD_CLUSTERS_METRIC, registry, (set) => {
    const counts = { connecting: 0, connected: 0, disconnected: 0 };
    for (const { connection } of entries.values()) counts[connection.state.state] += 1;
    for (const [state, count] of Object.entries(counts)) set({ state }, count);
  });
  // The next term of leadership adds it again.
  signal.addEventListener("abort", () => registry.removeSingleMetric(WORKLOAD_CLUSTERS_METRIC.name), { once: true });
}
