import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import jsonPatch from "fast-json-patch";
import type { Operation } from "fast-json-patch";
import { ApiError } from "../../../hack/kube-mock/api-error.ts";
import { isObject } from "../../../hack/kube-mock/json.ts";
import type { JsonObject } from "../../../hack/kube-mock/json.ts";
import { applyPatch } from "../../../hack/kube-mock/patch.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";

const key = fc.constantFrom("a", "b", "c/d", "e~f", "0");
const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean());
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie("tree"), { maxLength: 3 }),
    fc.dictionary(key, tie("tree"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const document = fc.dictionary(key, tree, { maxKeys: 4, noNullPrototype: true });

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const child of Object.values(value)) frozen(child);
    Object.freeze(value);
  }
  return value;
}

test("the difference of two documents, as another implementation makes it, leads from one to the other", () => {
  fc.assert(
    fc.property(document, document, (from, to) => {
      const operations = jsonPatch.compare(from, to);
      assert.deepEqual(applyPatch(frozen(from), JSON_PATCH, JSON.stringify(operations)), to);
    }),
  );
});

test("a patch gives what another implementation gives, and is refused if that refuses it", () => {
  const pointer = fc
    .array(fc.oneof(key, fc.constantFrom("0", "1", "-")), { minLength: 1, maxLength: 3 })
    .map((parts) => {
      return parts.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
    });
  const operation = fc.oneof(
    fc.record({ op: fc.constantFrom("add" as const, "test" as const), path: pointer, value: leaf }),
    fc.record({ op: fc.constant("remove" as const), path: pointer }),
  );
  fc.assert(
    fc.property(document, fc.array(operation, { minLength: 1, maxLength: 4 }), (target, operations) => {
      assert.deepEqual(ours(target, operations), theirs(target, operations));
    }),
    { numRuns: 2_000 },
  );
});

function ours(target: JsonObject, operations: readonly Operation[]): unknown {
  try {
    return applyPatch(frozen(structuredClone(target)), JSON_PATCH, JSON.stringify(operations));
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return "refused";
  }
}

function theirs(target: JsonObject, operations: readonly Operation[]): unknown {
  try {
    return jsonPatch.applyPatch(structuredClone(target), operations, true).newDocument;
  } catch {
    return "refused";
  }
}

test("a merge patch does what RFC 7386 prints in its appendix", () => {
  const examples: [JsonObject, JsonObject, JsonObject][] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, expected] of examples) {
    assert.deepEqual(applyPatch(frozen(target), MERGE_PATCH, JSON.stringify(patch)), expected);
  }
});

test("a merge patch twice is a merge patch once", () => {
  fc.assert(
    fc.property(document, document, (target, patch) => {
      const text = JSON.stringify(patch);
      const once = applyPatch(frozen(target), MERGE_PATCH, text);
      assert.ok(isObject(once));
      assert.deepEqual(applyPatch(frozen(once), MERGE_PATCH, text), once);
    }),
  );
});
