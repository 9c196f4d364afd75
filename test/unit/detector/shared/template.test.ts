import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ResourceType } from "../../../../src/kube/resource.ts";
import { readTemplate, trimTemplate } from "../../../../src/detector/shared/model/template.ts";

const FENCES: ResourceType = {
  group: "fence.example",
  version: "v1",
  kind: "Fence",
  plural: "fences",
  namespaced: true,
};

/** Reads a template as the server sends it. */
function read(spec: string) {
  const metadata = { namespace: "fencing", name: "soft", uid: "1", resourceVersion: "1" };
  const template = `{"apiVersion":"fence.example/v1","kind":"FenceTemplate","metadata":${JSON.stringify(metadata)},"spec":${spec}}`;
  return readTemplate(trimTemplate(JSON.parse(template)), FENCES);
}

describe("a template", () => {
  it("a template is taken with its content as it is", () => {
    const spec = {
      z: [3, 1, 2],
      n: null,
      deep: { x: -0.25, big: 9_007_199_254_740_991, text: "18446744073709551615" },
    };
    const template = read(JSON.stringify({ template: { spec } }));
    assert.ok(typeof template !== "string");
    assert.equal(JSON.stringify(template.remediationSpec), JSON.stringify(spec));
  });

  for (const spec of ["{}", '{"template":{}}', '{"template":{"spec":[]}}', '{"template":{"spec":"off"}}', "null"]) {
    it(`a template that is ${spec} is not a template, and the message shows where`, () => {
      assert.equal(read(spec), "FenceTemplate fencing/soft has no spec.template.spec");
    });
  }

  for (const number of ["9007199254740993", "-9223372036854775808", "1e300"]) {
    it(`a template with a number that would be altered on its way is refused in words (${number})`, () => {
      const problem = read(`{"template":{"spec":{"a":[{"serial":${number}}]}}}`);
      assert.ok(typeof problem === "string");
      assert.match(problem, /cannot be copied exactly: write numbers beyond 2\^53 as strings/);
    });
  }
});
