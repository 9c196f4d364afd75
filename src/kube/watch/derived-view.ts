import { unlessAborted } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ObjectKey } from "../client.ts";
import type { KubeErrorCode } from "../errors.ts";
import type { KubeObject } from "../resource.ts";
import type { WatchOptions } from "../runtime.ts";
import type { Change, Watched } from "../watched.ts";
import { nameOf } from "../watched.ts";

/**
 * A view of the same objects as another view, with what a further `trim` leaves of them. If `fresh` is given, the view
 * is not synced before that resolves. After `signal` aborts, its listeners are not called any more, although the other
 * view may go on.
 */
export class DerivedView<S extends KubeObject, T extends KubeObject> implements Watched<T> {
  readonly #source: Watched<S>;
  readonly #trim: WatchOptions<T>["trim"];
  readonly #logger: Pick<Logger, "error">;
  readonly #signal: AbortSignal;
  /** What was derived from each object, so that all listeners and readers get the same one. */
  readonly #derived = new WeakMap<S, T | undefined>();
  readonly #fresh: Promise<void> | undefined;
  #isFresh: boolean;

  constructor(
    source: Watched<S>,
    { trim }: Pick<WatchOptions<T>, "trim">,
    logger: Pick<Logger, "error">,
    signal: AbortSignal,
    fresh?: Promise<void>,
  ) {
    this.#source = source;
    this.#trim = trim;
    this.#logger = logger;
    this.#signal = signal;
    this.#fresh = fresh;
    this.#isFresh = fresh === undefined;
    fresh?.then(
      () => (this.#isFresh = true),
      () => undefined,
    );
  }

  get(key: ObjectKey): T | undefined {
    const from = this.#source.get(key);
    return from === undefined ? undefined : this.#derive(from);
  }

  *values(): IterableIterator<T> {
    for (const from of this.#source.values()) {
      const object = this.#derive(from);
      if (object !== undefined) yield object;
    }
  }

  get size(): number {
    return [...this.values()].length;
  }

  get synced(): boolean {
    return this.#source.synced && this.#isFresh;
  }

  get lastContactMs(): number {
    return this.#source.lastContactMs;
  }

  get version(): string | undefined {
    return this.#source.version;
  }

  get problem(): string | undefined {
    return this.#source.problem;
  }

  get problemCode(): KubeErrorCode | undefined {
    return this.#source.problemCode;
  }

  get rewinds(): number {
    return this.#source.rewinds ?? 0;
  }

  subscribe(listener: (change: Change<T>) => void): () => void {
    const stop = this.#source.subscribe((change) => {
      const previous = change.type === "updated" ? this.#derive(change.previous) : undefined;
      const object = this.#derive(change.object);
      if (previous !== undefined && object !== undefined) listener({ type: "updated", object, previous });
      else if (previous !== undefined) listener({ type: "deleted", object: previous });
      else if (object !== undefined) listener({ type: change.type === "deleted" ? "deleted" : "added", object });
    });
    if (this.#signal.aborted) stop();
    else this.#signal.addEventListener("abort", stop, { once: true });
    return () => {
      this.#signal.removeEventListener("abort", stop);
      stop();
    };
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    await this.#source.whenSynced(signal);
    if (this.#fresh !== undefined) await unlessAborted(this.#fresh, signal);
  }

  #derive(from: S): T | undefined {
    if (!this.#derived.has(from)) this.#derived.set(from, this.#trimmed(from));
    return this.#derived.get(from);
  }

  /** If `trim` throws, only this object is left out of the view. */
  #trimmed(from: S): T | undefined {
    try {
      return this.#trim(from);
    } catch (error) {
      this.#logger.error({ object: nameOf(from), err: error }, "object cannot be read, left out of the view");
      return undefined;
    }
  }
}
