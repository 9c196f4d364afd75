import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { toTime } from "../../src/runtime/time.ts";
import {
  ApiError,
  alreadyExists,
  badRequest,
  conflict,
  invalid,
  MODIFIED,
  noSuchResource,
  notFound,
} from "./api-error.ts";
import type { Cause } from "./api-error.ts";
import type { Catalog } from "./catalog.ts";
import { jsonEqual, listOf, objectOf, omit, shareWith } from "./json.ts";
import type { ApiObject, JsonObject, Metadata } from "./json.ts";
import { decodeMetadata, keepServerFields, typeOf, validateMetadata, validateMetadataUpdate } from "./metadata.ts";
import { applyPatch } from "./patch.ts";
import type { ServedResource } from "./resource.ts";
import { Stored } from "./store.ts";
import type { Collection, Store } from "./store.ts";

const NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const GENERATED_CHARACTERS = 5;
const GENERATE_TRIES_MAX = 8;

/** Identifies one object or, with an empty name, a collection. */
export interface Target {
  /** Empty for cluster-scoped kinds, and for all namespaces of a collection. */
  namespace: string;
  name: string;
}

export interface WriteOptions {
  /** Only namespaces have `finalize`. */
  subresource: "" | "status" | "finalize";
  dryRun: boolean;
  /** Whether unknown fields are refused. */
  strict: boolean;
}

export interface DeleteRequest {
  preconditions: { uid?: string; resourceVersion?: string };
  gracePeriodSeconds: number | undefined;
  propagationPolicy: string | undefined;
  dryRun: boolean;
}

/** The result of a write. */
export interface Written {
  stored: Stored;
  created: boolean;
  /** Fields that were dropped, for the `Warning` headers. */
  unknown: readonly string[];
}

/**
 * Handles every write, like the generic registry of the real server with admission. A call takes effect as a whole or
 * throws an ApiError.
 */
