import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_WAS_NOT_READY } from "../../../../src/api/names/annotations.ts";
import { buildRequest } from "../../../../src/detector/machines/decide/request.ts";
import { buildRemediation, readTemplate, trimTemplate } from "../../../../src/detector/shared/model/template.ts";
import type { ResourceType } from "../../../../src/kube/resource.ts";
import { machineOf } from "../machines/builders.ts";
import { nodeOf } from "../nodes/builders.ts";

const FENCES: ResourceType = {
  group: "fence.example",
  version: "v1",
  kind: "Fence",
  plural: "fences",
  namespaced: true,
};

/** Reads a template as the server sends it. */
function read(spec: string, type = FENCES) {
  const metadata = { namespace: "fencing", name: "soft", uid: "1", resourceVersion: "1" };
  const template = `{"apiVersion":"fence.example/v1","kind":"FenceTemplate","metadata":${JSON.stringify(metadata)},"spec":${spec}}`;
  return readTemplate(trimTemplate(JSON.parse(template)), type);
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
    it(`a template with the spec ${spec} is refused, and the message shows which part is wrong`, () => {
      assert.equal(read(spec), "FenceTemplate fencing/soft has no spec.template.spec");
    });
  }

  for (const number of ["9007199254740993", "-9223372036854775808", "1e300"]) {
    it(`a template is refused if its number ${number} would change in transit, and the message says so`, () => {
      const problem = read(`{"template":{"spec":{"a":[{"serial":${number}}]}}}`);
      assert.ok(typeof problem === "string");
      assert.match(problem, /cannot be copied exactly: write numbers beyond 2\^53 as strings/);
    });
  }
});

describe("the annotation of a remediation that records that its node was not Ready", () => {
  const annotationOf = (ready: "True" | "False" | "Unknown", type: ResourceType): (string | undefined)[] => {
    const template = read('{"template":{"spec":{}}}', type);
    assert.ok(typeof template !== "string");
    const owner = { apiVersion: "v1", kind: "NodeHealthCheck", name: "check", uid: "check" };
    const node = nodeOf("n1", ready, 0);
    const made = [
      buildRemediation(template, node, { healthCheck: owner, machine: undefined }),
      buildRequest(template, machineOf("m1"), { state: "there", node }),
      buildRequest(template, machineOf("m1"), { state: "gone" }),
    ];
    return made.map(({ metadata }) => metadata.annotations?.[NODE_WAS_NOT_READY]);
  };

  it("a BareMetalRemediation that is created for a node that is not Ready has the UID of the node as annotation", () => {
    assert.deepEqual(annotationOf("Unknown", BARE_METAL_REMEDIATIONS), ["uid-n1", "uid-n1", undefined]);
    assert.deepEqual(annotationOf("True", BARE_METAL_REMEDIATIONS), [undefined, undefined, undefined]);
  });

  it("a remediation of another kind has no annotation that records that its node was not Ready", () => {
    assert.deepEqual(annotationOf("Unknown", FENCES), [undefined, undefined, undefined]);
  });
});
