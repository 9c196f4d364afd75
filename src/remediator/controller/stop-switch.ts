import { CONFIG_MAPS } from "../../api/kubernetes/core-types.ts";
import type { ConfigMap } from "../../api/kubernetes/core.ts";
import type { Pause } from "../../api/ironfence/stop-switch.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../../api/ironfence/stop-switch.ts";
import { trimMeta } from "../../api/kubernetes/trim.ts";
import { findObject } from "../../kube/objects/find-object.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { serverTimeMs } from "../../kube/server-time.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { Watched } from "../../kube/watched.ts";
import type { Timer } from "../../runtime/clock.ts";
import type { PauseReason } from "../machine/model/facts/hold.ts";

/**
 * How often the end of a pause is checked. The pause ends by the clock of the API server, which may be changed
 * meanwhile.
 */
const RECHECK_MAX_MS = 30_000;

/** The cluster-wide switch that stops every new power-off. */
export interface StopSwitch {
  /**
   * Why no new power-off may be sent; undefined if one may be sent. Power-offs are held until the switch has been
   * read.
   */
  readonly stopped: PauseReason | undefined;
  /** Whether the switch has been read. */
  readonly known: boolean;
  /** Why no new power-off may be sent, by a live read. @throws KubeError */
  read(signal: AbortSignal): Promise<PauseReason | undefined>;
  /** Calls `listener` whenever `stopped` or `known` may have changed. */
  subscribe(listener: () => void): () => void;
}

/** Watches the stop switch (`api/ironfence/stop-switch.ts`) in the agent's own namespace until `signal` aborts. */
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
  const end = new PauseEnd(runtime, () => {
    runtime.logger.info("power-offs are allowed: the pause has ended");
    notify();
  });
  const unsubscribe = view.subscribe((change) => {
    const pause = stoppedBy(change.type === "deleted" ? undefined : change.object, serverTimeMs(runtime));
    logPause(runtime, pause);
    end.follow(pause);
    notify();
  });
  const stop = (): void => {
    unsubscribe();
    end.follow(undefined);
  };
  signal.addEventListener("abort", stop, { once: true });
  // An empty first list causes no change event, but the switch is known from then on.
  view.whenSynced(signal).then(notify, () => undefined);
  return {
    get known() {
      return view.synced;
    },
    get stopped(): PauseReason | undefined {
      if (!view.synced) {
        const notRead = `the stop switch (ConfigMap ${namespace}/${STOP_SWITCH_NAME}) is not read yet`;
        return { reason: view.problem === undefined ? notRead : `${notRead}: ${view.problem}`, isUnread: true };
      }
      const configMap = view.get({ namespace, name: STOP_SWITCH_NAME });
      return stoppedBy(configMap, serverTimeMs(runtime));
    },
    read: async (signal) =>
      stoppedBy(
        await findObject<ConfigMap>(runtime.client, CONFIG_MAPS, { namespace, name: STOP_SWITCH_NAME }, signal),
        serverTimeMs(runtime),
      ),
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

function logPause(runtime: KubeRuntime, pause: Pause | undefined): void {
  if (pause === undefined) runtime.logger.info("power-offs are allowed: the stop switch is off");
  else runtime.logger.warn({ reason: pause.reason }, "no new power-offs: the stop switch is on");
}

/** Calls back when the end time of a pause is reached, which no watch reports. */
class PauseEnd {
  readonly #runtime: KubeRuntime;
  readonly #onEnd: () => void;
  #timer: Timer | undefined;

  constructor(runtime: KubeRuntime, onEnd: () => void) {
    this.#runtime = runtime;
    this.#onEnd = onEnd;
  }

  follow(pause: Pause | undefined): void {
    this.#timer?.cancel();
    const untilMs = pause?.untilMs;
    if (untilMs === undefined) return;
    const delayMs = Math.min(Math.max(0, untilMs - serverTimeMs(this.#runtime)), RECHECK_MAX_MS);
    this.#timer = this.#runtime.clock.schedule(delayMs, () =>
      serverTimeMs(this.#runtime) >= untilMs ? this.#onEnd() : this.follow(pause),
    );
  }
}
