import type { ObjectKey } from "../client.ts";
import type { KubeErrorCode } from "../errors.ts";
import type { KubeObject } from "../resource.ts";
import type { WatchOptions } from "../runtime.ts";
import type { Change, Watched } from "../watched.ts";

/** A view of the same objects as another view, with what a further `trim` leaves of them. */
export class DerivedView<S extends KubeObject, T extends KubeObject> implements Watched<T> {
  readonly #source: Watched<S>;
  readonly #trim: WatchOptions<T>["trim"];
  /** By UID: what was derived last, so that an unchanged object stays the same one. */
  readonly #derived = new Map<string, { from: S; object: T | undefined }>();

  /** @param signal ends the view. */
  constructor(source: Watched<S>, trim: WatchOptions<T>["trim"], signal: AbortSignal) {
    this.#source = source;
    this.#trim = trim;
    const unsubscribe = source.subscribe(({ type, object }) => {
      if (type === "deleted") this.#derived.delete(object.metadata.uid);
    });
    signal.addEventListener("abort", unsubscribe, { once: true });
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
    return this.#source.synced;
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
    return this.#source.subscribe((change) => {
      const previous = change.type === "updated" ? this.#derive(change.previous) : undefined;
      const object = this.#derive(change.object);
      if (change.type === "deleted") this.#derived.delete(change.object.metadata.uid);
      if (previous !== undefined && object !== undefined) listener({ type: "updated", object, previous });
      else if (previous !== undefined) listener({ type: "deleted", object: previous });
      else if (object !== undefined) listener({ type: change.type === "deleted" ? "deleted" : "added", object });
    });
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#source.whenSynced(signal);
  }

  #derive(from: S): T | undefined {
    const { uid } = from.metadata;
    const known = this.#derived.get(uid);
    if (known?.from === from) return known.object;
    const object = this.#trim(from);
    this.#derived.set(uid, { from, object });
    return object;
  }
}
