import type { Cause } from "../api-error.ts";
import { badRequest } from "../api-error.ts";
import { jsonEqual, objectOf, omit } from "../json.ts";
import type { ApiObject, JsonObject } from "../json.ts";
import { define } from "./define.ts";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** core/v1 */
export const CONFIG_MAPS = define({
  group: "",
  kind: "ConfigMap",
  plural: "configmaps",
  namespaced: true,
  shortNames: ["cm"],
  hasStatus: false,
  strategy: { validate: validateImmutable },
});

/** core/v1 */
export const SECRETS = define(
  {
    group: "",
    kind: "Secret",
    plural: "secrets",
    namespaced: true,
    shortNames: [],
    hasStatus: false,
    strategy: { prepareCreate: (secret) => ({ type: "Opaque", ...secret }), validate: validateImmutable },
  },
  { decode: decodeSecret },
);

/** core/v1 */
export const SERVICE_ACCOUNTS = define({
  group: "",
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  namespaced: true,
  shortNames: ["sa"],
  hasStatus: false,
  strategy: { returnsDeleted: true },
});

/** core/v1 */
export const NAMESPACES = define({
  group: "",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
  shortNames: ["ns"],
  hasStatus: true,
  strategy: {
    returnsDeleted: true,
    prepareCreate: (namespace) => ({
      ...namespace,
      metadata: {
        ...namespace.metadata,
        labels: { ...namespace.metadata.labels, "kubernetes.io/metadata.name": namespace.metadata.name },
      },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    }),
    prepareUpdate: (next, previous) => ({ ...next, spec: previous["spec"] }),
  },
});

/** apps/v1. No simulated controller creates its pods. */
export const DEPLOYMENTS = define({
  group: "apps",
  kind: "Deployment",
  plural: "deployments",
  namespaced: true,
  shortNames: ["deploy"],
  hasStatus: true,
  strategy: {
    generationOf: (object) => object["spec"],
    prepareCreate: (object) => ({ ...object, spec: { replicas: 1, ...objectOf(object["spec"]) }, status: {} }),
  },
});

/** apps/v1 */
export const STATEFUL_SETS = define({
  group: "apps",
  kind: "StatefulSet",
  plural: "statefulsets",
  namespaced: true,
  shortNames: ["sts"],
  hasStatus: true,
  strategy: {
    generationOf: (object) => object["spec"],
    prepareCreate: (object) => ({
      ...object,
      spec: {
        replicas: 1,
        podManagementPolicy: "OrderedReady",
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
        revisionHistoryLimit: 10,
        ...objectOf(object["spec"]),
      },
      status: { replicas: 0, availableReplicas: 0 },
    }),
  },
});

/** Merges `stringData` into `data`. */
function decodeSecret(sent: JsonObject): JsonObject {
  for (const value of Object.values(objectOf(sent["data"]))) {
    if (typeof value === "string" && BASE64.test(value)) continue;
    // The error must not contain the value, which may be a password.
    throw badRequest('Secret in version "v1" cannot be handled as a Secret: illegal base64 data');
  }
  const added = Object.entries(objectOf(sent["stringData"])).map(([name, value]) => {
    if (typeof value !== "string") throw badRequest('Secret in version "v1" cannot be handled as a Secret: stringData');
    return [name, Buffer.from(value).toString("base64")];
  });
  if (added.length === 0) return omit(sent, "stringData");
  return { ...omit(sent, "stringData"), data: { ...objectOf(sent["data"]), ...Object.fromEntries(added) } };
}

function validateImmutable(object: ApiObject, previous: ApiObject | undefined): Cause[] {
  if (previous?.["immutable"] !== true) return [];
  return ["data", "binaryData", "immutable"]
    .filter((name) => !jsonEqual(object[name], previous[name]))
    .map((field) => ({
      reason: "FieldValueForbidden",
      message: "Forbidden: field is immutable when `immutable` is set",
      field,
    }));
}
