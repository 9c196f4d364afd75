import { z } from "zod";
import type { CelRule, CustomKind } from "../../src/api/kind.ts";

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
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: structuralSchema(kind.spec),
      ...(kind.status !== undefined && { status: structuralSchema(kind.status) }),
    },
    ...(kind.rootRules !== undefined && {
      "x-kubernetes-validations": kind.rootRules.map((rule: CelRule) => ({ ...rule })),
    }),
  };
}

/** JSON Schema as zod writes it, turned into what the API server takes as a structural schema. */
function structuralSchema(schema: z.ZodType): Json {
  return structural(z.toJSONSchema(schema, { io: "input", target: "openapi-3.0", unrepresentable: "any" }));
}

/** Keywords that zod adds and a structural schema must not have, or that say nothing about a Kubernetes object. */
const DROPPED = new Set(["$schema", "id", "propertyNames"]);

function structural(node: unknown): Json {
  const result: Json = {};
  for (const [keyword, value] of Object.entries(node as Json)) {
    if (DROPPED.has(keyword)) continue;
    if (keyword === "properties") result[keyword] = mapValues(value as Json, structural);
    else if (keyword === "items") result[keyword] = structural(value);
    else if (keyword === "additionalProperties") {
      if (value !== false) result[keyword] = structural(value);
    } else result[keyword] = value;
  }
  if (result["x-kubernetes-int-or-string"] === true) {
    // A structural schema lists the two types in `anyOf`, without any other keyword, and gives no `type` of its own.
    delete result["type"];
    result["anyOf"] = [{ type: "integer" }, { type: "string" }];
  }
  if (result["type"] === "integer") {
    // zod bounds every integer to what a double holds exactly; int64 says the same to the API server.
    if (result["maximum"] === Number.MAX_SAFE_INTEGER) delete result["maximum"];
    if (result["minimum"] === Number.MIN_SAFE_INTEGER) delete result["minimum"];
    result["format"] = "int64";
  }
  return result;
}

function mapValues(object: Json, change: (value: unknown) => Json): Json {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
