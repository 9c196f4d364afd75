import type { Cause } from "../api-error.ts";
import { jsonEqual, objectOf, omit, textOf } from "../json.ts";
import type { ApiObject } from "../json.ts";
import { define } from "./define.ts";
import { decodeMicroTimes } from "./times.ts";

// Core and events.k8s.io events are one collection, stored in the core shape.

/** Fields whose names differ: the name in events.k8s.io/v1, and the name in core/v1. */
const NAMES: readonly (readonly [newName: string, coreName: string])[] = [
  ["regarding", "involvedObject"],
  ["note", "message"],
  ["reportingController", "reportingComponent"],
  ["deprecatedSource", "source"],
  ["deprecatedFirstTimestamp", "firstTimestamp"],
  ["deprecatedLastTimestamp", "lastTimestamp"],
  ["deprecatedCount", "count"],
];
const NOTE_CHARACTERS_MAX = 1_024;
const GROUP = "events.k8s.io/v1";

function rename(object: ApiObject, apiVersion: string, names: readonly (readonly [string, string])[]): ApiObject {
  const renamed: ApiObject = { ...object, apiVersion };
  for (const [from, to] of names) {
    if (renamed[from] === undefined) continue;
    renamed[to] = renamed[from];
    delete renamed[from];
  }
  return renamed;
}

/** core/v1 */
export const CORE_EVENTS = define(
  {
    group: "",
    kind: "Event",
    plural: "events",
    namespaced: true,
    shortNames: ["ev"],
    hasStatus: false,
    strategy: {
      createOnUpdate: true,
      validate: (object, previous) => (previous === undefined ? validateNamespace(object, ["default"], true) : []),
    },
  },
  { decode: (sent) => decodeMicroTimes(sent, "Event", ["eventTime", "series.lastObservedTime"]) },
);

/** events.k8s.io/v1 */
export const EVENTS = define(
  {
    group: "events.k8s.io",
    kind: "Event",
    plural: "events",
    namespaced: true,
    shortNames: ["ev"],
    hasStatus: false,
    strategy: {
      createOnUpdate: true,
      validate: (object, previous) => (previous === undefined ? validateNew(object) : validateChange(object, previous)),
    },
  },
  {
    storage: CORE_EVENTS.storage,
    decode: (sent) => decodeMicroTimes(sent, "Event", ["eventTime", "series.lastObservedTime"]),
    fromStorage: (object) =>
      rename(
        object,
        GROUP,
        NAMES.map(([newName, coreName]) => [coreName, newName] as const),
      ),
    toStorage: (object) => rename(object, "v1", NAMES),
  },
);

// Validation uses the stored (core) shape. Like the real server, it reports some fields by their new names.

/**
 * @param clusterScoped namespaces that an event about a cluster-scoped object may have.
 * @param sharesNamespace whether an event about a namespaced object must have the namespace of that object.
 */
function validateNamespace(object: ApiObject, clusterScoped: readonly string[], sharesNamespace: boolean): Cause[] {
  const namespace = object.metadata.namespace ?? "";
  const regarded = textOf(objectOf(object["involvedObject"])["namespace"]);
  const fits = regarded === "" ? clusterScoped.includes(namespace) : !sharesNamespace || regarded === namespace;
  if (fits) return [];
  const message = `Invalid value: "${regarded}": does not match event.namespace`;
  return [{ reason: "FieldValueInvalid", message, field: "involvedObject.namespace" }];
}

function validateNew(object: ApiObject): Cause[] {
  const causes = validateNamespace(object, ["default", "kube-system"], false);
  const require = (stored: string, field: string): void => {
    if (textOf(object[stored]) === "") causes.push({ reason: "FieldValueRequired", message: "Required value", field });
  };
  require("eventTime", "eventTime");
  require("reportingComponent", "reportingController");
  require("reportingInstance", "reportingInstance");
  require("action", "action");
  require("reason", "reason");
  if (!["Normal", "Warning"].includes(textOf(object["type"]))) {
    const message = `Invalid value: "": has invalid value: ${textOf(object["type"])}`;
    causes.push({ reason: "FieldValueInvalid", message, field: "type" });
  }
  if (textOf(object["message"]).length > NOTE_CHARACTERS_MAX) {
    const message = `Invalid value: "": can have at most ${NOTE_CHARACTERS_MAX} characters`;
    causes.push({ reason: "FieldValueInvalid", message, field: "message" });
  }
  return causes;
}

/** Only the series of a stored event may change. */
function validateChange(object: ApiObject, previous: ApiObject): Cause[] {
  const names = new Set([...Object.keys(object), ...Object.keys(previous)]);
  const fixed = Object.keys(omit(Object.fromEntries([...names].map((name) => [name, 0])), "metadata", "series"));
  return fixed
    .filter((name) => !jsonEqual(object[name], previous[name]))
    .map((name) => ({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${JSON.stringify(object[name])}: field is immutable`,
      field: name,
    }));
}
