import type { Registry } from "prom-client";
import type { Timer } from "../runtime/clock.ts";
import { collectedGauge, metric } from "../telemetry/metric.ts";
import { WorkloadConnection } from "./connection.ts";
import type { ClusterConnection, ClusterRef } from "./connection.ts";
import type { LinkDeps } from "./link.ts";

export type { DisconnectReason, ClusterConnection, ClusterRef } from "./connection.ts";
export { kubeconfigSecret } from "./connection.ts";

/**
 * How long a connection stays open without a holder, because the next remediation may begin soon after the last one
 * ended.
 */
const LINGER_MS = 60_000;

export const WORKLOAD_CLUSTERS_METRIC = metric({
  name: "ironfence_workload_clusters",
  type: "gauge",
  help: "workload clusters in use, by the state of their connection",
  labels: { state: ["connecting", "connected", "disconnected"] },
});

/** A workload cluster that a caller holds. */
export interface HeldCluster {
  readonly ref: ClusterRef;
  /** The connection as of now. Do not keep it: read it again each time. */
  readonly connection: ClusterConnection;
  /** Call it when the cluster is no longer needed. */
  release(): void;
}

/** The workload clusters of a management cluster. Each is connected while a caller holds it. */
export interface WorkloadClusters {
  /**
   * Connects to a cluster, or shares the existing connection.
   *
   * @param onChange is called after each change of `connection`, never from within `hold`.
   */
  hold(ref: ClusterRef, onChange: () => void): HeldCluster;
}

export interface WorkloadClustersDeps extends LinkDeps {
  registry: Registry;
}

/**
 * Connections to workload clusters through their `<cluster>-kubeconfig` Secrets. A Secret is read only while a caller
 * holds its cluster.
 *
 * @param signal ends every connection. `settled` resolves when all of them are closed.
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
      // A copy, because a listener may call `release`.
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
      // A new function, so that the same `onChange` may be passed twice.
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
  // The next term of leadership registers it again.
  signal.addEventListener("abort", () => registry.removeSingleMetric(WORKLOAD_CLUSTERS_METRIC.name), { once: true });
}
