import type { ObjectKey } from "../client.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import { keyOf, keyText } from "../watched.ts";

/** How many objects are kept. The one whose last write is the oldest is dropped first. */
const KEPT_MAX = 20_000;

/** An object as it would be if its writes had been sent. */
interface UnsentObject {
  object: KubeObject;
  /** The version on the API server that the writes are based on; undefined if the API server has no such object. */
  base: string | undefined;
}

/** A change of an object with unsent writes; `isForgotten` if its writes were dropped. */
export interface UnsentChange {
  object: KubeObject;
  isForgotten: boolean;
}

/** The objects of a cluster with the writes that were not sent. */
export class UnsentObjects {
  readonly #kept = new Map<string, UnsentObject>();
  readonly #listeners = new Map<string, Set<(change: UnsentChange) => void>>();
  readonly #logger: Pick<Logger, "warn">;
  #version = 0;
  #isEvictionReported = false;

  constructor(logger: Pick<Logger, "warn">) {
    this.#logger = logger;
  }

  get(type: ResourceType, key: ObjectKey): KubeObject | undefined {
    return this.#kept.get(nameIn(type, key))?.object;
  }

  /** Whether the object exists only here, and not on the API server. */
  isCreated(type: ResourceType, key: ObjectKey): boolean {
    const known = this.#kept.get(nameIn(type, key));
    return known !== undefined && known.base === undefined;
  }

  /** The objects that exist only here. */
  created(type: ResourceType): KubeObject[] {
    const prefix = nameIn(type, { name: "" });
    return [...this.#kept].flatMap(([name, { object, base }]) =>
      base === undefined && name.startsWith(prefix) ? [object] : [],
    );
  }

  /** A version that no API server uses. */
  nextVersion(): string {
    this.#version += 1;
    return `unsent-${this.#version}`;
  }

  /** @param base the version on the API server; undefined if it has no such object. */
  keep(type: ResourceType, object: KubeObject, base: string | undefined): void {
    const name = nameIn(type, keyOf(object));
    this.#kept.delete(name);
    this.#kept.set(name, { object, base });
    this.#notify(type, { object, isForgotten: false });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX) break;
      this.#kept.delete(oldest);
      this.#reportEviction(oldest);
    }
  }

  /** Reported once, because in such a large outage every further write drops an object. */
  #reportEviction(object: string): void {
    if (this.#isEvictionReported) return;
    this.#isEvictionReported = true;
    const consequence =
      "later decisions about this object, and about others that are dropped after it, ignore these writes";
    this.#logger.warn(
      { object, limit: KEPT_MAX, consequence },
      "too many unsent writes are kept in memory, so the oldest is dropped",
    );
  }

  forget(type: ResourceType, key: ObjectKey): void {
    const name = nameIn(type, key);
    const known = this.#kept.get(name);
    if (known === undefined) return;
    this.#kept.delete(name);
    this.#notify(type, { object: known.object, isForgotten: true });
  }

  /**
   * The version on the API server that the writes to an object are based on; undefined if there are none, or if the
   * object exists only here.
   */
  baseOf(type: ResourceType, key: ObjectKey): string | undefined {
    return this.#kept.get(nameIn(type, key))?.base;
  }

  /**
   * Takes over an object as the API server returned it. If another writer has changed it, its unsent writes are
   * dropped, except for a status if the object on the API server has none.
   */
  serverHas(type: ResourceType, raw: KubeObject): void {
    const name = nameIn(type, keyOf(raw));
    const known = this.#kept.get(name);
    if (known === undefined || known.base === undefined || known.base === raw.metadata.resourceVersion) return;
    const { status } = known.object as { status?: unknown };
    const isSame = known.object.metadata.uid === raw.metadata.uid;
    if (!isSame || status === undefined || "status" in raw) {
      this.#kept.delete(name);
      return;
    }
    const { resourceVersion: base } = raw.metadata;
    const object = { ...raw, metadata: { ...raw.metadata, resourceVersion: this.nextVersion() }, status };
    this.#kept.set(name, { object, base });
  }

  subscribe(type: ResourceType, listener: (change: UnsentChange) => void): () => void {
    const kind = kindOf(type);
    const listeners = this.#listeners.get(kind) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(kind, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(kind);
    };
  }

  #notify(type: ResourceType, change: UnsentChange): void {
    const listeners = [...(this.#listeners.get(kindOf(type)) ?? [])];
    for (const listener of listeners) listener(change);
  }
}

function kindOf({ group, version, plural }: ResourceType): string {
  return `${group}/${version}/${plural}`;
}

function nameIn(type: ResourceType, key: ObjectKey): string {
  return `${kindOf(type)} ${keyText(key)}`;
}