export class Registry {
  readonly #store: Store;
  readonly #catalog: Catalog;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(deps: { store: Store; catalog: Catalog; clock: Clock; random: Random }) {
    this.#store = deps.store;
    this.#catalog = deps.catalog;
    this.#clock = deps.clock;
    this.#random = deps.random;
  }

  get(resource: ServedResource, target: Target): Stored {
    const stored = this.#collection(resource).get(storeKey(resource, target));
    if (stored === undefined) throw notFound(resource, target.name);
    return stored;
  }

  create(resource: ServedResource, namespace: string, sent: JsonObject, options: WriteOptions): Written {
    const unknown: string[] = [];
    const object = this.#decode(resource, { namespace, name: "" }, sent, options, unknown);
    if (object.metadata.resourceVersion !== undefined) {
      throw new ApiError(500, "", "resourceVersion should not be set on objects to be created");
    }
    this.#admitNamespace(resource, object.metadata);
    for (let tries = 1; ; tries += 1) {
      const named = this.#name(object);
      const key = storeKey(resource, { namespace, name: named.metadata.name });
      const isTaken = this.#collection(resource).get(key) !== undefined;
      const isGenerated = object.metadata.name === "" && named.metadata.name !== "";
      if (isTaken && isGenerated && tries < GENERATE_TRIES_MAX) continue;
      const stored = this.#createNamed(resource, key, named, isTaken, options);
      return { stored, created: true, unknown };
    }
  }

  #createNamed(
    resource: ServedResource,
    key: string,
    sent: ApiObject,
    isTaken: boolean,
    options: WriteOptions,
  ): Stored {
    const { strategy } = resource;
    const { deletionTimestamp: _d, deletionGracePeriodSeconds: _g, generation: _n, ...metadata } = sent.metadata;
    const object = strategy.prepareCreate(
      resource.toStorage({
        ...sent,
        metadata: {
          ...metadata,
          uid: this.#random.uuid(),
          creationTimestamp: toTime(this.#clock.nowMs()),
          ...(strategy.generationOf !== undefined && { generation: 1 }),
        },
      }),
      { clock: this.#clock },
    );
    this.#check(
      resource,
      [...validateMetadata(object, resource.builtIn), ...strategy.validate(object, undefined)],
      object,
    );
    if (isTaken) throw alreadyExists(resource, object.metadata.name);
    const stamped = this.#stamp(resource, object, undefined);
    if (options.dryRun) return new Stored(key, stamped);
    return this.#store.put(this.#collection(resource), key, stamped);
  }

  /** Handles PUT. */
  replace(resource: ServedResource, target: Target, sent: JsonObject, options: WriteOptions): Written {
    const unknown: string[] = [];
    const { strategy } = resource;
    const object = this.#decode(resource, target, sent, options, unknown);
    const current = this.#collection(resource).get(storeKey(resource, target));
    if (current === undefined) {
      if (!strategy.createOnUpdate || options.subresource !== "") throw notFound(resource, target.name);
      if (object.metadata.uid !== "")
        throw conflict(resource, resource.plural, target.name, `Precondition failed: UID`);
      return this.create(resource, target.namespace, { ...sent, metadata: object.metadata }, options);
    }
    const { uid, resourceVersion } = current.object.metadata;
    if (object.metadata.uid !== "" && object.metadata.uid !== uid) {
      const why = `Precondition failed: UID in precondition: ${object.metadata.uid}, UID in object meta: ${uid}`;
      throw conflict(resource, resource.plural, target.name, why);
    }
    if (object.metadata.resourceVersion === undefined && !strategy.unconditionalUpdate) {
      const message = "Invalid value: 0: must be specified for an update";
      throw invalid(resource.group, resource.plural, target.name, [
        { reason: "FieldValueInvalid", message, field: "metadata.resourceVersion" },
      ]);
    }
    if (object.metadata.resourceVersion !== undefined && object.metadata.resourceVersion !== resourceVersion) {
      throw conflict(resource, resource.plural, target.name, MODIFIED);
    }
    return { stored: this.#update(resource, current, object, options), created: false, unknown };
  }

  patch(resource: ServedResource, target: Target, contentType: string, text: string, options: WriteOptions): Written {
    const current = this.get(resource, target);
    const shown = current.as(resource);
    const patched = objectOf(shareWith(applyPatch(shown, contentType, text), shown));
    const unknown: string[] = [];
    const object = this.#decode(resource, target, patched, options, unknown);
    const { resourceVersion } = object.metadata;
    if (resourceVersion !== undefined && resourceVersion !== current.object.metadata.resourceVersion) {
      throw conflict(resource, resource.plural, target.name, MODIFIED);
    }
    return { stored: this.#update(resource, current, object, options), created: false, unknown };
  }

  /** Binds a pod to a node. No update may change this field of the pod's spec. */
  bind(resource: ServedResource, target: Target, nodeName: string, lastTransitionTime: string): Stored {
    const current = this.get(resource, target);
    const { object } = current;
    const status = objectOf(object["status"]);
    const condition = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime };
    return this.#store.put(this.#collection(resource), current.key, {
      ...object,
      spec: { ...objectOf(object["spec"]), nodeName },
      status: { ...status, conditions: [...listOf(status["conditions"]), condition] },
    });
  }

  #update(resource: ServedResource, current: Stored, sent: ApiObject, options: WriteOptions): Stored {
    const { strategy } = resource;
    const previous = current.object;
    const candidate = withMetadata(resource.toStorage(sent), keepServerFields(sent.metadata, previous.metadata));
    const scoped = this.#scope(resource, candidate, previous, options);
    const next = this.#stamp(resource, this.#countGeneration(resource, scoped, previous), previous);
    this.#check(
      resource,
      [
        ...validateMetadataUpdate(next.metadata, previous.metadata),
        ...validateMetadata(next, resource.builtIn),
        ...strategy.validate(next, previous),
      ],
      next,
    );
    if (jsonEqual(next, previous)) return current;
    if (options.dryRun) return new Stored(current.key, next);
    if (isReleased(next)) {
      this.#remove(resource, current);
      return new Stored(current.key, next);
    }
    return this.#store.put(this.#collection(resource), current.key, next);
  }

  /** Adds the time of the write to an object that has changed. */
  #stamp(resource: ServedResource, next: ApiObject, previous: ApiObject | undefined): ApiObject {
    if (resource.strategy.stampsWrites !== true) return next;
    const managedFields = previous?.metadata["managedFields"];
    const unchanged = withMetadata(next, { ...next.metadata, ...(managedFields !== undefined && { managedFields }) });
    if (previous !== undefined && jsonEqual(unchanged, previous)) return unchanged;
    const { apiVersion } = resource;
    const stamp = { manager: "client", operation: "Update", apiVersion, time: toTime(this.#clock.nowMs()) };
    return withMetadata(next, { ...next.metadata, managedFields: [stamp] });
  }

  /** Limits a write to what its endpoint may change: only the status, or all but the status. */
  #scope(resource: ServedResource, next: ApiObject, previous: ApiObject, options: WriteOptions): ApiObject {
    if (options.subresource === "status") {
      const scoped = { ...previous, status: next["status"] };
      const metadata = resource.strategy.statusTakesMetadata ? next.metadata : previous.metadata;
      return withMetadata(
        next["status"] === undefined ? toApiObject(omit(scoped, "status"), previous) : scoped,
        metadata,
      );
    }
    if (options.subresource === "finalize") return { ...previous, spec: next["spec"] };
    const prepared = resource.strategy.prepareUpdate?.(next, previous) ?? next;
    if (!resource.hasStatus) return prepared;
    const rest = toApiObject(omit(prepared, "status"), prepared);
    return previous["status"] === undefined ? rest : { ...rest, status: previous["status"] };
  }

  #countGeneration(resource: ServedResource, next: ApiObject, previous: ApiObject): ApiObject {
    const { generationOf } = resource.strategy;
    if (generationOf === undefined || jsonEqual(generationOf(next), generationOf(previous))) return next;
    return withMetadata(next, { ...next.metadata, generation: (previous.metadata.generation ?? 0) + 1 });
  }

  /** @returns the deleted object, or the object with its deletion timestamp if finalizers or a grace period keep it. */
  delete(resource: ServedResource, target: Target, request: DeleteRequest): { stored: Stored; removed: boolean } {
    const current = this.get(resource, target);
    this.#checkPreconditions(resource, current.object, request);
    const next = this.#markDeleted(resource, current.object, request);
    if (isReleased(next)) {
      if (!request.dryRun) this.#remove(resource, current);
      const isGraceful = resource.strategy.graceSeconds !== undefined;
      return { stored: isGraceful ? new Stored(current.key, next) : current, removed: true };
    }
    if (request.dryRun) return { stored: new Stored(current.key, next), removed: false };
    if (jsonEqual(next, current.object)) return { stored: current, removed: false };
    return { stored: this.#store.put(this.#collection(resource), current.key, next), removed: false };
  }

  #checkPreconditions(resource: ServedResource, { metadata }: ApiObject, { preconditions }: DeleteRequest): void {
    const { uid, resourceVersion } = preconditions;
    if (uid !== undefined && uid !== metadata.uid) {
      const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`;
      throw conflict(resource, resource.kind, metadata.name, why);
    }
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
      const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion ?? ""}). The object might have been modified`;
      throw conflict(resource, resource.kind, metadata.name, why);
    }
  }

  #markDeleted(resource: ServedResource, object: ApiObject, request: DeleteRequest): ApiObject {
    const { metadata } = object;
    const graceSeconds = resource.strategy.graceSeconds?.(object, request.gracePeriodSeconds) ?? 0;
    const finalizers = finalizersFor(metadata.finalizers ?? [], request.propagationPolicy);
    const isShorter = graceSeconds < (metadata.deletionGracePeriodSeconds ?? Infinity);
    const isFirst = metadata.deletionTimestamp === undefined;
    const deletion =
      isFirst || isShorter
        ? {
            deletionTimestamp: toTime(this.#clock.nowMs() + graceSeconds * 1_000),
            ...(resource.kind !== "Namespace" && { deletionGracePeriodSeconds: graceSeconds }),
            // When the real server marks an object as deleted, it increments the generation if the kind has one.
            ...(isFirst && metadata.generation !== undefined && { generation: metadata.generation + 1 }),
          }
        : {};
    const { finalizers: _finalizers, ...rest } = metadata;
    const marked = withMetadata(object, { ...rest, ...deletion, ...(finalizers.length > 0 && { finalizers }) });
    return resource.kind === "Namespace" ? { ...marked, status: { phase: "Terminating" } } : marked;
  }

  #remove(resource: ServedResource, stored: Stored): void {
    this.#store.remove(this.#collection(resource), stored);
  }

  #collection(resource: ServedResource): Collection {
    return this.#store.collection(resource.storage);
  }

  #decode(
    resource: ServedResource,
    target: Target,
    sent: JsonObject,
    options: WriteOptions,
    unknown: string[],
  ): ApiObject {
    checkType(resource, sent);
    const decoded = resource.decode(sent, unknown);
    if (options.strict && unknown.length > 0) {
      const fields = unknown.map((path) => `unknown field "${path}"`).join(", ");
      throw badRequest(
        `${resource.kind} in version "${resource.version}" cannot be handled as a ${resource.kind}: strict decoding error: ${fields}`,
      );
    }
    const metadata = decodeMetadata(decoded);
    if (target.name !== "" && metadata.name !== "" && metadata.name !== target.name) {
      throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${target.name})`);
    }
    if (resource.namespaced && (metadata.namespace ?? target.namespace) !== target.namespace) {
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    }
    const { namespace: _namespace, ...rest } = metadata;
    return {
      ...decoded,
      apiVersion: resource.apiVersion,
      kind: resource.kind,
      metadata: {
        ...rest,
        name: metadata.name === "" ? target.name : metadata.name,
        ...(resource.namespaced && { namespace: target.namespace }),
      },
    };
  }

  /** Does what the admission plugin NamespaceLifecycle does. */
  #admitNamespace(resource: ServedResource, { namespace, name }: Metadata): void {
    if (!resource.namespaced || namespace === undefined) return;
    const namespaces = this.#catalog.find("v1", "namespaces");
    if (namespaces === undefined) throw noSuchResource();
    const { object } = this.get(namespaces, { namespace: "", name: namespace });
    if (object.metadata.deletionTimestamp === undefined) return;
    const word = resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
    const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
    throw new ApiError(403, "Forbidden", `${word} "${name}" is forbidden: ${why}`, {
      name,
      ...(resource.group !== "" && { group: resource.group }),
      kind: resource.plural,
      causes: [
        {
          reason: "NamespaceTerminating",
          message: `namespace ${namespace} is being terminated`,
          field: "metadata.namespace",
        },
      ],
    });
  }

  #name(object: ApiObject): ApiObject {
    const { name, generateName } = object.metadata;
    if (name !== "" || typeof generateName !== "string" || generateName === "") return object;
    const suffix = Array.from({ length: GENERATED_CHARACTERS }, () => {
      return NAME_ALPHABET[Math.floor(this.#random.next() * NAME_ALPHABET.length)] ?? "";
    });
    return withMetadata(object, { ...object.metadata, name: `${generateName}${suffix.join("")}` });
  }

  #check(resource: ServedResource, causes: readonly Cause[], { metadata }: ApiObject): void {
    // Events are stored in the core group, so errors name that group even if the request used events.k8s.io.
    const [storageGroup = ""] = resource.storage.split("/");
    if (causes.length > 0) throw invalid(storageGroup, resource.kind, metadata.name, causes);
  }
}

/** The key of an object in its collection: ordered as the real server orders lists. */
export function storeKey(resource: ServedResource, { namespace, name }: Target): string {
  return resource.namespaced ? `${namespace}/${name}` : name;
}

function checkType(resource: ServedResource, sent: JsonObject): void {
  const { kind, apiVersion } = typeOf(sent);
  if (!resource.builtIn && (kind === "" || apiVersion === "")) {
    const missing = kind === "" ? "Kind" : "apiVersion";
    throw badRequest(
      `the object provided is unrecognized (must be of type ${resource.kind}): Object '${missing}' is missing`,
    );
  }
  if (apiVersion !== "" && apiVersion !== resource.apiVersion) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${resource.apiVersion})`,
    );
  }
  if (kind === "" || kind === resource.kind) return;
  if (resource.builtIn) {
    throw badRequest(`${kind} in version "${resource.version}" cannot be handled as a ${resource.kind}`);
  }
  const { name } = objectOf(sent["metadata"]);
  throw invalid(resource.group, kind, typeof name === "string" ? name : "", [
    { reason: "FieldValueInvalid", message: `Invalid value: "${kind}": must be ${resource.kind}`, field: "kind" },
  ]);
}

function finalizersFor(finalizers: readonly string[], policy: string | undefined): string[] {
  const kept = finalizers.filter(
    (name) => policy === undefined || (name !== "orphan" && name !== "foregroundDeletion"),
  );
  if (policy === "Orphan") return [...kept, "orphan"];
  if (policy === "Foreground") return [...kept, "foregroundDeletion"];
  return kept;
}

/** Whether neither a finalizer nor a grace period keeps a deleted object. */
function isReleased(object: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata;
  const namespaceFinalizers = object.kind === "Namespace" ? listOf(objectOf(object["spec"])["finalizers"]) : [];
  return (
    deletionTimestamp !== undefined &&
    (deletionGracePeriodSeconds ?? 0) === 0 &&
    (finalizers ?? []).length === 0 &&
    namespaceFinalizers.length === 0
  );
}

function withMetadata(object: ApiObject, metadata: Metadata): ApiObject {
  return { ...object, metadata };
}

function toApiObject(object: JsonObject, { apiVersion, kind, metadata }: ApiObject): ApiObject {
  return { ...object, apiVersion, kind, metadata };
}
