import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { keepEqualParts } from "../../../src/kube/watch/equal-parts.ts";

/** `next` after the equal parts of `previous` were kept. Its content must be what it was. */
function kept<T extends object>(next: T, previous: object): T {
  const content = structuredClone(next);
  keepEqualParts(next, previous);
  assert.deepEqual(next, content);
  return next;
}

describe("two versions of an object", () => {
  it("two versions of an object share the parts that are equal, and keep the others", () => {
    const previous = {
      meta: { name: "n1", labels: { a: "1" }, version: "1" },
      spec: { devices: [{ a: "x" }, { a: "y" }] },
    };
    const next = structuredClone(previous);
    next.meta.version = "2";
    kept(next, previous);
    assert.equal(next.spec, previous.spec);
    assert.equal(next.meta.labels, previous.meta.labels);
    assert.notEqual(next.meta, previous.meta);
    const changed = structuredClone(previous);
    changed.spec.devices[1] = { a: "z" };
    kept(changed, previous);
    assert.equal(changed.meta, previous.meta);
    assert.equal(changed.spec.devices[0], previous.spec.devices[0]);
  });

  it("two versions of an object keep their own content, whatever kinds of parts they have", () => {
    const parts: unknown[] = [
      undefined,
      null,
      0,
      "",
      "a",
      false,
      [],
      ["a"],
      {},
      { 0: "a" },
      { a: undefined },
      { b: undefined },
    ];
    const more: unknown[] = [
      { a: 1 },
      { b: 1 },
      { a: 1, b: 1 },
      [undefined],
      [[]],
      [{}],
      { length: 0 },
      { constructor: "a" },
    ];
    const all = [...parts, ...more, JSON.parse('{"__proto__":{"a":1}}') as unknown, { toString: 1 }];
    for (const a of all) {
      for (const b of all) {
        kept({ part: structuredClone(b) }, { part: a });
        kept([structuredClone(b), 1], [a, 1, 2]);
      }
    }
    assert.equal(Object.hasOwn(Object.prototype, "a"), false);
  });

  it("two versions of an object are compared to a limited depth, however deep a server nests them", () => {
    const nested = (): object => {
      let object: object = {};
      for (let depth = 0; depth < 100_000; depth++) object = { object };
      return object;
    };
    const next = { deep: nested(), name: "n1", tags: ["a"] };
    const previous = { deep: nested(), name: "n1", tags: ["a"] };
    keepEqualParts(next, previous);
    assert.equal(next.tags, previous.tags);
    assert.notEqual(next.deep, previous.deep);
  });
});
