import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Change, Watched } from "../../../kube/watched.ts";

/** How often a kind that could not be watched is tried again, when asked for. */
export const KIND_RETRY_MS = 15_000;

/** How a kind of which only the name is known can be seen. */
export type KindState<T extends KubeObject> =
  /** Not known yet; a change is announced. */
  | { state: "pending" }
  | { state: "watched"; type: ResourceType; view: Watched<T> }
  /** It may not be listed: read its objects one by one, if that is allowed. */
  | { state: "forbidden"; type: ResourceType; message: string }
  /** The API server does not serve it in that version, as yet; `served` is a version in which it does. */
  | { state: "absent"; served?: string };

export interface DynamicKindsOptions<T extends KubeObject> {
  /** Absent: all namespaces. */
  namespace?: string;
  /** Absent: all objects. */
  fieldSelector?: string;
  trim: (raw: KubeObject) => T;
  /** Called when a kind's state changes, and for every change of an object of a watched kind. */
  onChange: (change: Change<T> | undefined) => void;
  /** How often a kind that is not served is looked up again; `KIND_RETRY_MS` by default. */
  absentRetryMs?: number;
}

interface Entry<T extends KubeObject> {
  state: KindState<T>;
  /** Monotonic; when the last try to watch it ended. */
  triedMs: number;
  /** Whether another try may find something else. */
  mayPass: boolean;
  stop: AbortController;
}

/**
 * Watches of kinds that are learned from templates while the agent runs: found by API discovery, one list and one watch a
 * kind, whoever asks. A kind whose CRD arrives later is picked up when it is next asked for.
 */
export class DynamicKinds<T extends KubeObject> {
  readonly #runtime: KubeRuntime;
  readonly #options: DynamicKindsOptions<T>;
  readonly #signal: AbortSignal;
  readonly #entries = new Map<string, Entry<T>>();
  readonly #starting = new Set<Promise<void>>();

  /** @param signal ends all watches. */
  constructor(runtime: KubeRuntime, options: DynamicKindsOptions<T>, signal: AbortSignal) {
    this.#runtime = runtime;
    this.#options = options;
    this.#signal = signal;
  }

  /** How the kind can be seen now; the first question starts its watch. */
  state(apiVersion: string, kind: string): KindState<T> {
    const key = kindKey(apiVersion, kind);
    const nowMs = this.#runtime.clock.monotonicMs();
    const entry: Entry<T> = this.#entries.get(key) ?? {
      state: { state: "pending" },
      triedMs: -Infinity,
      mayPass: true,
      stop: new AbortController(),
    };
    this.#entries.set(key, entry);
    const { absentRetryMs = KIND_RETRY_MS } = this.#options;
    const retryMs = entry.state.state === "absent" ? absentRetryMs : KIND_RETRY_MS;
    if (entry.mayPass && nowMs - entry.triedMs >= retryMs) {
      entry.mayPass = false;
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

  /** Resolves once nothing runs on in the background; abort the signal before. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#starting);
  }

  #start(entry: Entry<T>, apiVersion: string, kind: string): void {
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
      // A reflector does not say that it is refused, so the question is asked first.
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

  #settle(entry: Entry<T>, state: KindState<T>): void {
    if (entry.stop.signal.aborted || this.#signal.aborted) return;
    const changed = entry.state.state !== state.state;
    entry.state = state;
    entry.triedMs = this.#runtime.clock.monotonicMs();
    entry.mayPass = state.state !== "watched";
    if (state.state === "watched") state.view.subscribe((change) => this.#options.onChange(change));
    if (changed) this.#options.onChange(undefined);
  }
}

/** The key of a kind in sets and maps. */
export function kindKey(apiVersion: string, kind: string): string {
  return `${apiVersion}/${kind}`;
}
