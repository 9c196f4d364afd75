import type { JsonObject } from "../../hack/kube-mock/json.ts";
import type { Api } from "./api.ts";

/** A custom resource with a field of each type, in two versions. */
export interface GadgetDefinition {
  object: JsonObject;
  group: string;
  /** Path of the collection in v1. */
  path: string;
  /** Path of the collection in v1beta1. */
  betaPath: string;
}

const SCHEMA = {
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      required: ["host"],
      properties: {
        host: { type: "string", minLength: 2, maxLength: 5 },
        count: { type: "integer", minimum: 1, maximum: 9, default: 3 },
        ratio: { type: "number", multipleOf: 0.5 },
        enabled: { type: "boolean" },
        mode: { type: "string", enum: ["Fast", "Slow"], default: "Fast" },
        since: { type: "string", format: "date-time" },
        limit: {
          "x-kubernetes-int-or-string": true,
          anyOf: [{ type: "integer" }, { type: "string" }],
          pattern: "^[0-9]+%?$",
        },
        note: { type: "string", nullable: true, default: "none" },
        extra: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        labels: { type: "object", maxProperties: 2, additionalProperties: { type: "string" } },
        tags: { type: "array", "x-kubernetes-list-type": "set", maxItems: 3, items: { type: "string" } },
        ports: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: {
            type: "object",
            required: ["name"],
            properties: { name: { type: "string" }, number: { type: "integer", default: 80 } },
          },
        },
      },
    },
    status: { type: "object", properties: { phase: { type: "string" } } },
  },
};

/** A definition in a separate group for the case. */
export function gadgetDefinition(api: Api): GadgetDefinition {
  const group = `${api.namespace}.example.com`;
  const version = {
    served: true,
    schema: { openAPIV3Schema: SCHEMA },
    subresources: { status: {} },
    selectableFields: [{ jsonPath: ".spec.host" }],
  };
  return {
    group,
    path: api.in(`${group}/v1`, "gadgets"),
    betaPath: api.in(`${group}/v1beta1`, "gadgets"),
    object: {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `gadgets.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { plural: "gadgets", kind: "Gadget" },
        versions: [
          { ...version, name: "v1beta1", storage: false },
          { ...version, name: "v1", storage: true },
        ],
      },
    },
  };
}
