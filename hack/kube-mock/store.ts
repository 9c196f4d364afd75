import type { ApiObject } from "./json.ts";

/** How one API version presents the objects of a collection. */
export interface View {
  apiVersion: string;
  kind: string;
  /** Converts an object to this version; absent if versions differ only in `apiVersion`. */
  fromStorage?: (object: ApiObject) => ApiObject;
}

/** One state of one object. Its JSON is created at most once per view. */
export class Stored {
  readonly key: string;
  readonly object: ApiObject;
  /** JSON without `kind`, `apiVersion` and the opening brace, by view. The key is "" if versions share a shape. */
  readonly #tails = new Map<string, string>();

  constructor(key: string, object: ApiObject) {
    this.key = key;
    this.object = object;
  }

  /** The object in a view. */
  as(view: View): ApiObject {
    if (view.fromStorage !== undefined) return view.fromStorage(this.object);
    return this.object.apiVersion === view.apiVersion ? this.object : { ...this.object, apiVersion: view.apiVersion };
  }

  text(view: View): string {
    return `{"kind":"${view.kind}","apiVersion":"${view.apiVersion}",${this.#tail(view)}`;
  }

  /** Like `text`, without kind and version. The real server writes list items of built-in kinds this way. */
  bareText(view: View): string {
    return `{${this.#tail(view)}`;
  }

  #tail(view: View): string {
    const shape = view.fromStorage === undefined ? "" : view.apiVersion;
    const known = this.#tails.get(shape);
    if (known !== undefined) return known;
    const { apiVersion: _apiVersion, kind: _kind, ...content } = this.as(view);
    const tail = JSON.stringify(content).slice(1);
    this.#tails.set(shape, tail);
    return tail;
  }
}

export interface StoreEvent {
  type: "ADDED" | "MODIFIED" | "DELETED";
  revision: number;
  /** For `DELETED`: the last state, with the revision of the deletion. */
  current: Stored;
  previous: Stored | undefined;
}

/** All objects of one kind, their recent history, and the listeners. */
export class Collection {
  readonly #objects = new Map<string, Stored>();
  readonly #eventsMax: number;
  readonly #listeners = new Set<(event: StoreEvent) => void>();
  #sortedKeys: string[] | undefined = [];
  readonly #unannounced: StoreEvent[] = [];
  #events: StoreEvent[] = [];
  /** Changes up to this revision are no longer known. */
  #compactedRevision: number;

  constructor(eventsMax: number, revision: number) {
    this.#eventsMax = eventsMax;
    this.#compactedRevision = revision;
  }

  get(key: string): Stored | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<Stored> {
    return this.#objects.values();
  }

  get compactedRevision(): number {
    return this.#compactedRevision;
  }

