import { isDeepStrictEqual } from "node:util";
import type { Logger } from "../../telemetry/logger.ts";
import { abortReason } from "../../runtime/clock.ts";
import type { ObjectKey } from "../client.ts";
import type { KubeErrorCode } from "../errors.ts";
import type { ReadBudget } from "../answers/read-budget.ts";
import { HeldSize } from "../answers/read-budget.ts";
import type { KubeObject } from "../resource.ts";
import { keepEqualParts } from "./equal-parts.ts";
import { isLaterVersion } from "./resource-version.ts";
import type { Change, Watched } from "../watched.ts";
import { keyOf, keyText } from "../watched.ts";

type Listener<T> = (change: Change<T>) => void;

/** The view of a reflector. It keeps trimmed objects by key, and calls listeners for each change. */
export class WatchedStore<T extends KubeObject> implements Watched<T> {
  readonly #trim: (raw: KubeObject) => T | undefined;
  readonly #logger: Logger;
  #objects = new Map<string, T>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #waiting = new Set<() => void>();
  #synced = false;
  readonly #budget: ReadBudget | undefined;
  #holding: HeldSize;
  /** Objects that could not be trimmed since the last list. */
  #unreadable = 0;

  /** Set by the reflector; `-Infinity` if nothing was received yet. */
  lastContactMs = Number.NEGATIVE_INFINITY;
  /** Set by the reflector. */
  version: string | undefined = undefined;
  /** Set by the reflector. */
  rewinds = 0;
  /** Set by the reflector. */
  problem: string | undefined = undefined;
  /** Set by the reflector. */
  problemCode: KubeErrorCode | undefined = undefined;
  /** Set by the reflector. */
  refresh: Watched<T>["refresh"] = undefined;

  constructor(trim: (raw: KubeObject) => T | undefined, logger: Logger, budget?: ReadBudget) {
    this.#trim = trim;
    this.#logger = logger;
    this.#budget = budget;
    this.#holding = new HeldSize(budget);
  }

  /** @throws KubeError OverBudget if the kept objects exceed the budget. */
  checkBudget(what: string): void {
    this.#holding.check(what);
  }

  get(key: ObjectKey): T | undefined {
    return this.#objects.get(keyText(key));
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  get size(): number {
    return this.#objects.size;
  }

  get synced(): boolean {
    return this.#synced;
  }

  subscribe(listener: Listener<T>): () => void {
    this.#listeners.add(listener);
    for (const object of this.#objects.values()) this.#notify(listener, { type: "added", object });
    return () => {
      this.#listeners.delete(listener);
    };
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#synced) {
        resolve();
        return;
      }
      if (signal.aborted) {
        reject(abortReason(signal));
        return;
      }
      const onSynced = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.delete(onSynced);
        reject(abortReason(signal));
      };
      this.#waiting.add(onSynced);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /**
   * Returns the part of `raw` to keep. If `trim` throws, only this object is left out of the view. Only the first such
   * object since the last list is logged, because an untrusted server may send any number of them.
   */
  trimmed(raw: KubeObject): T | undefined {
    try {
      return this.#trim(raw);
    } catch (error) {
      this.#unreadable += 1;
      if (this.#unreadable > 1) return undefined;
      this.#logger.error({ object: keyText(keyOf(raw)), err: error }, "object cannot be read, left out of the view");
      return undefined;
    }
  }

  /**
   * Replaces the view by a full, trimmed list. Objects that it does not contain were deleted. Listeners are called when
   * the view is complete.
   */
  replace(objects: readonly T[]): void {
    const before = this.#objects;
    const after = new Map<string, T>();
    const deletions: Change<T>[] = [];
    const others: Change<T>[] = [];
    for (const object of objects) {
      const key = keyText(keyOf(object));
      const previous = before.get(key);
      const same = previous?.metadata.uid === object.metadata.uid;
      // Contents are compared, because equal versions prove nothing: after etcd is restored, a version may be used a
      // second time.
      if (previous !== undefined && same && isDeepStrictEqual(previous, object)) {
        after.set(key, previous);
        continue;
      }
      if (previous !== undefined && same) keepEqualParts(object, previous);
      after.set(key, object);
      if (previous !== undefined && same) others.push({ type: "updated", object, previous });
      else others.push({ type: "added", object });
      if (previous !== undefined && !same) deletions.push({ type: "deleted", object: previous });
    }
    for (const [key, object] of before) if (!after.has(key)) deletions.push({ type: "deleted", object });
    const holding = new HeldSize(this.#budget);
    for (const object of after.values()) holding.add(object);
    this.#objects = after;
    this.#holding = holding;
    if (this.#unreadable > 1) {
      this.#logger.error({ count: this.#unreadable }, "objects cannot be read, left out of the view");
    }
    this.#unreadable = 0;
    this.#synced = true;
    this.#notifyAll([...deletions, ...others]);
    for (const onSynced of this.#waiting) onSynced();
    this.#waiting.clear();
  }

  /** Applies an ADDED or MODIFIED event. It ignores versions that are not later than the one in the view. */
  upsert(raw: KubeObject): void {
    const key = keyText(keyOf(raw));
    const previous = this.#objects.get(key);
    if (previous !== undefined && !isLaterVersion(raw.metadata.resourceVersion, previous.metadata.resourceVersion))
      return;
    const object = this.trimmed(raw);
    if (previous !== undefined && object !== undefined && previous.metadata.uid === raw.metadata.uid) {
      keepEqualParts(object, previous);
      // Added first: if that throws, the previous object is still kept and counted.
      this.#holding.add(object);
      this.#holding.remove(previous);
      this.#objects.set(key, object);
      this.#notifyAll([{ type: "updated", object, previous }]);
      return;
    }
    // `trim` now leaves the object out, or this is another object with the same name, and its predecessor's deletion
    // was missed.
    if (previous !== undefined) this.#delete(key, previous);
    if (object === undefined) return;
    this.#holding.add(object);
    this.#objects.set(key, object);
    this.#notifyAll([{ type: "added", object }]);
  }

  /** Applies a DELETED event. It ignores one about an earlier object with the same name. */
  remove(raw: KubeObject): void {
    const key = keyText(keyOf(raw));
    const previous = this.#objects.get(key);
    if (previous === undefined) return;
    const same = previous.metadata.uid === raw.metadata.uid;
    if (!same && !isLaterVersion(raw.metadata.resourceVersion, previous.metadata.resourceVersion)) return;
    this.#delete(key, previous);
  }

  #delete(key: string, object: T): void {
    this.#holding.remove(object);
    this.#objects.delete(key);
    this.#notifyAll([{ type: "deleted", object }]);
  }

  #notifyAll(changes: readonly Change<T>[]): void {
    // A copy, because a listener that subscribes now has already received the current state.
    const listeners = [...this.#listeners];
    for (const change of changes) {
      for (const listener of listeners) if (this.#listeners.has(listener)) this.#notify(listener, change);
    }
  }

  #notify(listener: Listener<T>, change: Change<T>): void {
    try {
      listener(change);
    } catch (error) {
      this.#logger.error({ object: keyText(keyOf(change.object)), err: error }, "a listener failed on a change");
    }
  }
}
