import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileSelector, SelectorError } from "../../../../src/api/schema/label-selector.ts";

const LABELS = { pool: "a", zone: "1", empty: "" };

describe("label selector", () => {
  const matches: [string, Parameters<typeof compileSelector>[0], boolean][] = [
    ["a label", { matchLabels: { pool: "a" } }, true],
    ["a label of another value", { matchLabels: { pool: "b" } }, false],
    ["an empty label value", { matchLabels: { empty: "" } }, true],
    ["an empty value is not an absent label", { matchLabels: { missing: "" } }, false],
    ["In", { matchExpressions: [{ key: "zone", operator: "In", values: ["1", "2"] }] }, true],
    ["NotIn", { matchExpressions: [{ key: "zone", operator: "NotIn", values: ["1"] }] }, false],
    ["NotIn of an absent label", { matchExpressions: [{ key: "missing", operator: "NotIn", values: ["1"] }] }, true],
    ["Exists", { matchExpressions: [{ key: "empty", operator: "Exists" }] }, true],
    ["DoesNotExist", { matchExpressions: [{ key: "empty", operator: "DoesNotExist" }] }, false],
    [
      "all must hold",
      { matchLabels: { pool: "a" }, matchExpressions: [{ key: "zone", operator: "In", values: ["2"] }] },
      false,
    ],
  ];
  for (const [name, selector, wanted] of matches) {
    it(`the match of a label selector is ${wanted}: ${name}`, () =>
      assert.equal(compileSelector(selector)(LABELS), wanted));
  }

  const broken: [string, Parameters<typeof compileSelector>[0]][] = [
    ["an empty selector, which would cover every node", {}],
    ["In without values", { matchExpressions: [{ key: "a", operator: "In" }] }],
    ["Exists with values", { matchExpressions: [{ key: "a", operator: "Exists", values: ["1"] }] }],
    ["an unknown operator", { matchExpressions: [{ key: "a", operator: "Gt", values: ["1"] }] }],
  ];
  for (const [name, selector] of broken) {
    it(`label selector refuses ${name}`, () => assert.throws(() => compileSelector(selector), SelectorError));
  }
});