  /** Calls `listener` for every change, synchronously within the write. */
  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Changes after `revision`, oldest first; undefined if some of them are no longer known. */
  eventsAfter(revision: number): readonly StoreEvent[] | undefined {
    if (revision < this.#compactedRevision) return undefined;
    return this.#events.slice(this.#indexAfter(revision));
  }

  /** The objects as of `revision`, in the order of their keys; undefined if that is no longer known. */
  snapshot(revision: number): readonly Stored[] | undefined {
    if (revision < this.#compactedRevision) return undefined;
    const later = this.#events.slice(this.#indexAfter(revision));
    if (later.length === 0) return this.#keys().flatMap((key) => this.#objects.get(key) ?? []);
    const past = new Map(this.#objects);
    for (const { current, previous } of later.toReversed()) {
      if (previous === undefined) past.delete(current.key);
      else past.set(previous.key, previous);
    }
    return [...past.values()].sort((a, b) => compareText(a.key, b.key));
  }

  apply(event: StoreEvent): void {
    const { key } = event.current;
    if (event.type === "DELETED") this.#objects.delete(key);
    else this.#objects.set(key, event.current);
    if (event.type !== "MODIFIED") this.#sortedKeys = undefined;
    this.#events.push(event);
    // Removes the older half of the history when it is full, so that the cost of a write does not depend on the length
    // of the history.
    if (this.#events.length >= 2 * this.#eventsMax) this.#forget(this.#events.length - this.#eventsMax);
    this.#announce(event);
  }

  /** Queues events, so that all listeners get them in the order of their revisions, even if a listener writes. */
  #announce(event: StoreEvent): void {
    this.#unannounced.push(event);
    if (this.#unannounced.length > 1) return;
    for (let next = this.#unannounced[0]; next !== undefined; next = this.#unannounced[0]) {
      for (const listener of this.#listeners) listener(next);
      this.#unannounced.shift();
    }
  }

  /** Replaces all objects and drops the history. Listeners get the differences as changes. */
  restore(objects: ReadonlyMap<string, Stored>, revision: number): void {
    const before = new Map(this.#objects);
    this.#objects.clear();
    for (const [key, stored] of objects) this.#objects.set(key, stored);
    this.#sortedKeys = undefined;
    this.#events = [];
    this.#compactedRevision = revision;
    for (const [key, current] of before) {
      if (!objects.has(key)) this.#announce({ type: "DELETED", revision, current, previous: current });
    }
    for (const [key, current] of objects) {
      const previous = before.get(key);
      if (previous === current) continue;
      this.#announce({ type: previous === undefined ? "ADDED" : "MODIFIED", revision, current, previous });
    }
  }

  compact(revision: number): void {
    this.#forget(this.#indexAfter(revision));
    this.#compactedRevision = Math.max(this.#compactedRevision, revision);
  }

  #forget(count: number): void {
    const last = this.#events[count - 1];
    if (last === undefined) return;
    this.#events = this.#events.slice(count);
    this.#compactedRevision = last.revision;
  }

  #keys(): readonly string[] {
    this.#sortedKeys ??= [...this.#objects.keys()].sort(compareText);
    return this.#sortedKeys;
  }

  #indexAfter(revision: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.revision ?? Infinity) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** All stored objects at one revision. */
export interface Backup {
  readonly revision: number;
  readonly collections: ReadonlyMap<string, ReadonlyMap<string, Stored>>;
}

/**
 * All objects of the server. Every write gets the next revision, which becomes the `resourceVersion` of the written
 * object.
 */
export class Store {
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<(event: StoreEvent) => void>();
  readonly #eventsMax: number;
  #revision = 1;

  constructor(eventsMax: number) {
    this.#eventsMax = eventsMax;
  }

  get revision(): number {
    return this.#revision;
  }

  /** The collection of that name. If it does not exist, it is created and its history begins now. */
  collection(name: string): Collection {
    const known = this.#collections.get(name);
    if (known !== undefined) return known;
    const collection = new Collection(this.#eventsMax, this.#revision);
    this.#collections.set(name, collection);
    collection.subscribe((event) => {
      for (const listener of this.#listeners) listener(event);
    });
    return collection;
  }

  /** Calls `listener` for every change of any collection. */
  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Stores `object` as the newest state under `key`. */
  put(collection: Collection, key: string, object: ApiObject): Stored {
    const previous = collection.get(key);
    const current = this.#stamp(key, object);
    collection.apply({
      type: previous === undefined ? "ADDED" : "MODIFIED",
      revision: this.#revision,
      current,
      previous,
    });
    return current;
  }

  remove(collection: Collection, stored: Stored): void {
    const current = this.#stamp(stored.key, stored.object);
    collection.apply({ type: "DELETED", revision: this.#revision, current, previous: stored });
  }

  /** A copy of all stored objects, for `restore`. */
  backUp(): Backup {
    const collections = new Map<string, ReadonlyMap<string, Stored>>();
    for (const [name, collection] of this.#collections) {
      collections.set(name, new Map([...collection.values()].map((stored) => [stored.key, stored])));
    }
    return { revision: this.#revision, collections };
  }

  /** Restores a backup. Revisions since then are used again. */
  restore({ revision, collections }: Backup): void {
    this.#revision = revision;
    for (const [name, collection] of this.#collections)
      collection.restore(collections.get(name) ?? new Map(), revision);
  }

  /** Drops the history. */
  compact(): void {
    for (const collection of this.#collections.values()) collection.compact(this.#revision);
  }

  #stamp(key: string, object: ApiObject): Stored {
    this.#revision += 1;
    return new Stored(key, { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#revision) } });
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
