import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileSelector, SelectorError } from "../../../../src/api/schema/label-selector.ts";

const LABELS = { pool: "a", zone: "1", empty: "" };

describe("label selector", () => {
  const matches: [string, Parameters<typeof compileSelector>[0], boolean][] = [
    ["a label with its value", { matchLabels: { pool: "a" } }, true],
    ["a label with another value", { matchLabels: { pool: "b" } }, false],
    ["a label with an empty value", { matchLabels: { empty: "" } }, true],
    ["an absent label by an empty value", { matchLabels: { missing: "" } }, false],
    [
      "a label with one of the values of In",
      { matchExpressions: [{ key: "zone", operator: "In", values: ["1", "2"] }] },
      true,
    ],
    [
      "a label with one of the values of NotIn",
      { matchExpressions: [{ key: "zone", operator: "NotIn", values: ["1"] }] },
      false,
    ],
    ["an absent label by NotIn", { matchExpressions: [{ key: "missing", operator: "NotIn", values: ["1"] }] }, true],
    ["a label by Exists", { matchExpressions: [{ key: "empty", operator: "Exists" }] }, true],
    ["a label by DoesNotExist", { matchExpressions: [{ key: "empty", operator: "DoesNotExist" }] }, false],
    [
      "labels that fulfill only one of its two requirements",
      {
        matchLabels: { pool: "a" },
        matchExpressions: [{ key: "zone", operator: "In", values: ["2"] }],
      },
      false,
    ],
  ];
  for (const [name, selector, wanted] of matches) {
    it(`a label selector ${wanted ? "matches" : "does not match"} ${name}`, () =>
      assert.equal(compileSelector(selector)(LABELS), wanted));
  }

  const broken: [string, Parameters<typeof compileSelector>[0]][] = [
    ["without requirements, which would select every node,", {}],
    ["with In without values", { matchExpressions: [{ key: "a", operator: "In" }] }],
    ["with Exists and values", { matchExpressions: [{ key: "a", operator: "Exists", values: ["1"] }] }],
    ["with an unknown operator", { matchExpressions: [{ key: "a", operator: "Gt", values: ["1"] }] }],
  ];
  for (const [name, selector] of broken) {
    it(`a label selector ${name} is refused`, () => assert.throws(() => compileSelector(selector), SelectorError));
  }
});
