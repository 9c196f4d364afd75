import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODES } from "../../../../src/api/kubernetes/core-types.ts";
import { UnsentObjects } from "../../../../src/kube/unsent/unsent-objects.ts";

const KEPT_MAX = 20_000;

describe("an object whose write is kept in memory", () => {
  it("an object whose write is kept in memory is forgotten if 20,000 newer ones are kept, and the log says so once", () => {
    const warnings: unknown[] = [];
    const objects = new UnsentObjects({ warn: (fields: unknown) => void warnings.push(fields) });
    const keep = (name: string): void =>
      objects.keep(NODES, { apiVersion: "v1", kind: "Node", metadata: { name, uid: name, resourceVersion: "1" } }, "1");
    for (let index = 0; index < KEPT_MAX; index += 1) keep(`n${index}`);
    assert.deepEqual(warnings, []);
    for (const name of ["one-more", "and-another"]) keep(name);
    assert.equal(objects.get(NODES, { name: "n1" }), undefined);
    assert.ok(objects.get(NODES, { name: "n2" }));
    assert.equal(warnings.length, 1);
    assert.match(JSON.stringify(warnings), /\/v1\/nodes n0/);
  });
});
