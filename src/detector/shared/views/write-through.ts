import type { ObjectKey } from "../../../kube/client.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { Change, Watched } from "../../../kube/watched.ts";

/**
 * How many UIDs of deleted objects are kept, so that a response that arrives after the deletion of its object is
 * ignored.
 */
const DELETED_MAX = 1_000;

interface Written<T> {
  object: T;
  /** Earlier versions of `object`. A view that still shows one of them is late. */
  replaced: Set<string>;
  atMs: number;
}

/**
 * A watched collection that includes the agent's own writes as soon as the API server has answered, before the watch
 * reports them. So no remediation is created twice, and the threshold counts all remediations.
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
    const yielded = new Set<string>();
    for (const object of this.#view.values()) {
      const { uid } = object.metadata;
      yielded.add(uid);
      yield this.#written.get(uid)?.object ?? object;
    }
    for (const [uid, { object }] of this.#written) if (!yielded.has(uid)) yield object;
  }

  /** The object with this name, in the newest version known. */
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

  /** Adds the response to a write.
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

  /**
   * Objects that were written before `beforeMs` and that the watch has not reported. The caller must read them live,
   * because they may be deleted.
   */
  unreportedSince(beforeMs: number): T[] {
    return [...this.#written.values()].filter(({ atMs }) => atMs < beforeMs).map(({ object }) => object);
  }

  /** Drops the agent's own write of an object. Only the watch counts for it from now on. */
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
