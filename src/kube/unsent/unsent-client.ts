import type { Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import { toTime } from "../../runtime/time.ts";
import type {
  DeleteOptions,
  Guard,
  JsonPatchOperation,
  KubeClient,
  ListOptions,
  ObjectKey,
  ObjectList,
  WriteOptions,
} from "../client.ts";
import { isKubeError, KubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import { apiVersionOf } from "../resource.ts";
import { keyText } from "../watched.ts";
import { applyOperations, mergeFields } from "./apply-patch.ts";
import type { UnsentObjects } from "./unsent-objects.ts";

/**
 * Removes from an object of the API server what other writers have written to the same fields. Returns undefined to
 * hide the object.
 */
export type ReadAs = (raw: KubeObject) => KubeObject | undefined;

export interface UnsentClientDeps {
  /** Used for reads only. */
  client: KubeClient;
  clock: Clock;
  random: Random;
  objects: UnsentObjects;
  readAs: ReadAs;
}

/**
 * A client that reads from the API server, and keeps each write in memory instead of sending it. It refuses a write
 * that the API server would refuse because of a guard or a name. Lists and discovery do not show the writes in memory.
 */
export class UnsentClient implements KubeClient {
  readonly #deps: UnsentClientDeps;
  readonly discover: KubeClient["discover"];

  constructor(deps: UnsentClientDeps) {
    this.#deps = deps;
    this.discover = (apiVersion, kind, signal) => deps.client.discover(apiVersion, kind, signal);
  }

  async get<T extends KubeObject>(type: ResourceType, key: ObjectKey, signal: AbortSignal): Promise<T> {
    const { client, objects, readAs } = this.#deps;
    if (objects.isCreated(type, key)) return objects.get(type, key) as T;
    const found = readAs(await client.get(type, key, signal));
    if (found === undefined) throw failure("NotFound", "get", type, key);
    objects.serverHas(type, found);
    return (objects.get(type, key) ?? found) as T;
  }

  list<T extends KubeObject>(type: ResourceType, options: ListOptions, signal: AbortSignal): Promise<ObjectList<T>> {
    return this.#deps.client.list<T>(type, options, signal);
  }

  async create<T extends KubeObject>(
    type: ResourceType,
    object: Omit<T, "metadata"> & { metadata: Partial<T["metadata"]> },
    _options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T> {
    const { clock, random, objects } = this.#deps;
    const { metadata } = object;
    const name = metadata.name ?? `${metadata.generateName ?? ""}${random.uuid().slice(0, 5)}`;
    const { namespace } = metadata;
    const key: ObjectKey = namespace === undefined ? { name } : { namespace, name };
    if (await this.#exists(type, key, signal)) throw failure("AlreadyExists", "create", type, key);
    const created = {
      ...object,
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: {
        ...metadata,
        name,
        uid: random.uuid(),
        resourceVersion: objects.nextVersion(),
        creationTimestamp: toTime(clock.nowMs()),
      },
    };
    objects.keep(type, created as KubeObject, undefined);
    return created as unknown as T;
  }

  patch<T extends KubeObject>(
    type: ResourceType,
    key: ObjectKey,
    guard: Guard,
    operations: readonly JsonPatchOperation[],
    _options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T> {
    return this.#change<T>(type, key, guard, (before) => applyOperations(before, operations), signal);
  }

  mergePatch<T extends KubeObject>(
    type: ResourceType,
    key: ObjectKey,
    guard: Required<Guard>,
    content: Record<string, unknown>,
    _options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T> {
    return this.#change<T>(type, key, guard, (before) => mergeFields(before, content), signal);
  }

  /**
   * Only an object that was created here disappears at once. An object of the API server may have finalizers, so it
   * gets a `deletionTimestamp`.
   */
  async delete(type: ResourceType, key: ObjectKey, { guard }: DeleteOptions, signal: AbortSignal): Promise<void> {
    const { clock, objects } = this.#deps;
    const deletionTimestamp = toTime(clock.nowMs());
    const markDeleted = (before: KubeObject): object => ({
      ...before,
      metadata: { ...before.metadata, deletionTimestamp },
    });
    await this.#change(type, key, guard, markDeleted, signal);
    if (objects.isCreated(type, key)) objects.forget(type, key);
  }

  async #exists(type: ResourceType, key: ObjectKey, signal: AbortSignal): Promise<boolean> {
    try {
      await this.get(type, key, signal);
      return true;
    } catch (error) {
      if (isKubeError(error, "NotFound")) return false;
      throw error;
    }
  }

  async #change<T extends KubeObject>(
    type: ResourceType,
    key: ObjectKey,
    guard: Guard,
    change: (before: KubeObject) => object | undefined,
    signal: AbortSignal,
  ): Promise<T> {
    const { objects } = this.#deps;
    const before = await this.get(type, key, signal);
    const { uid, resourceVersion } = before.metadata;
    const isMeant = guard.uid === uid && (guard.resourceVersion ?? resourceVersion) === resourceVersion;
    const changed = isMeant ? (change(before) as KubeObject | undefined) : undefined;
    if (changed === undefined) throw failure("Conflict", "patch", type, key);
    const object = { ...changed, metadata: { ...changed.metadata, uid, resourceVersion: objects.nextVersion() } };
    // The base of an object without earlier writes is the version that was just read.
    const base = objects.get(type, key) === undefined ? resourceVersion : objects.baseOf(type, key);
    objects.keep(type, object, base);
    return object as T;
  }
}

function failure(
  code: "NotFound" | "AlreadyExists" | "Conflict",
  verb: string,
  type: ResourceType,
  key: ObjectKey,
): KubeError {
  const why = { NotFound: "it does not exist", AlreadyExists: "it exists already", Conflict: "it has changed" }[code];
  return new KubeError(code, `${verb} ${type.plural} ${keyText(key)} (not sent): ${why}`);
}
