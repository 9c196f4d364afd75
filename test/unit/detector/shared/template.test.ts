import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_AT_CREATION, NODE_READY_IN_BOOT } from "../../../../src/api/names/annotations.ts";
import { buildRequest } from "../../../../src/detector/machines/decide/request.ts";
import { buildRemediation, readTemplate, trimTemplate } from "../../../../src/detector/shared/model/template.ts";
import type { ResourceType } from "../../../../src/kube/resource.ts";
import { readCreationRecord } from "../../../../src/nodes/creation-record.ts";
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

describe("the annotation of a remediation that records in which boot its node was Ready", () => {
  const annotationOf = (
    ready: "True" | "Unknown",
    bootID: string | undefined,
    type: ResourceType = BARE_METAL_REMEDIATIONS,
    name = NODE_READY_IN_BOOT,
  ) => {
    const template = read('{"template":{"spec":{}}}', type);
    assert.ok(typeof template !== "string");
    const owner = { apiVersion: "v1", kind: "NodeHealthCheck", name: "check", uid: "check" };
    const { status, ...rest } = nodeOf("n1", ready, 0, { rack: "rack-1" });
    const node = { ...rest, status: { ...status, nodeInfo: { ...(bootID !== undefined && { bootID }) } } };
    const made = [
      buildRemediation(template, node, { healthCheck: owner, machine: undefined }, "rack"),
      buildRequest(template, machineOf("m1"), { state: "there", node }, "rack"),
      buildRequest(template, machineOf("m1"), { state: "gone" }, "rack"),
    ];
    return made.map(({ metadata }) => metadata.annotations?.[name]);
  };

  it("a BareMetalRemediation records the boot in which its node was Ready at the creation, and that it was not Ready", () => {
    assert.deepEqual(annotationOf("Unknown", "boot-1"), ["", "", undefined]);
    assert.deepEqual(annotationOf("True", "boot-1"), ["boot-1", "boot-1", undefined]);
    assert.deepEqual(annotationOf("True", undefined), [undefined, undefined, undefined]);
  });

  it("a Metal3Remediation records the boot in which its node was Ready, because ironfence may serve it", () => {
    const group = "infrastructure.cluster.x-k8s.io";
    const type = { ...FENCES, group, kind: "Metal3Remediation", plural: "metal3remediations" };
    assert.deepEqual(annotationOf("Unknown", "boot-1", type), ["", "", undefined]);
  });

  it("a remediation of another kind has no annotation that records the boot of its node", () => {
    assert.deepEqual(annotationOf("Unknown", "boot-1", FENCES), [undefined, undefined, undefined]);
    assert.deepEqual(annotationOf("Unknown", "boot-1", FENCES, NODE_AT_CREATION), [undefined, undefined, undefined]);
  });

  it("a BareMetalRemediation records the UID, the boot and the failure zone of its node at the creation", () => {
    const made = annotationOf("Unknown", "boot-1", BARE_METAL_REMEDIATIONS, NODE_AT_CREATION);
    const record = { uid: "uid-n1", bootID: "boot-1", zone: "rack-1" };
    assert.deepEqual(
      made.map((value) => value && JSON.parse(value)),
      [record, record, undefined],
    );
  });

  it("a record of the Node that is not valid does not count", () => {
    const read = (value: string) => readCreationRecord({ [NODE_AT_CREATION]: value });
    for (const value of ["", "{", "[]", '"text"', '{"zone":"z1"}', '{"uid":7}', `{"uid":"${"x".repeat(1_000)}"}`]) {
      assert.equal(read(value), undefined, value);
    }
    assert.deepEqual(read('{"uid":"a","bootID":7,"zone":""}'), { uid: "a" });
  });
});
