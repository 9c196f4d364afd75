import type { Cause } from "./api-error.ts";
import { isObject, jsonEqual, listOf, objectOf } from "./json.ts";
import type { JsonObject } from "./json.ts";

// Structural schemas (apiextensions.k8s.io/v1, openAPIV3Schema) as the real server applies them to custom resources: prune,
// default, validate. `x-kubernetes-validations` (CEL) is the real server's alone.

/** One node of a structural schema. */
export type Schema = JsonObject;

const INT_OR_STRING = "x-kubernetes-int-or-string";
const PRESERVE = "x-kubernetes-preserve-unknown-fields";
const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d)$/;

/**
 * Objects and lists that fitted a schema, as they are stored: pruned, defaulted and valid. A write changes little of an
 * object, and the rest need not be gone through again.
 */
const fitting = new WeakMap<object, Schema>();

function isFitting(value: object, schema: Schema): boolean {
  return fitting.get(value) === schema;
}

/**
 * Drops the fields that the schema does not know.
 *
 * @param unknown gets the paths of what was dropped.
 */
export function prune(value: unknown, schema: Schema, path: string, unknown: string[]): unknown {
  if (typeof value !== "object" || value === null || isFitting(value, schema)) return value;
  if (Array.isArray(value)) {
    const items = objectOf(schema["items"]);
    return value.map((item, index) => prune(item, items, `${path}[${index}]`, unknown));
  }
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [name, field] of Object.entries(value)) {
    const fieldPath = path === "" ? name : `${path}.${name}`;
    const fieldSchema = propertySchema(schema, name);
    if (fieldSchema !== undefined) kept[name] = prune(field, fieldSchema, fieldPath, unknown);
    else if (schema[PRESERVE] === true) kept[name] = field;
    else unknown.push(fieldPath);
  }
  return kept;
}

const ANYTHING: Schema = { [PRESERVE]: true };

function propertySchema(schema: Schema, name: string): Schema | undefined {
  const properties = schema["properties"];
  if (isObject(properties) && Object.hasOwn(properties, name)) return objectOf(properties[name]);
  const additional = schema["additionalProperties"];
  if (isObject(additional)) return additional;
  return additional === true ? ANYTHING : undefined;
}

/** Fills in defaults, also where a field that may not be null is. */
export function applyDefaults(value: unknown, schema: Schema): unknown {
  if (typeof value !== "object" || value === null || isFitting(value, schema)) return value;
  if (Array.isArray(value)) {
    const items = objectOf(schema["items"]);
    return value.map((item) => applyDefaults(item, items));
  }
  if (!isObject(value)) return value;
  const filled: JsonObject = {};
  for (const [name, field] of Object.entries(value)) {
    filled[name] = applyDefaults(field, propertySchema(schema, name) ?? {});
  }
  for (const [name, property] of Object.entries(objectOf(schema["properties"]))) {
    const propertySchema = objectOf(property);
    if (propertySchema["default"] === undefined) continue;
    const isMissing = filled[name] === undefined || (filled[name] === null && propertySchema["nullable"] !== true);
    if (isMissing) filled[name] = applyDefaults(structuredClone(propertySchema["default"]), propertySchema);
  }
  return filled;
}

/** Why `value`, which is pruned and has its defaults, does not fit the schema; empty where it does. */
export function validate(value: unknown, schema: Schema, path: string): Cause[] {
  const causes: Cause[] = [];
  check(value, schema, path, causes);
  return causes;
}

/** One list of causes for the whole object: nearly all values fit, and a list for each of them would cost more than the checks. */
function check(value: unknown, schema: Schema, path: string, causes: Cause[]): void {
  if (value === null && schema["nullable"] === true) return;
  const isStructure = typeof value === "object" && value !== null;
  if (isStructure && isFitting(value, schema)) return;
  const before = causes.length;
  const typeCause = checkType(value, schema, path);
  if (typeCause !== undefined) {
    causes.push(typeCause);
    return;
  }
  checkEnum(value, schema, path, causes);
  if (COMBINATIONS.some((name) => schema[name] !== undefined)) checkCombinations(value, schema, path, causes);
  if (typeof value === "string") checkText(value, schema, path, causes);
  else if (typeof value === "number") checkNumber(value, schema, path, causes);
  else if (Array.isArray(value)) checkList(value, schema, path, causes);
  else if (isObject(value)) checkObject(value, schema, path, causes);
  if (isStructure && causes.length === before) fitting.set(value, schema);
}

