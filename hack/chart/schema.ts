/** JSON Schema of a value of the chart. Each leaf has a description and a default. */
export interface ValueSchema {
  description: string;
  type: string | readonly string[];
  default?: unknown;
  properties?: Readonly<Record<string, ValueSchema>>;
  [keyword: string]: unknown;
}

type Keywords = Readonly<Record<string, unknown>>;

/** A group of values. */
export function group(description: string, properties: Readonly<Record<string, ValueSchema>>): ValueSchema {
  return { description, type: "object", additionalProperties: false, properties };
}

export function text(description: string, value: string, more: Keywords = {}): ValueSchema {
  return { description, type: "string", default: value, ...more };
}

export function flag(description: string, value: boolean): ValueSchema {
  return { description, type: "boolean", default: value };
}

export function integer(description: string, value: number, more: Keywords = {}): ValueSchema {
  return { description, type: "integer", default: value, minimum: 0, ...more };
}

/** A number that the chart passes on only if it is set. */
export function optionalInteger(description: string, more: Keywords = {}): ValueSchema {
  return { description, type: ["integer", "null"], default: null, minimum: 0, ...more };
}

export function list(
  description: string,
  value: readonly unknown[],
  items: Keywords,
  more: Keywords = {},
): ValueSchema {
  return { description, type: "array", default: value, items, ...more };
}

/** A map of strings, such as labels. */
export function strings(description: string, value: Readonly<Record<string, string>> = {}): ValueSchema {
  return { description, type: "object", default: value, additionalProperties: { type: "string" } };
}

/** An object that is copied into a manifest unchanged; the API server validates it. */
export function verbatim(description: string, value: object = {}): ValueSchema {
  return { description, type: "object", default: value };
}

/** A value that has its own default, with the path of its keys. */
export interface Leaf {
  path: string;
  schema: ValueSchema;
}

/** Every leaf below a schema, in order. */
export function leavesOf(schema: ValueSchema, path = ""): Leaf[] {
  if (schema.properties === undefined) return [{ path, schema }];
  return Object.entries(schema.properties).flatMap(([name, child]) =>
    leavesOf(child, path === "" ? name : `${path}.${name}`),
  );
}
