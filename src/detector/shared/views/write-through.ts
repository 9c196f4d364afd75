import type { ObjectKey } from "../../../kube/client.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { Change, Watched } from "../../../kube/watched.ts";

/** How many deleted UIDs are remembered, so that an answer that comes after its object's end is not taken for news. */
const DELETED_MAX = 1_000;

interface Written<T> {
  object: T;
  /** Versions that `object` came after: a view that still shows one of them is behind. */
  replaced: Set<string>;
  atMs: number;
}

/**
 * A watched collection in which our own writes are seen at once, not when the watch brings them: what was created counts
 * from the answer on, so nothing is created twice and the budget is judged on what is true.
 */
export class WriteThrough<T extends KubeObject> {
  readonly #view: Watched<T>;
  readonly #written = new Map<string, Written<T>>();
  readonly #deleted = new Set<string>();
  readonly #unsubscribe: () => void;

  constructor(view: Watched<T>) {
    this.#view = view;
    this.#unsubscribe = view.subscribe((change) => this.#observe(change));
  }

  /** Every object, each in the newest version known. */
  *values(): IterableIterator<T> {
    const seen = new Set<string>();
    for (const object of this.#view.values()) {
      const { uid } = object.metadata;
      seen.add(uid);
      yield this.#written.get(uid)?.object ?? object;
    }
    for (const [uid, { object }] of this.#written) if (!seen.has(uid)) yield object;
  }

  /** The object of a name, in the newest version known. */
  get(key: ObjectKey): T | undefined {
    const shown = this.#view.get(key);
    if (shown !== undefined) return this.newest(shown);
    for (const { object } of this.#written.values()) {
      const { name, namespace } = object.metadata;
      if (name === key.name && namespace === key.namespace) return object;
    }
    return undefined;
  }

  /** The object in the newest version known. */
  newest(object: T): T {
    return this.#written.get(object.metadata.uid)?.object ?? object;
  }

  /**
   * Takes in the answer to a write.
   *
   * @param replacedVersion the version that was patched; undefined for a creation.
   */
  wrote(object: T, replacedVersion: string | undefined, atMs: number): void {
    const { uid, resourceVersion, name, namespace } = object.metadata;
    if (this.#deleted.has(uid)) return;
    const replaced = this.#written.get(uid)?.replaced ?? new Set<string>();
    if (replacedVersion !== undefined) replaced.add(replacedVersion);
    const shown = this.#view.get(namespace === undefined ? { name } : { namespace, name });
    const isShown = shown?.metadata.uid === uid && !replaced.has(shown.metadata.resourceVersion);
    if (isShown || replaced.has(resourceVersion)) this.#written.delete(uid);
    else this.#written.set(uid, { object, replaced, atMs });
  }

  /** Whether the watch reported recently that the object with this UID is gone. */
  hasEnded(uid: string): boolean {
    return this.#deleted.has(uid);
  }

  /** What was written before `beforeMs` and has not come back since: read it live, it may be gone. */
  unseenSince(beforeMs: number): T[] {
    return [...this.#written.values()].filter(({ atMs }) => atMs < beforeMs).map(({ object }) => object);
  }

  /** Drops what was written: from now on only the watch counts for this object. */
  forget(uid: string): void {
    this.#written.delete(uid);
  }

  close(): void {
    this.#unsubscribe();
  }

  #forgetOldestDeletion(): void {
    for (const uid of this.#deleted) {
      this.#deleted.delete(uid);
      return;
    }
  }

  #observe(change: Change<T>): void {
    const { uid, resourceVersion } = change.object.metadata;
    if (change.type === "deleted") {
      this.#written.delete(uid);
      this.#deleted.add(uid);
      if (this.#deleted.size > DELETED_MAX) this.#forgetOldestDeletion();
      return;
    }
    if (this.#written.get(uid)?.replaced.has(resourceVersion) !== true) this.#written.delete(uid);
  }
}
