import type { Cause } from "./api-error.ts";
import { isObject, jsonEqual, listOf, objectOf } from "./json.ts";
import type { JsonObject } from "./json.ts";

// Applies structural schemas (apiextensions.k8s.io/v1, openAPIV3Schema) to custom resources as the real server does:
// prune, default, validate. `x-kubernetes-validations` (CEL) is not implemented.

/** One node of a structural schema. */
export type Schema = JsonObject;

const INT_OR_STRING = "x-kubernetes-int-or-string";
const PRESERVE = "x-kubernetes-preserve-unknown-fields";
const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d)$/;

/** A preprocessed schema. Every write uses it, and reading the raw schema each time would cost more than the checks. */
interface Compiled {
  properties: ReadonlyMap<string, Compiled>;
  /** The schema of fields that `properties` does not name. */
  additional: Compiled | undefined;
  items: Compiled | undefined;
  preserves: boolean;
  defaults: readonly { name: string; value: unknown; schema: Compiled }[];
  nullable: boolean;
  /** Allowed types; undefined allows any. */
  types: readonly string[] | undefined;
  required: readonly string[];
  allOf: readonly Compiled[];
  anyOf: readonly Compiled[];
  oneOf: readonly Compiled[];
  not: Compiled | undefined;
  pattern: RegExp | undefined;
  /** All keywords in their original form. */
  raw: Schema;
}

const compiledBefore = new WeakMap<Schema, Compiled>();

function compile(raw: Schema): Compiled {
  const known = compiledBefore.get(raw);
  if (known !== undefined) return known;
  const parts = (name: string): Compiled[] => listOf(raw[name]).map((part) => compile(objectOf(part)));
  const part = (name: string): Compiled | undefined => (isObject(raw[name]) ? compile(raw[name]) : undefined);
  const { pattern, type } = raw;
  const isIntOrString = raw[INT_OR_STRING] === true;
  const properties = Object.entries(objectOf(raw["properties"])).map(
    ([name, property]) => [name, compile(objectOf(property))] as const,
  );
  const compiled: Compiled = {
    properties: new Map(properties),
    additional: raw["additionalProperties"] === true ? ANYTHING : part("additionalProperties"),
    items: part("items"),
    preserves: raw[PRESERVE] === true,
    defaults: properties.flatMap(([name, schema]) => {
      const value = schema.raw["default"];
      return value === undefined ? [] : [{ name, value, schema }];
    }),
    nullable: raw["nullable"] === true,
    types: isIntOrString ? ["integer", "string"] : typeof type === "string" ? [type] : undefined,
    required: listOf(raw["required"]).map(String),
    allOf: parts("allOf"),
    anyOf: parts("anyOf"),
    oneOf: parts("oneOf"),
    not: part("not"),
    pattern: typeof pattern === "string" ? new RegExp(pattern, "u") : undefined,
    raw,
  };
  compiledBefore.set(raw, compiled);
  return compiled;
}

const ANYTHING: Compiled = compile({ [PRESERVE]: true });
const NOTHING: Compiled = compile({});

function propertySchema({ properties, additional }: Compiled, name: string): Compiled | undefined {
  return properties.get(name) ?? additional;
}

/**
 * Stored objects and lists that are already pruned, defaulted and valid. A write changes little of an object, and the
 * rest is not checked again.
 */
const fitting = new WeakMap<object, Compiled>();

/**
 * `value` without unknown fields and with defaults, which also replace null in fields that are not nullable. Unchanged
 * parts are shared with `value`.
 *
 * @param unknown gets the paths of dropped fields.
 */
export function prune(value: unknown, schema: Schema, unknown: string[]): unknown {
  return fill(value, compile(schema), "", unknown);
}

