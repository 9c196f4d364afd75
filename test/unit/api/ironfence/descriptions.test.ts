import assert from "node:assert/strict";
import { test } from "node:test";
import { toCrd } from "../../../../hack/crdgen/crd.ts";
import { DESCRIPTIONS, descriptionOf } from "../../../../hack/crdgen/descriptions.ts";
import { CUSTOM_KINDS } from "../../../../src/api/ironfence/kinds.ts";

type Schema = { [key: string]: unknown };

/** Every field of a schema, with its path. */
function fieldsOf(schema: Schema, path: string): { path: string; field: Schema }[] {
  const nested = ["items", "additionalProperties"].flatMap((keyword) => {
    const mark = keyword === "items" ? "[]" : "{}";
    return typeof schema[keyword] === "object" ? fieldsOf(schema[keyword] as Schema, `${path}${mark}`) : [];
  });
  const own = Object.entries((schema["properties"] ?? {}) as Record<string, Schema>).flatMap(([name, field]) => [
    { path: `${path}.${name}`, field },
    ...fieldsOf(field, `${path}.${name}`),
  ]);
  return [...own, ...nested];
}

const FIELDS = CUSTOM_KINDS.flatMap((kind) => {
  const { versions } = toCrd(kind)["spec"] as { versions: { schema: { openAPIV3Schema: Schema } }[] };
  return versions.flatMap(({ schema }) => fieldsOf(schema.openAPIV3Schema, kind.kind));
});

test("kubectl explain has a sentence for every field of every kind", () => {
  const silent = FIELDS.filter(({ path, field }) => !path.endsWith(".metadata") && field["description"] === undefined);
  assert.deepEqual(
    silent.map(({ path }) => path),
    [],
  );
  for (const { path, field } of FIELDS.filter(({ field }) => field["description"] !== undefined)) {
    assert.match(String(field["description"]), /^[A-Z0-9].*[.]$/s, path);
  }
});

test("no description is kept for a field that is not there", () => {
  const used = new Set(FIELDS.map(({ path }) => descriptionOf(path)));
  const unused = Object.entries(DESCRIPTIONS).filter(([, text]) => !used.has(text));
  assert.deepEqual(unused, []);
});
