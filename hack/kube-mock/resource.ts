import type { ResourceType } from "../../src/kube/resource.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Cause } from "./api-error.ts";
import type { ApiObject, JsonObject } from "./json.ts";
import type { SelectableFields } from "./selectors.ts";
import type { View } from "./store.ts";

/** What a strategy gets in addition to the object. */
export interface StrategyContext {
  clock: Pick<Clock, "nowMs">;
}

/** The rules for writes of one kind. No function changes its arguments in place. */
export interface Strategy {
  /** Whether a PUT without `resourceVersion` is accepted and overwrites the stored object. */
  unconditionalUpdate: boolean;
  /** Whether a PUT creates a missing object. */
  createOnUpdate: boolean;
  /** Whether DELETE answers with the deleted object instead of a Status. */
  returnsDeleted: boolean;
  /** The part of an object whose changes increment `metadata.generation`; absent for kinds without a generation. */
  generationOf?: (object: ApiObject) => unknown;
  /** Whether a write of `/status` may also change metadata. */
  statusTakesMetadata: boolean;
  /** Sets defaults, and resets fields that clients cannot set in a create. */
  prepareCreate: (object: ApiObject, context: StrategyContext) => ApiObject;
  /** Resets fields that clients cannot change. It is not called for `/finalize`, which may change them. */
  prepareUpdate?: (next: ApiObject, previous: ApiObject) => ApiObject;
  /** @param previous absent at creation. */
  validate: (object: ApiObject, previous: ApiObject | undefined) => Cause[];
  /**
   * Whether `metadata.managedFields` has the time of the last write. The real server does this for every kind, but
   * ironfence reads it only for some.
   */
  stampsWrites?: boolean;
  /** Seconds that an object stays after a graceful deletion; 0 if absent. */
  graceSeconds?: (object: ApiObject, requestedSeconds: number | undefined) => number;
}

/** One kind in one served version. */
export interface ServedResource extends ResourceType, View {
  singular: string;
  shortNames: readonly string[];
  categories: readonly string[];
  listKind: string;
  /** Name of the collection in the store; versions of a kind share one. */
  storage: string;
  /**
   * Whether the kind is built in. As on the real server, list items of built-in kinds have no kind and apiVersion, and
   * those of custom resources have them.
   */
  builtIn: boolean;
  hasStatus: boolean;
  fields: SelectableFields;
  /**
   * Checks and converts a sent object before anything is read from the store.
   *
   * @param unknown gets the paths of fields that were dropped.
   * @throws ApiError 400.
   */
  decode: (sent: JsonObject, unknown: string[]) => JsonObject;
  /** Converts an object to the stored form. */
  toStorage: (object: ApiObject) => ApiObject;
  strategy: Strategy;
}
