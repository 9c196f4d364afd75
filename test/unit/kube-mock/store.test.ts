import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Store } from "../../../hack/kube-mock/store.ts";
import type { ApiObject } from "../../../hack/kube-mock/json.ts";

const VIEW = { apiVersion: "v1", kind: "ConfigMap" };

function object(name: string, value: number): ApiObject {
  return { ...VIEW, metadata: { name, uid: name }, data: { value: String(value) } };
}

test("a snapshot of any kept revision is the state of that moment, in the order of keys", () => {
  const change = fc.record({ name: fc.constantFrom("a", "b", "c", "d"), remove: fc.boolean(), value: fc.nat(9) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const store = new Store(10);
      const collection = store.collection("configmaps");
      const states = new Map<number, string[]>();
      const present = (): string[] =>
        [...collection.values()].map((stored) => stored.text(VIEW)).sort((a, b) => (nameIn(a) < nameIn(b) ? -1 : 1));
      for (const { name, remove, value } of changes) {
        const stored = collection.get(name);
        if (!remove) store.put(collection, name, object(name, value));
        else if (stored !== undefined) store.remove(collection, stored);
        states.set(store.revision, present());
      }
      for (const [revision, state] of states) {
        const snapshot = collection.snapshot(revision)?.map((stored) => stored.text(VIEW));
        if (revision < collection.compactedRevision) assert.equal(snapshot, undefined);
        else assert.deepEqual(snapshot, state);
      }
      // The store keeps at least the requested number of events.
      assert.ok(store.revision - collection.compactedRevision >= Math.min(10, states.size) - 1);
    }),
  );
});

function nameIn(text: string): string {
  return /"name":"(\w)"/.exec(text)?.[1] ?? "";
}

test("a listener that writes does not get ahead of the other listeners", () => {
  const store = new Store(10);
  const collection = store.collection("configmaps");
  const heard: string[] = [];
  collection.subscribe(({ type, current }) => {
    if (current.key === "a" && type === "ADDED") store.put(collection, "b", object("b", 1));
  });
  collection.subscribe(({ current, revision }) => heard.push(`${current.key} ${revision}`));
  store.put(collection, "a", object("a", 1));
  assert.deepEqual(heard, ["a 2", "b 3"]);
});
