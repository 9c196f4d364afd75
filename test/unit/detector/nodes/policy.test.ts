import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileNodePolicy } from "../../../../src/detector/nodes/decide/policy.ts";
import { policyOf, templateRef } from "./builders.ts";

const step = (order: number, timeout = "60s", kind = "X") => ({
  remediationTemplate: templateRef(kind),
  order,
  timeout,
});
const base = { selector: { matchLabels: { pool: "a" } }, remediationTemplate: templateRef("X") };

describe("policy", () => {
  it("policy takes the defaults of the contract", () => {
    const policy = policyOf({ minHealthy: undefined, unhealthyConditions: undefined });
    assert.deepEqual(policy.unhealthyConditions, [
      { type: "Ready", status: "False", durationMs: 300_000 },
      { type: "Ready", status: "Unknown", durationMs: 300_000 },
    ]);
    assert.deepEqual(policy.threshold, { kind: "minHealthy", amount: { unit: "percent", percent: 51 } });
    assert.equal(policy.healthyDelayMs, 0);
  });

  it("policy tries steps by order, not by place", () => {
    const policy = policyOf({
      remediationTemplate: undefined,
      escalatingRemediations: [step(7, "2m", "Y"), step(-1, "60s", "X")],
    });
    assert.deepEqual(
      policy.steps.map(({ template, timeoutMs }) => [template.kind, timeoutMs]),
      [
        ["XTemplate", 60_000],
        ["YTemplate", 120_000],
      ],
    );
  });

  // Upstream checks these rules in a webhook, which does not exist without its operator, and not in its CRD.
  const broken: [string, Record<string, unknown>, RegExp][] = [
    ["an empty selector", { selector: {} }, /spec\.selector: .*empty/],
    [
      "a selector that cannot be evaluated",
      { selector: { matchExpressions: [{ key: "a", operator: "~" }] } },
      /operator ~/,
    ],
    ["no selector", { selector: undefined }, /spec\.selector/],
    [
      "a duration that is not valid",
      { unhealthyConditions: [{ type: "Ready", status: "False", duration: "soon" }] },
      /duration/,
    ],
    ["no unhealthy condition at all", { unhealthyConditions: [] }, /unhealthyConditions/],
    ["a negative storm cooldown", { stormCooldownDuration: "-1s" }, /stormCooldownDuration/],
    ["minHealthy and maxUnhealthy", { minHealthy: 1, maxUnhealthy: 1 }, /mutually exclusive/],
    ["a negative minHealthy", { minHealthy: -3 }, /minHealthy: -3/],
    ["minHealthy over 100 %", { minHealthy: "101%" }, /minHealthy: 101%/],
    ["maxUnhealthy over 100 %", { maxUnhealthy: "200%" }, /maxUnhealthy: 200%/],
    ["no template", { remediationTemplate: undefined }, /exactly one/],
    ["a template and an escalation", { escalatingRemediations: [step(1)] }, /exactly one/],
    ["an empty escalation", { remediationTemplate: undefined, escalatingRemediations: [] }, /must not be empty/],
    ["an order used twice", { remediationTemplate: undefined, escalatingRemediations: [step(1), step(1)] }, /unique/],
    ["a time-out too low", { remediationTemplate: undefined, escalatingRemediations: [step(1, "59s")] }, /at least 1m/],
    [
      "a kind that is not a template",
      { remediationTemplate: { ...templateRef("X"), kind: "Xtra" } },
      /does not end in Template/,
    ],
    [
      "a kind that is Template alone",
      { remediationTemplate: { ...templateRef("X"), kind: "Template" } },
      /does not end/,
    ],
    ["a template without a name", { remediationTemplate: { ...templateRef("X"), name: undefined } }, /must be given/],
    [
      "maxUnhealthy with machine deletion",
      { maxUnhealthy: 1, remediationTemplate: templateRef("MachineDeletionRemediation") },
      /cannot be used/,
    ],
  ];
  for (const [name, change, message] of broken) {
    it(`policy refuses ${name}, in words`, () => {
      const result = compileNodePolicy({ ...base, ...change });
      assert.ok("problem" in result);
      assert.match(result.problem, message);
    });
  }

  it("policy refuses a spec that is not an object without throwing", () => {
    for (const spec of [undefined, null, 1, "x", []]) assert.ok("problem" in compileNodePolicy(spec));
  });
});
