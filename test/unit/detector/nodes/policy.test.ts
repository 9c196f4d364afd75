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
    ["a NodeHealthCheck with an empty selector is refused", { selector: {} }, /spec\.selector: .*empty/],
    [
      "a NodeHealthCheck with a selector that cannot be evaluated is refused",
      { selector: { matchExpressions: [{ key: "a", operator: "~" }] } },
      /operator ~/,
    ],
    ["a NodeHealthCheck without a selector is refused", { selector: undefined }, /spec\.selector/],
    [
      "a NodeHealthCheck with an invalid duration is refused",
      { unhealthyConditions: [{ type: "Ready", status: "False", duration: "soon" }] },
      /duration/,
    ],
    ["a NodeHealthCheck without an unhealthy condition is refused", { unhealthyConditions: [] }, /unhealthyConditions/],
    [
      "a NodeHealthCheck with a negative storm cooldown is refused",
      { stormCooldownDuration: "-1s" },
      /stormCooldownDuration/,
    ],
    [
      "a NodeHealthCheck with both minHealthy and maxUnhealthy is refused",
      { minHealthy: 1, maxUnhealthy: 1 },
      /mutually exclusive/,
    ],
    ["a NodeHealthCheck with a negative minHealthy is refused", { minHealthy: -3 }, /minHealthy: -3/],
    ["a NodeHealthCheck with minHealthy over 100 % is refused", { minHealthy: "101%" }, /minHealthy: 101%/],
    ["a NodeHealthCheck with maxUnhealthy over 100 % is refused", { maxUnhealthy: "200%" }, /maxUnhealthy: 200%/],
    ["a NodeHealthCheck without a template is refused", { remediationTemplate: undefined }, /exactly one/],
    [
      "a NodeHealthCheck with a template and an escalation is refused",
      { escalatingRemediations: [step(1)] },
      /exactly one/,
    ],
    [
      "a NodeHealthCheck with an empty escalation is refused",
      { remediationTemplate: undefined, escalatingRemediations: [] },
      /must not be empty/,
    ],
    [
      "a NodeHealthCheck with two steps of the same order is refused",
      { remediationTemplate: undefined, escalatingRemediations: [step(1), step(1)] },
      /unique/,
    ],
    [
      "a NodeHealthCheck with a time-out that is too short is refused",
      { remediationTemplate: undefined, escalatingRemediations: [step(1, "59s")] },
      /at least 1m/,
    ],
    [
      "a NodeHealthCheck with a kind that is not a template is refused",
      { remediationTemplate: { ...templateRef("X"), kind: "Xtra" } },
      /does not end in Template/,
    ],
    [
      "a NodeHealthCheck with a kind that is only Template is refused",
      { remediationTemplate: { ...templateRef("X"), kind: "Template" } },
      /does not end/,
    ],
    [
      "a NodeHealthCheck with a template that has no name is refused",
      { remediationTemplate: { ...templateRef("X"), name: undefined } },
      /must be given/,
    ],
    [
      "a NodeHealthCheck with maxUnhealthy and machine deletion is refused",
      { maxUnhealthy: 1, remediationTemplate: templateRef("MachineDeletionRemediation") },
      /cannot be used/,
    ],
  ];
  for (const [name, change, message] of broken) {
    it(name, () => {
      const result = compileNodePolicy({ ...base, ...change });
      assert.ok("problem" in result);
      assert.match(result.problem, message);
    });
  }

  it("policy refuses a spec that is not an object without throwing", () => {
    for (const spec of [undefined, null, 1, "x", []]) assert.ok("problem" in compileNodePolicy(spec));
  });
});
