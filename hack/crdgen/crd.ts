import { z } from "zod";
import type { CelRule, CustomKind } from "../../src/api/schema/kind.ts";
import { SIGNED_DURATION_PATTERN } from "../../src/api/ironfence/node-health-check.ts";
import { DURATION_PATTERN } from "../../src/runtime/duration.ts";
import { descriptionOf } from "./descriptions.ts";

type Json = { [key: string]: unknown };

/**
 * The CustomResourceDefinition (apiextensions.k8s.io/v1) of one kind, with its schema made from the kind's zod types.
 */
export function toCrd(kind: CustomKind): Json {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${kind.plural}.${kind.group}`,
      labels: { "app.kubernetes.io/name": "ironfence" },
    },
    spec: {
      group: kind.group,
      scope: kind.namespaced ? "Namespaced" : "Cluster",
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...(kind.shortNames.length > 0 && { shortNames: [...kind.shortNames] }),
        ...(kind.categories.length > 0 && { categories: [...kind.categories] }),
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          ...(kind.status !== undefined && { subresources: { status: {} } }),
          additionalPrinterColumns: kind.printerColumns.map((column) => ({ ...column })),
          schema: { openAPIV3Schema: rootSchema(kind) },
        },
      ],
    },
  };
}

function rootSchema(kind: CustomKind): Json {
  return {
    description: kind.description,
    type: "object",
    required: ["spec"],
    properties: {
      // The API server accepts no description of metadata.
      metadata: { type: "object" },
      ...describeAll(kind.kind, {
        apiVersion: { type: "string" },
        kind: { type: "string" },
        spec: structuralSchema(kind.spec, `${kind.kind}.spec`),
        ...(kind.status !== undefined && { status: structuralSchema(kind.status, `${kind.kind}.status`) }),
      }),
    },
    ...(kind.rootRules !== undefined && {
      "x-kubernetes-validations": kind.rootRules.map((rule: CelRule) => ({ ...rule })),
    }),
  };
}

/** JSON Schema as zod writes it, turned into what the API server takes as a structural schema. */
function structuralSchema(schema: z.ZodType, path: string): Json {
  return structural(z.toJSONSchema(schema, { io: "input", target: "openapi-3.0", unrepresentable: "any" }), path);
}

/**
 * Adds the description of each field. @throws Error for a field without a description, because `kubectl explain` would
 * show none.
 */
function describeAll(path: string, properties: Json): Json {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const field = `${path}.${name}`;
      const { description = descriptionOf(field), ...rest } = schema as Json;
      if (description === undefined)
        throw new Error(`${field} has no description: give it one in src/api or descriptions.ts`);
      return [name, { description, ...rest }];
    }),
  );
}

/** Keywords of zod that a structural schema must not have, or that have no meaning for a Kubernetes object. */
const DROPPED = new Set(["$schema", "id", "propertyNames"]);

function structural(node: unknown, path: string): Json {
  const result: Json = {};
  for (const [keyword, value] of Object.entries(node as Json)) {
    if (DROPPED.has(keyword)) continue;
    if (keyword === "properties") {
      const fields = Object.entries(value as Json).map(([name, field]) => [name, structural(field, `${path}.${name}`)]);
      result[keyword] = describeAll(path, Object.fromEntries(fields));
    } else if (keyword === "items") result[keyword] = structural(value, `${path}[]`);
    else if (keyword === "additionalProperties") {
      if (value !== false) result[keyword] = structural(value, `${path}{}`);
    } else result[keyword] = value;
  }
  sayDurations(result);
  if (result["x-kubernetes-int-or-string"] === true) {
    // A structural schema lists the two types in `anyOf`, without any other keyword, and gives no `type` of its own.
    delete result["type"];
    result["anyOf"] = [{ type: "integer" }, { type: "string" }];
  }
  if (result["type"] === "integer") {
    // zod bounds every integer to the exact range of a double. For the API server the format int64 is enough.
    if (result["maximum"] === Number.MAX_SAFE_INTEGER) delete result["maximum"];
    if (result["minimum"] === Number.MIN_SAFE_INTEGER) delete result["minimum"];
    result["format"] = "int64";
  }
  return result;
}

/**
 * Replaces a pattern by a rule: the API server reports a violated rule with its message, and a violated pattern with
 * the pattern itself.
 */
function sayDurations(schema: Json): void {
  const { pattern } = schema;
  const message = DURATIONS.get(pattern);
  if (message === undefined) return;
  delete schema["pattern"];
  schema["maxLength"] = DURATION_LENGTH_MAX;
  const further = (schema["x-kubernetes-validations"] ?? []) as CelRule[];
  schema["x-kubernetes-validations"] = [
    { rule: `self.matches('${String(pattern).replaceAll("\\", "\\\\")}')`, message },
    ...further,
  ];
}

const DURATIONS: ReadonlyMap<unknown, string> = new Map([
  [DURATION_PATTERN, "must be a duration, such as 300s, 5m or 1h30m"],
  [SIGNED_DURATION_PATTERN, "must be a duration, such as 300s, 5m, 0 or -1s"],
]);
/** The API server limits the estimated cost of a rule, so the length of the text needs a bound. */
const DURATION_LENGTH_MAX = 32;
