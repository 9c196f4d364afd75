import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MultiMap } from "../../../src/runtime/multi-map.ts";
import { sharedText, shareTexts } from "../../../src/runtime/text/shared-text.ts";

describe("texts that many objects share", () => {
  it("texts that many objects share stay what they are, however many there are and however long they are", () => {
    for (let index = 0; index < 10_000; index++) assert.equal(sharedText(`text ${index}`), `text ${index}`);
    assert.equal(sharedText("x".repeat(10_000)), "x".repeat(10_000));
    const odd = { count: 1, text: "a", none: undefined, list: ["b"] };
    assert.deepEqual(shareTexts(odd), { count: 1, text: "a", none: undefined, list: ["b"] });
  });
});

describe("a map with several values for a key", () => {
  it("a map with several values for a key keeps them in their order, each once, and forgets a key without values", () => {
    const [a, b] = [{ name: "a" }, { name: "b" }];
    const map = new MultiMap<{ name: string }>();
    assert.deepEqual([...map.get("key")], []);
    map.delete("key", a);
    map.add("key", a);
    map.add("key", a);
    assert.deepEqual([...map.get("key")], [a]);
    map.add("key", b);
    map.add("key", a);
    assert.deepEqual([...map.get("key")], [a, b]);
    assert.deepEqual([...map.keys()], ["key"]);
    map.delete("key", a);
    assert.deepEqual([...map.get("key")], [b]);
    map.delete("key", a);
    map.delete("key", b);
    assert.deepEqual([...map.get("key"), ...map.keys()], []);
  });
});
