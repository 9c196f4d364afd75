import { apiVersionOf } from "../../src/kube/resource.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { Cause } from "./api-error.ts";
import { compareVersions } from "./catalog.ts";
import { isObject, listOf, objectOf, omit, textOf } from "./json.ts";
import type { ApiObject, JsonObject } from "./json.ts";
import { define } from "./kinds/define.ts";
import type { ServedResource, Strategy } from "./resource.ts";
import { prune, validate } from "./schema.ts";
import type { Schema } from "./schema.ts";
import { COMMON_FIELDS } from "./selectors.ts";
import type { SelectableFields } from "./selectors.ts";

/** apiextensions.k8s.io/v1. Unlike on the real server, a new CRD is Established at once. */
export const CUSTOM_RESOURCE_DEFINITIONS = define({
  group: "apiextensions.k8s.io",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
  shortNames: ["crd", "crds"],
  hasStatus: true,
  strategy: {
    unconditionalUpdate: false,
    generationOf: (object) => object["spec"],
    prepareCreate: (object, { clock }) => {
      const spec = withDefaults(objectOf(object["spec"]));
      return { ...object, spec, status: establishedStatus(spec, toTime(clock.nowMs())) };
    },
    prepareUpdate: (next) => ({ ...next, spec: withDefaults(objectOf(next["spec"])) }),
    validate: validateDefinition,
  },
});

function withDefaults(spec: JsonObject): JsonObject {
  const names = objectOf(spec["names"]);
  const kind = textOf(names["kind"]);
  return {
    conversion: { strategy: "None" },
    ...spec,
    names: { singular: kind.toLowerCase(), listKind: `${kind}List`, ...names },
  };
}

function establishedStatus(spec: JsonObject, lastTransitionTime: string): JsonObject {
  const condition = (type: string, reason: string, message: string): JsonObject => {
    return { type, status: "True", lastTransitionTime, reason, message };
  };
  const stored = listOf(spec["versions"])
    .map(objectOf)
    .filter(({ storage }) => storage === true);
  return {
    conditions: [
      condition("NamesAccepted", "NoConflicts", "no conflicts found"),
      condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ],
    acceptedNames: spec["names"],
    storedVersions: stored.map(({ name }) => name),
  };
}

function validateDefinition(object: ApiObject): Cause[] {
  const spec = objectOf(object["spec"]);
  const causes: Cause[] = [];
  const plural = textOf(objectOf(spec["names"])["plural"]);
  const expected = `${plural}.${textOf(spec["group"])}`;
  if (object.metadata.name !== expected) {
    const message = `Invalid value: "${object.metadata.name}": must be spec.names.plural+"."+spec.group`;
    causes.push({ reason: "FieldValueInvalid", message, field: "metadata.name" });
  }
  const versions = listOf(spec["versions"]).map(objectOf);
  if (versions.filter(({ storage }) => storage === true).length !== 1) {
    const message = "Invalid value: must have exactly one version marked as storage version";
    causes.push({ reason: "FieldValueInvalid", message, field: "spec.versions" });
  }
  versions.forEach((version, index) => {
    if (isObject(objectOf(version["schema"])["openAPIV3Schema"])) return;
    const field = `spec.versions[${index}].schema.openAPIV3Schema`;
    causes.push({ reason: "FieldValueRequired", message: "Required value: schemas are required", field });
  });
  if (spec["scope"] !== "Namespaced" && spec["scope"] !== "Cluster") {
    const message = `Unsupported value: ${JSON.stringify(spec["scope"] ?? "")}: supported values: "Cluster", "Namespaced"`;
    causes.push({ reason: "FieldValueNotSupported", message, field: "spec.scope" });
  }
  return causes;
}

/** The resources of a stored CustomResourceDefinition, one per served version. */
export function customResources(definition: ApiObject): ServedResource[] {
  const spec = objectOf(definition["spec"]);
  const group = textOf(spec["group"]);
  const names = objectOf(spec["names"]);
  const versions = listOf(spec["versions"]).map(objectOf);
  const storageVersion = textOf(versions.find(({ storage }) => storage === true)?.["name"]);
  return versions
    .filter(({ served }) => served === true)
    .sort((a, b) => compareVersions(textOf(a["name"]), textOf(b["name"])))
    .map((version): ServedResource => {
      const name = textOf(version["name"]);
      const schema = objectOf(objectOf(version["schema"])["openAPIV3Schema"]);
      const hasStatus = isObject(objectOf(version["subresources"])["status"]);
      return {
        group,
        version: name,
        apiVersion: apiVersionOf({ group, version: name }),
        kind: textOf(names["kind"]),
        plural: textOf(names["plural"]),
        singular: textOf(names["singular"]),
        shortNames: listOf(names["shortNames"]).map(String),
        categories: listOf(names["categories"]).map(String),
        listKind: textOf(names["listKind"]),
        namespaced: spec["scope"] === "Namespaced",
        storage: `${group}/${textOf(names["plural"])}`,
        builtIn: false,
        hasStatus,
        fields: { ...COMMON_FIELDS, ...selectableFields(listOf(version["selectableFields"])) },
        decode: (sent, unknown) => decode(sent, schema, unknown),
        toStorage: (object) => ({ ...object, apiVersion: apiVersionOf({ group, version: storageVersion }) }),
        strategy: strategyFor(schema, hasStatus),
      };
    });
}

function decode(sent: JsonObject, schema: Schema, unknown: string[]): JsonObject {
  const { apiVersion, kind, metadata, ...content } = sent;
  const filled = objectOf(prune(content, schema, unknown));
  return { ...filled, apiVersion, kind, metadata };
}

function strategyFor(schema: Schema, hasStatus: boolean): Strategy {
  const content = (object: ApiObject): JsonObject => omit(object, "apiVersion", "kind", "metadata");
  return {
    unconditionalUpdate: false,
    createOnUpdate: false,
    returnsDeleted: false,
    statusTakesMetadata: false,
    generationOf: (object) => (hasStatus ? omit(content(object), "status") : content(object)),
    prepareCreate: (object) => {
      if (!hasStatus) return object;
      const { status: _status, ...rest } = object;
      return rest;
    },
    validate: (object) => validate(object, schema),
  };
}

function selectableFields(fields: readonly unknown[]): SelectableFields {
  const paths = fields.map((field) => textOf(objectOf(field)["jsonPath"]).replace(/^\./, ""));
  return Object.fromEntries(
    paths.map((path) => [
      path,
      (object: ApiObject) => {
        const value = path.split(".").reduce((at: unknown, name) => objectOf(at)[name], object);
        return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
      },
    ]),
  );
}