function checkType(value: unknown, schema: Schema, path: string): Cause | undefined {
  const isIntOrString = schema[INT_OR_STRING] === true;
  const wanted = isIntOrString ? "integer,string" : schema["type"];
  if (typeof wanted !== "string") return undefined;
  const actual = typeName(value);
  const fits =
    wanted === actual ||
    wanted.split(",").includes(actual) ||
    (wanted.includes("integer") && Number.isInteger(value)) ||
    isNumber(wanted, actual);
  if (fits) return undefined;
  const message = `Invalid value: "${actual}": ${path} in body must be of type ${wanted}: "${actual}"`;
  return { reason: "FieldValueTypeInvalid", message, field: path };
}

function isNumber(wanted: string, actual: string): boolean {
  return wanted === "number" && actual === "number";
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function checkEnum(value: unknown, schema: Schema, path: string, causes: Cause[]): void {
  const allowed = schema["enum"];
  if (!Array.isArray(allowed) || allowed.some((item) => jsonEqual(item, value))) return;
  const supported = allowed.map((item) => JSON.stringify(item)).join(", ");
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`;
  causes.push({ reason: "FieldValueNotSupported", message, field: path });
}

const COMBINATIONS = ["allOf", "anyOf", "oneOf", "not"];

function checkCombinations(value: unknown, schema: Schema, path: string, causes: Cause[]): void {
  const fits = (part: unknown): boolean => validate(value, objectOf(part), path).length === 0;
  for (const part of listOf(schema["allOf"])) check(value, objectOf(part), path, causes);
  const fail = (how: string): void => {
    causes.push({ reason: "FieldValueInvalid", message: `Invalid value: "": "${path}" must ${how}`, field: path });
  };
  const anyOf = listOf(schema["anyOf"]);
  if (anyOf.length > 0 && !anyOf.some(fits)) fail("validate at least one schema (anyOf)");
  const oneOf = listOf(schema["oneOf"]);
  if (oneOf.length > 0 && oneOf.filter(fits).length !== 1) fail("validate one and only one schema (oneOf)");
  if (schema["not"] !== undefined && fits(schema["not"])) fail("not validate the schema (not)");
}

function checkText(value: string, schema: Schema, path: string, causes: Cause[]): void {
  const add = (reason: Cause["reason"], message: string): void => {
    causes.push({ reason, message, field: path });
  };
  const { minLength, maxLength, pattern } = schema;
  // A code point is one or two UTF-16 units: they are counted only where it matters.
  if (typeof maxLength === "number" && value.length > maxLength && countCodePoints(value) > maxLength) {
    add("FieldValueTooLong", `Too long: may not be more than ${maxLength} bytes`);
  }
  const quoted = (): string => `Invalid value: ${JSON.stringify(value)}: ${path} in body`;
  if (typeof minLength === "number" && value.length < 2 * minLength && countCodePoints(value) < minLength) {
    add("FieldValueInvalid", `${quoted()} should be at least ${minLength} chars long`);
  }
  if (typeof pattern === "string" && !patternOf(pattern).test(value)) {
    add("FieldValueInvalid", `${quoted()} should match '${pattern}'`);
  }
  if (schema["format"] === "date-time" && !DATE_TIME.test(value)) {
    add("FieldValueTypeInvalid", `${quoted()} must be of type date-time: ${JSON.stringify(value)}`);
  }
}

/** Patterns that were compiled before: as many as the schemas that are served have. */
const patterns = new Map<string, RegExp>();

function patternOf(text: string): RegExp {
  const pattern = patterns.get(text) ?? new RegExp(text, "u");
  patterns.set(text, pattern);
  return pattern;
}

/** Lengths are counted in code points, as in Go. */
function countCodePoints(text: string): number {
  let count = 0;
  for (const _codePoint of text) count += 1;
  return count;
}

function checkNumber(value: number, schema: Schema, path: string, causes: Cause[]): void {
  const add = (what: string): void => {
    const message = `Invalid value: ${value}: ${path} in body should be ${what}`;
    causes.push({ reason: "FieldValueInvalid", message, field: path });
  };
  const { minimum, maximum, multipleOf } = schema;
  if (typeof minimum === "number") {
    if (schema["exclusiveMinimum"] === true && value <= minimum) add(`greater than ${minimum}`);
    else if (value < minimum) add(`greater than or equal to ${minimum}`);
  }
  if (typeof maximum === "number") {
    if (schema["exclusiveMaximum"] === true && value >= maximum) add(`less than ${maximum}`);
    else if (value > maximum) add(`less than or equal to ${maximum}`);
  }
  if (typeof multipleOf === "number" && value % multipleOf !== 0) add(`a multiple of ${multipleOf}`);
}

function checkList(value: readonly unknown[], schema: Schema, path: string, causes: Cause[]): void {
  const items = objectOf(schema["items"]);
  value.forEach((item, index) => check(item, items, `${path}[${index}]`, causes));
  const { minItems, maxItems } = schema;
  if (typeof minItems === "number" && value.length < minItems) {
    const message = `Invalid value: ${value.length}: ${path} in body should have at least ${minItems} items`;
    causes.push({ reason: "FieldValueInvalid", message, field: path });
  }
  if (typeof maxItems === "number" && value.length > maxItems) {
    const message = `Too many: ${value.length}: must have at most ${maxItems} items`;
    causes.push({ reason: "FieldValueTooMany", message, field: path });
  }
  causes.push(...checkUnique(value, schema, path));
}

/** Keys of `map` lists and items of `set` lists must be unique (x-kubernetes-list-type). */
function checkUnique(value: readonly unknown[], schema: Schema, path: string): Cause[] {
  const listType = schema["x-kubernetes-list-type"];
  if (listType !== "map" && listType !== "set") return [];
  const keys = listOf(schema["x-kubernetes-list-map-keys"]).map(String).sort();
  const seen = new Set<string>();
  return value.flatMap((item, index): Cause[] => {
    const object = objectOf(item);
    const identity = listType === "set" ? item : Object.fromEntries(keys.map((key) => [key, object[key]]));
    const text = JSON.stringify(identity);
    if (!seen.has(text)) {
      seen.add(text);
      return [];
    }
    return [{ reason: "FieldValueDuplicate", message: `Duplicate value: ${text}`, field: `${path}[${index}]` }];
  });
}

function checkObject(value: JsonObject, schema: Schema, path: string, causes: Cause[]): void {
  for (const [name, field] of Object.entries(value)) {
    const fieldSchema = propertySchema(schema, name);
    if (fieldSchema === undefined) continue;
    check(field, fieldSchema, path === "" ? name : `${path}.${name}`, causes);
  }
  for (const name of listOf(schema["required"]).map(String)) {
    if (value[name] !== undefined) continue;
    const field = path === "" ? name : `${path}.${name}`;
    causes.push({ reason: "FieldValueRequired", message: "Required value", field });
  }
  const { minProperties, maxProperties } = schema;
  if (minProperties === undefined && maxProperties === undefined) return;
  const count = Object.keys(value).length;
  if (typeof minProperties === "number" && count < minProperties) {
    const message = `Invalid value: ${count}: ${path} in body should have at least ${minProperties} properties`;
    causes.push({ reason: "FieldValueInvalid", message, field: path });
  }
  if (typeof maxProperties === "number" && count > maxProperties) {
    const message = `Too many: ${count}: must have at most ${maxProperties} items`;
    causes.push({ reason: "FieldValueTooMany", message, field: path });
  }
}
