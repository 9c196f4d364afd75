import type { Cause } from "./api-error.ts";
import { badRequest } from "./api-error.ts";
import { isObject, jsonEqual, objectOf, textOf } from "./json.ts";
import type { ApiObject, JsonObject, Metadata } from "./json.ts";

// The rules of `metav1.ObjectMeta` that hold for every kind.

const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const NAME_PART = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const STANDARD_FINALIZERS: readonly string[] = ["kubernetes", "orphan", "foregroundDeletion"];
const ANNOTATION_BYTES_MAX = 256 * 1024;

/**
 * Checks the types in `metadata`, and drops fields that only the server may set.
 *
 * @throws ApiError 400 if a field has the wrong type.
 */
export function decodeMetadata(sent: JsonObject): Metadata {
  const metadata = sent["metadata"] ?? {};
  if (!isObject(metadata)) throw badRequest("metadata must be an object");
  const { managedFields: _managedFields, selfLink: _selfLink, ...kept } = metadata;
  for (const name of ["name", "namespace", "generateName", "uid", "resourceVersion"]) {
    if (kept[name] !== undefined && kept[name] !== null && typeof kept[name] !== "string") {
      throw badRequest(`json: cannot unmarshal ObjectMeta.metadata.${name} of type string`);
    }
  }
  for (const name of ["labels", "annotations"]) {
    const map = kept[name] ?? {};
    if (!isObject(map) || Object.values(map).some((value) => typeof value !== "string")) {
      throw badRequest(`json: cannot unmarshal ObjectMeta.metadata.${name} of type map[string]string`);
    }
  }
  for (const name of ["finalizers", "ownerReferences"]) {
    if (!Array.isArray(kept[name] ?? [])) throw badRequest(`json: cannot unmarshal ObjectMeta.metadata.${name}`);
  }
  const isSet = ([, value]: [string, unknown]): boolean => value !== null && value !== "" && !isEmpty(value);
  return {
    name: "",
    uid: "",
    ...Object.fromEntries(Object.entries(kept).filter(isSet)),
  };
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

/** @param builtIn whether the kind is built in: only custom resources may have finalizers without a domain. */
export function validateMetadata(object: ApiObject, builtIn: boolean): Cause[] {
  const { metadata } = object;
  return [
    ...validateName(metadata),
    ...validateLabels(metadata.labels ?? {}),
    ...validateAnnotations(metadata.annotations ?? {}),
    ...validateFinalizers(metadata.finalizers ?? [], builtIn),
    ...validateOwners(metadata.ownerReferences ?? []),
  ];
}

function validateName({ name }: Metadata): Cause[] {
  if (name === "") {
    return [
      {
        reason: "FieldValueRequired",
        message: "Required value: name or generateName is required",
        field: "metadata.name",
      },
    ];
  }
  if (isSubdomain(name)) return [];
  const message = `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (for example 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`;
  return [{ reason: "FieldValueInvalid", message, field: "metadata.name" }];
}

export function isSubdomain(name: string): boolean {
  return name.length <= 253 && DNS_SUBDOMAIN.test(name);
}

function isQualifiedName(key: string): boolean {
  const [name = "", prefix, ...rest] = key.split("/").reverse();
  return (
    rest.length === 0 && name.length <= 63 && NAME_PART.test(name) && (prefix === undefined || isSubdomain(prefix))
  );
}

function validateLabels(labels: Record<string, string>): Cause[] {
  const bad = (value: string, why: string): Cause => ({
    reason: "FieldValueInvalid",
    message: `Invalid value: "${value}": ${why}`,
    field: "metadata.labels",
  });
  return Object.entries(labels).flatMap(([key, value]) => [
    ...(isQualifiedName(key) ? [] : [bad(key, "name part must consist of alphanumeric characters, '-', '_' or '.'")]),
    ...(value === "" || (value.length <= 63 && NAME_PART.test(value)) ? [] : [bad(value, "not a valid label value")]),
  ]);
}

function validateAnnotations(annotations: Record<string, string>): Cause[] {
  const field = "metadata.annotations";
  const causes = Object.keys(annotations)
    .filter((key) => !isQualifiedName(key.toLowerCase()))
    .map((key): Cause => ({ reason: "FieldValueInvalid", message: `Invalid value: "${key}"`, field }));
  const bytes = Object.entries(annotations).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  if (bytes > ANNOTATION_BYTES_MAX) {
    const message = `Too long: may not be more than ${ANNOTATION_BYTES_MAX} bytes`;
    causes.push({ reason: "FieldValueTooLong", message, field });
  }
  return causes;
}

function validateFinalizers(finalizers: readonly string[], builtIn: boolean): Cause[] {
  return finalizers.flatMap((finalizer, index): Cause[] => {
    const isPlain = !finalizer.includes("/") && !STANDARD_FINALIZERS.includes(finalizer);
    if (isQualifiedName(finalizer) && !(builtIn && isPlain)) return [];
    const why = "name is neither a standard finalizer name nor is it fully qualified";
    const message = `Invalid value: "${finalizer}": ${why}`;
    return [{ reason: "FieldValueInvalid", message, field: `metadata.finalizers[${index}]` }];
  });
}

function validateOwners(owners: readonly JsonObject[]): Cause[] {
  const causes: Cause[] = [];
  for (const owner of owners) {
    for (const name of ["apiVersion", "kind", "name", "uid"]) {
      if (textOf(owner[name]) !== "") continue;
      const field = `metadata.ownerReferences.${name}`;
      causes.push({ reason: "FieldValueInvalid", message: `Invalid value: "": must not be empty`, field });
    }
  }
  const controllers = owners.filter((owner) => owner["controller"] === true).length;
  if (controllers > 1) {
    const message = "Only one reference can have Controller set to true";
    causes.push({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${message}`,
      field: "metadata.ownerReferences",
    });
  }
  return causes;
}

/** Keeps metadata that the server has set, also if the client leaves it out. */
export function keepServerFields(next: Metadata, previous: Metadata): Metadata {
  const { generation: _generation, resourceVersion: _resourceVersion, ...sent } = next;
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generateName } = previous;
  const { generation, resourceVersion } = previous;
  return {
    ...(generateName !== undefined && { generateName }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
    ...sent,
    uid: next.uid === "" ? uid : next.uid,
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(generation !== undefined && { generation }),
  };
}

const IMMUTABLE = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] as const;

/** The violations of an update of metadata. */
export function validateMetadataUpdate(next: Metadata, previous: Metadata): Cause[] {
  const causes = IMMUTABLE.filter((name) => !jsonEqual(next[name], previous[name])).map((name): Cause => {
    const message = `Invalid value: ${JSON.stringify(next[name])}: field is immutable`;
    return { reason: "FieldValueInvalid", message, field: `metadata.${name}` };
  });
  if (previous.deletionTimestamp === undefined) return causes;
  const added = (next.finalizers ?? []).filter((finalizer) => previous.finalizers?.includes(finalizer) !== true);
  if (added.length === 0) return causes;
  const list = added.map((finalizer) => JSON.stringify(finalizer)).join(", ");
  const why = "no new finalizers can be added if the object is being deleted, found new finalizers";
  const message = `Forbidden: ${why} []string{${list}}`;
  return [...causes, { reason: "FieldValueForbidden", message, field: "metadata.finalizers" }];
}

/** `kind` and `apiVersion` of the sent object, if it has them. */
export function typeOf(sent: JsonObject): { kind: string; apiVersion: string } {
  const { kind, apiVersion } = objectOf(sent);
  return { kind: textOf(kind), apiVersion: textOf(apiVersion) };
}
