import { abortReason } from "../../runtime/clock.ts";
import type { KubeObject } from "../resource.ts";
import type { KubeRuntime, WatchOptions } from "../runtime.ts";
import type { Watched } from "../watched.ts";
import { DerivedView } from "./derived-view.ts";

/**
 * Returns the same runtime, in which all parts that watch one of `collections` share one watch: its events are received
 * and parsed once, and its texts are kept once.
 *
 * @param collections what each `trim` keeps must be enough for the `trim` of every part.
 */
export function shareWatches(runtime: KubeRuntime, collections: readonly WatchOptions<KubeObject>[]): KubeRuntime {
  const shared = collections.map((collection) => new SharedWatch(runtime, collection));
  return {
    ...runtime,
    watch: (options, signal) => {
      const watch = signal.aborted ? undefined : shared.find((watch) => watch.isOf(options));
      return watch?.join(options, signal) ?? runtime.watch(options, signal);
    },
  };
}

interface OpenWatch {
  view: Watched<KubeObject>;
  stop: AbortController;
  users: number;
}

/** One watch, open while any part uses it. */
class SharedWatch {
  readonly #runtime: KubeRuntime;
  readonly #options: WatchOptions<KubeObject>;
  #open: OpenWatch | undefined;

  constructor(runtime: KubeRuntime, options: WatchOptions<KubeObject>) {
    this.#runtime = runtime;
    this.#options = options;
  }

  isOf<T extends KubeObject>({ type, namespace, labelSelector, fieldSelector }: WatchOptions<T>): boolean {
    const { type: own } = this.#options;
    const isType = type.group === own.group && type.version === own.version && type.plural === own.plural;
    const isWhole = labelSelector === undefined && fieldSelector === undefined;
    return isType && isWhole && namespace === this.#options.namespace;
  }

  /**
   * A part with the `trim` of the collection gets the view of the watch itself, which goes on until no part uses it.
   * A part that begins after the first list waits until the view is as fresh as a list of its own: the watch may have
   * been silent for minutes.
   *
   * @param signal ends the use of the watch.
   */
  join<T extends KubeObject>(options: WatchOptions<T>, signal: AbortSignal): Watched<T> {
    const open = (this.#open ??= this.#start());
    open.users += 1;
    const leave = (): void => {
      open.users -= 1;
      if (open.users > 0) return;
      this.#open = undefined;
      open.stop.abort(abortReason(signal));
    };
    signal.addEventListener("abort", leave, { once: true });
    const fresh = open.view.synced ? open.view.refresh?.(signal) : undefined;
    const isSame = options.trim === this.#options.trim;
    if (isSame && fresh === undefined) return open.view as Watched<T>;
    const kept = isSame ? { trim: (object: KubeObject) => object as T } : options;
    return new DerivedView(open.view, kept, this.#runtime.logger, signal, fresh);
  }

  #start(): OpenWatch {
    const stop = new AbortController();
    return { view: this.#runtime.watch(this.#options, stop.signal), stop, users: 0 };
  }
}
