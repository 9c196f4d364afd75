import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Change, Watched } from "../../../kube/watched.ts";

/** How long to wait before the agent tries again to watch a kind. */
export const KIND_RETRY_MS = 15_000;

/** How the objects of a kind can be read. */
export type KindState<T extends KubeObject> =
  /** Not known yet. `onChange` is called when it is. */
  | { state: "pending" }
  | { state: "watched"; type: ResourceType; view: Watched<T> }
  /** RBAC does not allow the agent to list it. It may still be allowed to get single objects. */
  | { state: "forbidden"; type: ResourceType; message: string }
  /** The API server does not serve the kind in that version; `served` is a version that it serves. */
  | { state: "absent"; served?: string };

export interface DynamicKindsOptions<T extends KubeObject> {
  /** Absent for all namespaces. */
  namespace?: string;
  /** Absent for all objects. */
  fieldSelector?: string;
  trim: (raw: KubeObject) => T;
  /** Called when a kind's state changes, and for every change of an object of a watched kind. */
  onChange: (change: Change<T> | undefined) => void;
  /** How often a kind that is not served is looked up again; `KIND_RETRY_MS` by default. */
  absentRetryMs?: number;
}

interface KindWatch<T extends KubeObject> {
  state: KindState<T>;
  /** The monotonic time at which the last try ended. */
  triedMs: number;
  /** Whether another try may have another result. */
  mayRetry: boolean;
  stop: AbortController;
}

/**
 * Watches of kinds that templates name while the agent runs. They are found by API discovery, and each kind has one
 * list and one watch. A kind whose CRD is installed later is found by a later call of `state`.
 */
export class DynamicKinds<T extends KubeObject> {
  readonly #runtime: KubeRuntime;
  readonly #options: DynamicKindsOptions<T>;
  readonly #signal: AbortSignal;
  readonly #entries = new Map<string, KindWatch<T>>();
  readonly #starting = new Set<Promise<void>>();

  /** @param signal ends all watches. */
  constructor(runtime: KubeRuntime, options: DynamicKindsOptions<T>, signal: AbortSignal) {
    this.#runtime = runtime;
    this.#options = options;
    this.#signal = signal;
  }

  /** How the kind can be read now. The first call starts its watch. */
  state(apiVersion: string, kind: string): KindState<T> {
    const key = kindKey(apiVersion, kind);
    const nowMs = this.#runtime.clock.monotonicMs();
    const entry: KindWatch<T> = this.#entries.get(key) ?? {
      state: { state: "pending" },
      triedMs: -Infinity,
      mayRetry: true,
      stop: new AbortController(),
    };
    this.#entries.set(key, entry);
    const { absentRetryMs = KIND_RETRY_MS } = this.#options;
    const retryMs = entry.state.state === "absent" ? absentRetryMs : KIND_RETRY_MS;
    if (entry.mayRetry && nowMs - entry.triedMs >= retryMs) {
      entry.mayRetry = false;
      this.#start(entry, apiVersion, kind);
    }
    return entry.state;
  }

  /** Ends the watches of kinds that are not among `used`. */
  retain(used: ReadonlySet<string>): void {
    for (const [key, { stop }] of this.#entries) {
      if (used.has(key)) continue;
      stop.abort();
      this.#entries.delete(key);
    }
  }

  /** Resolves when nothing runs in the background. Abort the signal first. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#starting);
  }

  #start(entry: KindWatch<T>, apiVersion: string, kind: string): void {
    const signal = AbortSignal.any([this.#signal, entry.stop.signal]);
    const work = this.#find(apiVersion, kind, signal)
      .then((state) => this.#settle(entry, state))
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.#runtime.logger.warn({ err: error, apiVersion, kind }, "cannot discover or watch a kind");
        this.#settle(entry, entry.state);
      });
    this.#starting.add(work);
    void work.finally(() => this.#starting.delete(work));
  }

  async #find(apiVersion: string, kind: string, signal: AbortSignal): Promise<KindState<T>> {
    const { client } = this.#runtime;
    const { namespace, fieldSelector, trim } = this.#options;
    const within = namespace === undefined ? {} : { namespace };
    const selected = fieldSelector === undefined ? {} : { fieldSelector };
    const type = await client.discover(apiVersion, kind, signal);
    if (type === undefined) {
      const [group = "", version] = apiVersion.split("/");
      const other = version === undefined ? undefined : await client.discover(group, kind, signal);
      return other === undefined ? { state: "absent" } : { state: "absent", served: apiVersionOf(other) };
    }
    try {
      // `whenSynced` never resolves while listing is forbidden, so a list request finds that out first.
      await client.list(type, { pageSize: 1, fieldSelector: "metadata.name=-", ...within, ...selected }, signal);
    } catch (error) {
      if (isKubeError(error, "Forbidden", "MethodNotAllowed"))
        return { state: "forbidden", type, message: error.message };
      if (isKubeError(error, "NotFound")) return { state: "absent" };
      throw error;
    }
    const view = this.#runtime.watch({ type, trim, ...within, ...selected }, signal);
    await view.whenSynced(signal);
    return { state: "watched", type, view };
  }

  #settle(entry: KindWatch<T>, state: KindState<T>): void {
    if (entry.stop.signal.aborted || this.#signal.aborted) return;
    const changed = entry.state.state !== state.state;
    entry.state = state;
    entry.triedMs = this.#runtime.clock.monotonicMs();
    entry.mayRetry = state.state !== "watched";
    if (state.state === "watched") state.view.subscribe((change) => this.#options.onChange(change));
    if (changed) this.#options.onChange(undefined);
  }
}

/** The key of a kind in sets and maps. */
export function kindKey(apiVersion: string, kind: string): string {
  return `${apiVersion}/${kind}`;
}
