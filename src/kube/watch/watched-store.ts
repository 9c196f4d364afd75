import { isDeepStrictEqual } from "node:util";
import type { Logger } from "../../telemetry/logger.ts";
import { abortReason } from "../../runtime/clock.ts";
import type { ObjectKey } from "../client.ts";
import type { KubeErrorCode } from "../errors.ts";
import type { ReadBudget } from "../answers/read-budget.ts";
import { HeldSize } from "../answers/read-budget.ts";
import type { KubeObject } from "../resource.ts";
import { isLaterVersion } from "./resource-version.ts";
import type { Change, Watched } from "../watched.ts";
import { keyOf, keyText } from "../watched.ts";

type Listener<T> = (change: Change<T>) => void;

/** The view behind a reflector: keeps trimmed objects by key, and calls listeners with what changed. */
export class WatchedStore<T extends KubeObject> implements Watched<T> {
  readonly #trim: (raw: KubeObject) => T | undefined;
  readonly #logger: Logger;
  #objects = new Map<string, T>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #waiting = new Set<() => void>();
  #synced = false;
  readonly #budget: ReadBudget | undefined;
  #holding: HeldSize;
  /** Since the last list. */
  #unreadable = 0;

  /** Set by the reflector; nothing received yet is infinitely long ago. */
  lastContactMs = Number.NEGATIVE_INFINITY;
  /** Set by the reflector. */
  version: string | undefined = undefined;
  /** Set by the reflector. */
  rewinds = 0;
  /** Set by the reflector. */
  problem: string | undefined = undefined;
  /** Set by the reflector. */
  problemCode: KubeErrorCode | undefined = undefined;

  constructor(trim: (raw: KubeObject) => T | undefined, logger: Logger, budget?: ReadBudget) {
    this.#trim = trim;
    this.#logger = logger;
    this.#budget = budget;
    this.#holding = new HeldSize(budget);
  }

  /** @throws KubeError OverBudget if more is kept than may be. */
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
   * What is kept of `raw`. A trim that throws must cost us that object alone. It is logged for the first one since the
   * last list began: there may be as many as the server likes.
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
   * Takes a full list, trimmed: it is the server's present state, so what it lacks is gone. Listeners are called when
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
      // Equal versions prove nothing: one that was given out before a restore may have been given out again since.
      if (previous !== undefined && same && isDeepStrictEqual(previous, object)) {
        after.set(key, previous);
        continue;
      }
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
    for (const change of [...deletions, ...others]) this.#notifyAll(change);
    for (const onSynced of this.#waiting) onSynced();
    this.#waiting.clear();
  }

  /** Takes an object as it is after an ADDED or MODIFIED event. Versions that we are past of are passed over. */
  upsert(raw: KubeObject): void {
    const key = keyText(keyOf(raw));
    const previous = this.#objects.get(key);
    if (previous !== undefined && !isLaterVersion(raw.metadata.resourceVersion, previous.metadata.resourceVersion))
      return;
    const object = this.trimmed(raw);
    if (previous !== undefined && object !== undefined && previous.metadata.uid === raw.metadata.uid) {
      // Counted first: if that fails, the previous one is still kept and still counted.
      this.#holding.add(object);
      this.#holding.remove(previous);
      this.#objects.set(key, object);
      this.#notifyAll({ type: "updated", object, previous });
      return;
    }
    // Gone from the view, or another object by the same name whose deletion we did not see.
    if (previous !== undefined) this.#delete(key, previous);
    if (object === undefined) return;
    this.#holding.add(object);
    this.#objects.set(key, object);
    this.#notifyAll({ type: "added", object });
  }

  /** Takes a DELETED event. One about an earlier object of the same name does not touch its successor. */
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
    this.#notifyAll({ type: "deleted", object });
  }

  #notifyAll(change: Change<T>): void {
    // A copy: a listener that subscribes now has received the present state already.
    const listeners = [...this.#listeners];
    for (const listener of listeners) this.#notify(listener, change);
  }

  #notify(listener: Listener<T>, change: Change<T>): void {
    try {
      listener(change);
    } catch (error) {
      this.#logger.error({ object: keyText(keyOf(change.object)), err: error }, "a listener failed on a change");
    }
  }
}
