import type { ApiObject } from "./json.ts";

/** How one API version shows the objects of a collection. */
export interface View {
  apiVersion: string;
  kind: string;
  /** The object in this version's shape; absent where versions differ in `apiVersion` alone. */
  fromStorage?: (object: ApiObject) => ApiObject;
}

/** One state of one object, with its JSON made at most once a view. */
export class Stored {
  readonly key: string;
  readonly object: ApiObject;
  /** JSON without `kind`, `apiVersion` and the opening brace, by view; "" where versions share a shape. */
  readonly #tails = new Map<string, string>();

  constructor(key: string, object: ApiObject) {
    this.key = key;
    this.object = object;
  }

  /** The object as the view shows it. */
  as(view: View): ApiObject {
    if (view.fromStorage !== undefined) return view.fromStorage(this.object);
    return this.object.apiVersion === view.apiVersion ? this.object : { ...this.object, apiVersion: view.apiVersion };
  }

  text(view: View): string {
    return `{"kind":"${view.kind}","apiVersion":"${view.apiVersion}",${this.#tail(view)}`;
  }

  /** As `text`, without kind and version: so the real server writes the items of lists of its own kinds. */
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

/** All objects of one kind, their recent history, and who listens. */
export class Collection {
  readonly #objects = new Map<string, Stored>();
  readonly #eventsMax: number;
  readonly #listeners = new Set<(event: StoreEvent) => void>();
  #sortedKeys: string[] | undefined = [];
  readonly #unannounced: StoreEvent[] = [];
  #events: StoreEvent[] = [];
  /** The newest revision of which the changes before it are no longer known. */
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

  /** Calls `listener` at every change, within the write that makes it. */
  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Changes after `revision`, oldest first; undefined where they are no longer all known. */
  eventsAfter(revision: number): readonly StoreEvent[] | undefined {
    if (revision < this.#compactedRevision) return undefined;
    return this.#events.slice(this.#indexAfter(revision));
  }

  /** The objects as they were at `revision`, in the order of their keys; undefined where that is no longer known. */
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
    // Cut in one go now and then, so that a write costs the same however long the history is.
    if (this.#events.length >= 2 * this.#eventsMax) this.#forget(this.#events.length - this.#eventsMax);
    this.#announce(event);
  }

  /**
   * A listener that writes does not get ahead of the others: they all hear of events in the order of their revisions.
   */
  #announce(event: StoreEvent): void {
    this.#unannounced.push(event);
    if (this.#unannounced.length > 1) return;
    for (let next = this.#unannounced[0]; next !== undefined; next = this.#unannounced[0]) {
      for (const listener of this.#listeners) listener(next);
      this.#unannounced.shift();
    }
  }

  /** Takes other objects instead of those that it has, and forgets all history. Listeners get the difference. */
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

/** What was stored at one revision. */
export interface Backup {
  readonly revision: number;
  readonly collections: ReadonlyMap<string, ReadonlyMap<string, Stored>>;
}

/**
 * Everything the server holds. Every write takes the next revision, which is the `resourceVersion` of what it wrote.
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

  /** The collection of that name; made where there is none. Its history begins now. */
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

  /** Calls `listener` at every change of any collection. */
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

  /** All that is stored now, for `restore`. */
  backUp(): Backup {
    const collections = new Map<string, ReadonlyMap<string, Stored>>();
    for (const [name, collection] of this.#collections) {
      collections.set(name, new Map([...collection.values()].map((stored) => [stored.key, stored])));
    }
    return { revision: this.#revision, collections };
  }

  /** Goes back to what was stored then: the revisions since then are given out again. */
  restore({ revision, collections }: Backup): void {
    this.#revision = revision;
    for (const [name, collection] of this.#collections)
      collection.restore(collections.get(name) ?? new Map(), revision);
  }

  /** Forgets all history before now. */
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
