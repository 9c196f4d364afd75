import { CONFIG_MAPS } from "../api/core-types.ts";
import type { ConfigMap } from "../api/core.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../api/stop-switch.ts";
import { trimMeta } from "../api/trim.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { Change, Watched } from "../kube/watched.ts";

/** The cluster-wide switch that stops every new power order. */
export interface StopSwitch {
  /** Why no new power order may be sent; undefined where one may. Before the switch has been read it is stopped. */
  readonly stopped: { reason: string } | undefined;
  /** Whether the switch has been read. */
  readonly known: boolean;
  /** Calls `listener` whenever `stopped` or `known` may have changed. */
  subscribe(listener: () => void): () => void;
}

/** Watches the stop switch (`api/stop-switch.ts`) in the agent's own namespace until `signal` aborts. */
export function watchStopSwitch(runtime: KubeRuntime, namespace: string, signal: AbortSignal): StopSwitch {
  const view = runtime.watch<ConfigMap>(
    {
      type: CONFIG_MAPS,
      namespace,
      fieldSelector: `metadata.name=${STOP_SWITCH_NAME}`,
      trim: (raw) => (raw.metadata.name === STOP_SWITCH_NAME ? trimSwitch(raw) : undefined),
    },
    signal,
  );
  return stopSwitchOf(runtime, view, namespace, signal);
}

function stopSwitchOf(
  runtime: KubeRuntime,
  view: Watched<ConfigMap>,
  namespace: string,
  signal: AbortSignal,
): StopSwitch {
  const listeners = new Set<() => void>();
  const notify = (): void => {
    for (const listener of listeners) listener();
  };
  const unsubscribe = view.subscribe((change) => {
    logChange(runtime, change);
    notify();
  });
  signal.addEventListener("abort", unsubscribe, { once: true });
  // An empty first list changes nothing in the view, yet ends the time in which the switch is not known.
  view.whenSynced(signal).then(notify, () => undefined);
  return {
    get known() {
      return view.synced;
    },
    get stopped() {
      if (!view.synced) {
        const notRead = `the stop switch (ConfigMap ${namespace}/${STOP_SWITCH_NAME}) is not read yet`;
        return { reason: view.problem === undefined ? notRead : `${notRead}: ${view.problem}` };
      }
      const configMap = view.get({ namespace, name: STOP_SWITCH_NAME });
      return stoppedBy(configMap);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function trimSwitch(raw: KubeObject): ConfigMap {
  const { data } = raw as ConfigMap;
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: trimMeta(raw.metadata, []),
    ...(data !== undefined && { data }),
  };
}

function logChange(runtime: KubeRuntime, change: Change<ConfigMap>): void {
  const stopped = stoppedBy(change.type === "deleted" ? undefined : change.object);
  if (stopped === undefined) runtime.logger.info("power orders are allowed: the stop switch is off");
  else runtime.logger.warn({ reason: stopped.reason }, "no new power orders: the stop switch is on");
}
