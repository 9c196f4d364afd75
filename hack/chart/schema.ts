/** A value of the chart as JSON Schema describes it, with a description and a default in each leaf. */
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

/** A number that is not passed on unless it is set. */
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

/** An object of Kubernetes that is copied into a manifest as it is; the API server checks it. */
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
