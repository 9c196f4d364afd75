import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { setField } from "../../../src/kube/objects/set-field.ts";

const OBJECT: KubeObject = {
  apiVersion: "v1",
  kind: "Thing",
  metadata: { name: "a", uid: "u", resourceVersion: "1" },
};

test("a field of an object is set by one operation if its section exists", () => {
  assert.deepEqual(setField(OBJECT, ["metadata", "labels"], {}), [{ op: "add", path: "/metadata/labels", value: {} }]);
});

test("sections on the way to a field are made if they are not there, once each", () => {
  assert.deepEqual(setField(OBJECT, ["status", "a/b", "c"], 1), [
    { op: "add", path: "/status", value: {} },
    { op: "add", path: "/status/a~1b", value: {} },
    { op: "add", path: "/status/a~1b/c", value: 1 },
  ]);
});
