import { CONFIG_MAPS } from "../api/core-types.ts";
import type { ConfigMap } from "../api/core.ts";
import { trimMeta } from "../api/trim.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { Change, Watched } from "../kube/watched.ts";

/** Name of the ConfigMap, in the agent's own namespace, that stops every new power order while it is there. */
export const PAUSE_CONFIG_MAP = "ironfence-pause";

/** The cluster-wide switch that stops every new power order. */
export interface StopSwitch {
  /** Why no new power order may be sent; undefined where one may. Before the switch has been read it is stopped. */
  readonly stopped: { reason: string } | undefined;
  /** Whether the switch has been read. */
  readonly known: boolean;
  /** Calls `listener` whenever `stopped` or `known` may have changed. */
  subscribe(listener: () => void): () => void;
}

/**
 * Watches the ConfigMap `ironfence-pause` until `signal` aborts. It stops power orders while it exists, unless its
 * `data.paused` is `false`: somebody who creates it in a hurry and misspells the value means to stop. `data.reason` says why.
 */
export function watchStopSwitch(runtime: KubeRuntime, namespace: string, signal: AbortSignal): StopSwitch {
  const view = runtime.watch<ConfigMap>(
    {
      type: CONFIG_MAPS,
      namespace,
      fieldSelector: `metadata.name=${PAUSE_CONFIG_MAP}`,
      trim: (raw) => (raw.metadata.name === PAUSE_CONFIG_MAP ? trimSwitch(raw) : undefined),
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
      if (!view.synced)
        return { reason: `the stop switch (ConfigMap ${namespace}/${PAUSE_CONFIG_MAP}) is not read yet` };
      const configMap = view.get({ namespace, name: PAUSE_CONFIG_MAP });
      return configMap === undefined ? undefined : stoppedBy(configMap);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** What one ConfigMap says; pure. */
function stoppedBy(configMap: ConfigMap): { reason: string } | undefined {
  const paused = configMap.data?.["paused"]?.trim();
  if (paused === "false") return undefined;
  const { namespace, name } = configMap.metadata;
  const who = `ConfigMap ${namespace}/${name}`;
  const reason = configMap.data?.["reason"]?.trim();
  if (reason !== undefined && reason !== "") return { reason: `paused by ${who}: ${reason}` };
  if (paused === "true") return { reason: `paused by ${who}` };
  return {
    reason: `paused by ${who}, although its data.paused is not "true": delete it or set it to "false" to resume`,
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
  const stopped = change.type === "deleted" ? undefined : stoppedBy(change.object);
  if (stopped === undefined) runtime.logger.info("power orders are allowed: the stop switch is off");
  else runtime.logger.warn({ reason: stopped.reason }, "no new power orders: the stop switch is on");
}
