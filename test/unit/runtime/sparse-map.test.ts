import assert from "node:assert/strict";
import { it } from "node:test";
import { SparseMap } from "../../../src/runtime/sparse-map.ts";

it("a sparse map has the entries that were set and not deleted, also after it was empty in between", () => {
  const map = new SparseMap<string, number>();
  assert.deepEqual([map.get("a"), [...map], [...map.values()]], [undefined, [], []]);
  map.delete("a");
  map.clear();
  map.set("a", 1);
  map.set("b", 2);
  map.set("a", 3);
  assert.deepEqual(
    [map.get("a"), [...map], [...map.values()]],
    [
      3,
      [
        ["a", 3],
        ["b", 2],
      ],
      [3, 2],
    ],
  );
  for (const [key] of map) map.delete(key);
  assert.deepEqual([map.get("a"), [...map]], [undefined, []]);
  map.set("c", 4);
  assert.deepEqual([...map], [["c", 4]]);
  map.clear();
  assert.deepEqual([...map.values()], []);
});
