import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import fastJsonPatch from "fast-json-patch";
import type { JsonPatchOperation } from "../../../../src/kube/client.ts";
import { pointer } from "../../../../src/kube/objects/json-pointer.ts";
import { applyOperations, mergeFields } from "../../../../src/kube/unsent/apply-patch.ts";

const DOCUMENT = { metadata: { uid: "u", annotations: { "a/b": "1", "c~d": "2" } }, list: [1] };

describe("a patch that is applied in memory", () => {
  it("a patch that is applied in memory changes what its pointers name, and nothing else", () => {
    const operations: JsonPatchOperation[] = [
      { op: "test", path: "/metadata/uid", value: "u" },
      { op: "replace", path: pointer("metadata", "annotations", "a/b"), value: "3" },
      { op: "remove", path: pointer("metadata", "annotations", "c~d") },
      { op: "add", path: "/status", value: {} },
      { op: "add", path: "/status/phase", value: "Enabled" },
    ];
    assert.deepEqual(applyOperations(DOCUMENT, operations), {
      metadata: { uid: "u", annotations: { "a/b": "3" } },
      list: [1],
      status: { phase: "Enabled" },
    });
    assert.equal(DOCUMENT.metadata.annotations["a/b"], "1", "the document itself stays");
  });

  for (const operation of [
    { op: "test", path: "/metadata/uid", value: "another" },
    { op: "remove", path: "/metadata/labels" },
    { op: "replace", path: "/spec", value: {} },
    { op: "add", path: "/spec/field", value: 1 },
    { op: "add", path: "/list/0", value: 1 },
    { op: "add", path: "", value: {} },
  ] satisfies JsonPatchOperation[]) {
    it(`a patch that is applied in memory is refused as a whole because of ${JSON.stringify(operation)}`, () => {
      const before: JsonPatchOperation = { op: "add", path: "/before", value: 1 };
      assert.equal(applyOperations(DOCUMENT, [before, operation]), undefined);
    });
  }

  it("a patch that is applied in memory has the same result as that of a library", () => {
    const name = fc.constantFrom("a", "b", "c/d");
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => pointer(...names));
    const value = fc.oneof(fc.integer(), fc.dictionary(name, fc.dictionary(name, fc.integer())));
    const operation = fc.oneof(
      fc.record({ op: fc.constantFrom("add" as const, "replace" as const, "test" as const), path, value }),
      fc.record({ op: fc.constant("remove" as const), path }),
    );
    const document = fc.dictionary(name, fc.dictionary(name, fc.dictionary(name, fc.integer())));
    fc.assert(
      fc.property(document, fc.array(operation, { maxLength: 4 }), (target, operations) => {
        const plain = structuredClone(target);
        const copies = structuredClone(operations);
        assert.deepEqual(applyOperations(plain, copies), byLibrary(structuredClone(plain), copies));
      }),
    );
  });

  it("a merge patch that is applied in memory sets, merges and removes fields", () => {
    const patch = { status: { phase: null, owner: { uid: "x" } }, spec: "new" };
    const before = { status: { phase: "a", owner: { name: "n" }, kept: [1] } };
    assert.deepEqual(mergeFields(before, patch), {
      status: { owner: { name: "n", uid: "x" }, kept: [1] },
      spec: "new",
    });
  });
});

function byLibrary(target: object, operations: readonly JsonPatchOperation[]): unknown {
  try {
    return fastJsonPatch.applyPatch(target, structuredClone([...operations]), true).newDocument;
  } catch {
    return undefined;
  }
}
