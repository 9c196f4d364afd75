/** The keywords of an OpenAPI schema that decide which values are valid. */
export interface Schema {
  type?: string;
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  enum?: readonly unknown[];
  format?: string;
  pattern?: string;
  minimum?: number;
  minLength?: number;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-validations"?: readonly { rule: string }[];
}

/** Strings for the formats in the schemas of ironfence. The first one that a schema accepts is used. */
const TEXTS = [
  "a",
  "300s",
  "redfish://bmc.example",
  "/redfish/v1/Systems/1",
  "4c4c4544-0033-5310-8052-b4c04f4d3332",
  "ab".repeat(32),
  Array.from({ length: 32 }, () => "AB").join(":"),
];

/** A value that sets every field of a schema. @param path for errors. */
export function fillSchema(schema: Schema, path = ""): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema["x-kubernetes-int-or-string"] === true) return "50%";
  if (schema.properties !== undefined) {
    const fields = Object.entries(schema.properties);
    return Object.fromEntries(fields.map(([name, field]) => [name, fillSchema(field, `${path}.${name}`)]));
  }
  if (typeof schema.additionalProperties === "object")
    return { a: fillSchema(schema.additionalProperties, `${path}.a`) };
  if (schema.type === "array") return schema.items === undefined ? [] : [fillSchema(schema.items, `${path}[]`)];
  if (schema.type === "integer" || schema.type === "number") return Math.max(schema.minimum ?? 0, 1);
  if (schema.type === "boolean") return true;
  if (schema.type === "object") return {};
  if (schema.format === "date-time") return "2026-01-02T03:04:05.000000Z";
  return fillText(schema, path);
}

function fillText({ pattern, minLength = 0, "x-kubernetes-validations": rules = [] }: Schema, path: string): string {
  const isDuration = rules.some(({ rule }) => rule.includes("duration(self)"));
  const takes = (text: string): boolean =>
    text.length >= minLength && new RegExp(pattern ?? "", "u").test(text) && (!isDuration || text === "300s");
  const text = TEXTS.find(takes);
  if (text === undefined) throw new Error(`${path}: no text is known that ${pattern ?? ""} takes`);
  return text;
}