function fill(value: unknown, schema: Compiled, path: string, unknown: string[]): unknown {
  if (typeof value !== "object" || value === null || fitting.get(value) === schema) return value;
  if (isObject(value)) return fillObject(value, schema, path, unknown);
  const items = schema.items ?? NOTHING;
  const filled = listOf(value).map((item, index) => fill(item, items, `${path}[${index}]`, unknown));
  return filled.every((item, index) => item === listOf(value)[index]) ? value : filled;
}

function fillObject(value: JsonObject, schema: Compiled, path: string, unknown: string[]): JsonObject {
  let filled: JsonObject | undefined;
  for (const name of Object.keys(value)) {
    const fieldSchema = propertySchema(schema, name);
    if (fieldSchema === undefined && schema.preserves) continue;
    const fieldPath = path === "" ? name : `${path}.${name}`;
    if (fieldSchema === undefined) {
      unknown.push(fieldPath);
      filled ??= { ...value };
      delete filled[name];
      continue;
    }
    const field = fill(value[name], fieldSchema, fieldPath, unknown);
    if (field !== value[name]) (filled ??= { ...value })[name] = field;
  }
  for (const { name, value: preset, schema: fieldSchema } of schema.defaults) {
    const isMissing = value[name] === undefined || (value[name] === null && !fieldSchema.nullable);
    if (isMissing) (filled ??= { ...value })[name] = fill(preset, fieldSchema, name, []);
  }
  return filled ?? value;
}

/** The reasons why a pruned `value` is invalid; empty if it is valid. */
export function validate(value: unknown, schema: Schema): Cause[] {
  return causesOf(value, compile(schema), "");
}

function causesOf(value: unknown, schema: Compiled, path: string): Cause[] {
  const causes: Cause[] = [];
  check(value, schema, path, causes);
  return causes;
}

/**
 * Appends to one list of causes for the whole object. Nearly all values are valid, and a list for each of them would
 * cost more than the checks.
 */
function check(value: unknown, schema: Compiled, path: string, causes: Cause[]): void {
  if (value === null && schema.nullable) return;
  const isStructure = typeof value === "object" && value !== null;
  if (isStructure && fitting.get(value) === schema) return;
  const before = causes.length;
  if (schema.types !== undefined && !schema.types.some((type) => isOfType(value, type))) {
    const [wanted, actual] = [schema.types.join(), typeName(value)];
    const message = `Invalid value: "${actual}": ${path} in body must be of type ${wanted}: "${actual}"`;
    causes.push({ reason: "FieldValueTypeInvalid", message, field: path });
    return;
  }
  checkEnum(value, schema, path, causes);
  checkCombinations(value, schema, path, causes);
  if (typeof value === "string") checkText(value, schema, path, causes);
  else if (typeof value === "number") checkNumber(value, schema, path, causes);
  else if (Array.isArray(value)) checkList(value, schema, path, causes);
  else if (isObject(value)) checkObject(value, schema, path, causes);
  if (isStructure && causes.length === before) fitting.set(value, schema);
}

