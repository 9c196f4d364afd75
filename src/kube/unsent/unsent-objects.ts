import type { ObjectKey } from "../client.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import { keyOf, keyText } from "../watched.ts";

/** How many objects are kept at most; the oldest ones are forgotten first. */
const KEPT_MAX = 20_000;

/** An object as it would be if the writes to it had been sent. */
interface UnsentObject {
  object: KubeObject;
  /** The version on the API server that the writes were made for; undefined if the API server has no such object. */
  base: string | undefined;
}

/** One change of what would be there; `isForgotten` if the object is on the API server only, from now on. */
export interface UnsentChange {
  object: KubeObject;
  isForgotten: boolean;
}

/** What writes that are not sent would have made of the objects of a cluster. */
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

  /** Whether the API server has no such object: it exists only here. */
  isCreated(type: ResourceType, key: ObjectKey): boolean {
    const known = this.#kept.get(nameIn(type, key));
    return known !== undefined && known.base === undefined;
  }

  /** Those that the API server does not have. */
  created(type: ResourceType): KubeObject[] {
    const prefix = nameIn(type, { name: "" });
    return [...this.#kept].flatMap(([name, { object, base }]) =>
      base === undefined && name.startsWith(prefix) ? [object] : [],
    );
  }

  /** A version that no API server gives out. */
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

  /** Once: in an outage of that size, each further write would be reported as well. */
  #reportEviction(object: string): void {
    if (this.#isEvictionReported) return;
    this.#isEvictionReported = true;
    const consequence = "further decisions on it, and on others that follow, are made as if nothing had been written";
    this.#logger.warn({ object, limit: KEPT_MAX, consequence }, "too many writes are kept, so the oldest is forgotten");
  }

  forget(type: ResourceType, key: ObjectKey): void {
    const name = nameIn(type, key);
    const known = this.#kept.get(name);
    if (known === undefined) return;
    this.#kept.delete(name);
    this.#notify(type, { object: known.object, isForgotten: true });
  }

  /**
   * The version on the API server that the writes to an object were made for; undefined if there were none, or if the
   * object exists only here.
   */
  baseOf(type: ResourceType, key: ObjectKey): string | undefined {
    return this.#kept.get(nameIn(type, key))?.base;
  }

  /**
   * Takes an object in as the API server has it. If another writer has changed it, the writes that were not sent are
   * forgotten, but for a status that no other writer has set.
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
