import type { ObjectKey } from "../client.ts";
import type { KubeErrorCode } from "../errors.ts";
import type { KubeObject } from "../resource.ts";
import type { WatchOptions } from "../runtime.ts";
import type { Change, Watched } from "../watched.ts";
import { keyOf, keyText } from "../watched.ts";
import type { UnsentObjects } from "./unsent-objects.ts";

type Listener<T> = (change: Change<T>) => void;

/** A view of the objects of a kind, with the unsent writes to them. */
export class UnsentView<T extends KubeObject> implements Watched<T> {
  readonly #view: Watched<T>;
  readonly #objects: UnsentObjects;
  readonly #options: WatchOptions<T>;
  readonly #shown = new Map<string, T>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #unsubscribe: (() => void)[];

  /** @param view the view of the API server, with the same options. */
  constructor(view: Watched<T>, objects: UnsentObjects, options: WatchOptions<T>, signal: AbortSignal) {
    this.#view = view;
    this.#objects = objects;
    this.#options = options;
    for (const object of objects.created(options.type)) this.#refresh(keyOf(object));
    this.#unsubscribe = [
      view.subscribe(({ object }) => this.#refresh(keyOf(object))),
      objects.subscribe(options.type, ({ object }) => this.#refresh(keyOf(object))),
    ];
    signal.addEventListener("abort", () => this.#close(), { once: true });
  }

  get(key: ObjectKey): T | undefined {
    return this.#shown.get(keyText(key));
  }

  values(): IterableIterator<T> {
    return this.#shown.values();
  }

  get size(): number {
    return this.#shown.size;
  }

  get synced(): boolean {
    return this.#view.synced;
  }

  get lastContactMs(): number {
    return this.#view.lastContactMs;
  }

  get version(): string | undefined {
    return this.#view.version;
  }

  get problem(): string | undefined {
    return this.#view.problem;
  }

  get problemCode(): KubeErrorCode | undefined {
    return this.#view.problemCode;
  }

  get rewinds(): number {
    return this.#view.rewinds ?? 0;
  }

  subscribe(listener: Listener<T>): () => void {
    this.#listeners.add(listener);
    for (const object of this.#shown.values()) listener({ type: "added", object });
    return () => {
      this.#listeners.delete(listener);
    };
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#view.whenSynced(signal);
  }

  async refresh(signal: AbortSignal): Promise<void> {
    await this.#view.refresh?.(signal);
  }

  #close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  #refresh(key: ObjectKey): void {
    const name = keyText(key);
    const before = this.#shown.get(name);
    const after = this.#now(key);
    if (before === after) return;
    const isReplaced = before !== undefined && after?.metadata.uid !== before.metadata.uid;
    if (after === undefined) this.#shown.delete(name);
    else this.#shown.set(name, after);
    if (isReplaced) this.#notify({ type: "deleted", object: before });
    if (after === undefined) return;
    if (before === undefined || isReplaced) this.#notify({ type: "added", object: after });
    else this.#notify({ type: "updated", object: after, previous: before });
  }

  #now(key: ObjectKey): T | undefined {
    const { type, namespace, labelSelector, fieldSelector, trim } = this.#options;
    const served = this.#view.get(key);
    const unsent = this.#objects.get(type, key);
    if (unsent === undefined) return served;
    if (this.#objects.isCreated(type, key)) {
      const isCovered = labelSelector === undefined && fieldSelector === undefined;
      return isCovered && (namespace ?? key.namespace) === key.namespace ? trim(unsent) : served;
    }
    return served === undefined ? undefined : trim(unsent);
  }

  #notify(change: Change<T>): void {
    // A copy, because a listener that subscribes now has already received the current state.
    const listeners = [...this.#listeners];
    for (const listener of listeners) listener(change);
  }
}