function isOfType(value: unknown, type: string): boolean {
  return type === "integer" ? Number.isInteger(value) : typeName(value) === type;
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function checkEnum(value: unknown, { raw }: Compiled, path: string, causes: Cause[]): void {
  const allowed = raw["enum"];
  if (!Array.isArray(allowed) || allowed.some((item) => jsonEqual(item, value))) return;
  const supported = allowed.map((item) => JSON.stringify(item)).join(", ");
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`;
  causes.push({ reason: "FieldValueNotSupported", message, field: path });
}

function checkCombinations(
  value: unknown,
  { allOf, anyOf, oneOf, not }: Compiled,
  path: string,
  causes: Cause[],
): void {
  const fits = (part: Compiled): boolean => causesOf(value, part, path).length === 0;
  const fail = (how: string): void => {
    causes.push({ reason: "FieldValueInvalid", message: `Invalid value: "": "${path}" must ${how}`, field: path });
  };
  for (const part of allOf) check(value, part, path, causes);
  if (anyOf.length > 0 && !anyOf.some(fits)) fail("validate at least one schema (anyOf)");
  if (oneOf.length > 0 && oneOf.filter(fits).length !== 1) fail("validate one and only one schema (oneOf)");
  if (not !== undefined && fits(not)) fail("not validate the schema (not)");
}

function checkText(value: string, { raw, pattern }: Compiled, path: string, causes: Cause[]): void {
  const add = (reason: Cause["reason"], message: string): void => {
    causes.push({ reason, message, field: path });
  };
  const { minLength, maxLength, format } = raw;
  // A code point has one or two UTF-16 units, so code points are counted only if the number of units exceeds the limit.
  if (typeof maxLength === "number" && value.length > maxLength && countCodePoints(value) > maxLength) {
    add("FieldValueTooLong", `Too long: may not be more than ${maxLength} bytes`);
  }
  const quoted = (): string => `Invalid value: ${JSON.stringify(value)}: ${path} in body`;
  if (typeof minLength === "number" && value.length < 2 * minLength && countCodePoints(value) < minLength) {
    add("FieldValueInvalid", `${quoted()} should be at least ${minLength} chars long`);
  }
  if (pattern?.test(value) === false) {
    add("FieldValueInvalid", `${quoted()} should match '${String(raw["pattern"])}'`);
  }
  if (format === "date-time" && !DATE_TIME.test(value)) {
    add("FieldValueTypeInvalid", `${quoted()} must be of type date-time: ${JSON.stringify(value)}`);
  }
}

/** Lengths are counted in code points, as in Go. */
function countCodePoints(text: string): number {
  let count = 0;
  for (const _codePoint of text) count += 1;
  return count;
}

function checkNumber(value: number, { raw }: Compiled, path: string, causes: Cause[]): void {
  const add = (what: string): void => {
    const message = `Invalid value: ${value}: ${path} in body should be ${what}`;
    causes.push({ reason: "FieldValueInvalid", message, field: path });
  };
  const { minimum, maximum, multipleOf } = raw;
  if (typeof minimum === "number") {
    if (raw["exclusiveMinimum"] === true && value <= minimum) add(`greater than ${minimum}`);
    else if (value < minimum) add(`greater than or equal to ${minimum}`);
  }
  if (typeof maximum === "number") {
    if (raw["exclusiveMaximum"] === true && value >= maximum) add(`less than ${maximum}`);
    else if (value > maximum) add(`less than or equal to ${maximum}`);
  }
  if (typeof multipleOf === "number" && value % multipleOf !== 0) add(`a multiple of ${multipleOf}`);
}

function checkList(value: readonly unknown[], schema: Compiled, path: string, causes: Cause[]): void {
  const { items = NOTHING, raw } = schema;
  value.forEach((item, index) => check(item, items, `${path}[${index}]`, causes));
  const { minItems, maxItems } = raw;
  if (typeof minItems === "number" && value.length < minItems) {
    const message = `Invalid value: ${value.length}: ${path} in body should have at least ${minItems} items`;
    causes.push({ reason: "FieldValueInvalid", message, field: path });
  }
  if (typeof maxItems === "number" && value.length > maxItems) {
    const message = `Too many: ${value.length}: must have at most ${maxItems} items`;
    causes.push({ reason: "FieldValueTooMany", message, field: path });
  }
  causes.push(...checkUnique(value, raw, path));
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

function checkObject(value: JsonObject, schema: Compiled, path: string, causes: Cause[]): void {
  for (const name of Object.keys(value)) {
    const fieldSchema = propertySchema(schema, name);
    if (fieldSchema === undefined) continue;
    check(value[name], fieldSchema, path === "" ? name : `${path}.${name}`, causes);
  }
  for (const name of schema.required) {
    if (value[name] !== undefined) continue;
    const field = path === "" ? name : `${path}.${name}`;
    causes.push({ reason: "FieldValueRequired", message: "Required value", field });
  }
  const { minProperties, maxProperties } = schema.raw;
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
