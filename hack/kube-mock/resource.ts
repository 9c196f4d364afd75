import type { ResourceType } from "../../src/kube/resource.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Cause } from "./api-error.ts";
import type { ApiObject, JsonObject } from "./json.ts";
import type { SelectableFields } from "./selectors.ts";
import type { View } from "./store.ts";

/** What a strategy may ask of the world. */
export interface StrategyContext {
  clock: Pick<Clock, "nowMs">;
}

/** What is peculiar to one kind when it is written. None of these changes its arguments in place. */
export interface Strategy {
  /** Whether a PUT may leave `resourceVersion` out and so overwrite whatever is there. */
  unconditionalUpdate: boolean;
  /** Whether a PUT creates what is not there. */
  createOnUpdate: boolean;
  /** Whether DELETE answers with the object rather than with a Status once it is gone. */
  returnsDeleted: boolean;
  /** The part of an object whose change counts `metadata.generation` up; absent for kinds without a generation. */
  generationOf?: (object: ApiObject) => unknown;
  /** Whether metadata may change through `/status` too. */
  statusTakesMetadata: boolean;
  /** Defaults, and fields that clients cannot set when they create. */
  prepareCreate: (object: ApiObject, context: StrategyContext) => ApiObject;
  /** Fields that clients cannot change (through `/finalize` they can: it does not pass here). */
  prepareUpdate?: (next: ApiObject, previous: ApiObject) => ApiObject;
  /** @param previous absent at creation. */
  validate: (object: ApiObject, previous: ApiObject | undefined) => Cause[];
  /**
   * Whether `metadata.managedFields` says when it was last written, as for every kind of the real server. It is
   * not read of other kinds.
   */
  stampsWrites?: boolean;
  /** Seconds an object stays after a graceful deletion; absent: none. */
  graceSeconds?: (object: ApiObject, requestedSeconds: number | undefined) => number;
}

/** One kind in one version, as it is served. */
export interface ServedResource extends ResourceType, View {
  singular: string;
  shortNames: readonly string[];
  categories: readonly string[];
  listKind: string;
  /** Name of the collection in the store; versions of a kind share one. */
  storage: string;
  /**
   * Items of lists of built-in kinds come without kind and apiVersion, those of custom resources with them (as in
   * reality).
   */
  builtIn: boolean;
  hasStatus: boolean;
  fields: SelectableFields;
  /**
   * Checks and converts what a client sent, before anything is read from the store.
   *
   * @param unknown gets the paths of fields that were dropped.
   * @throws ApiError 400.
   */
  decode: (sent: JsonObject, unknown: string[]) => JsonObject;
  /** Into the storage's shape. */
  toStorage: (object: ApiObject) => ApiObject;
  strategy: Strategy;
}
