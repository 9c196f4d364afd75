import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { Announcing } from "../../../../src/remediator/early/announcement.ts";
import { durationEndMs, readAnnouncing } from "../../../../src/remediator/early/announcement.ts";
import { parseTimeMs, toTime } from "../../../../src/runtime/time.ts";

const OURS = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate", namespace: "n", name: "t" };
const FOREIGN = { ...OURS, apiVersion: "example.com/v1", kind: "OtherTemplate" };
const SPEC = { selector: { matchLabels: { worker: "" } }, remediationTemplate: OURS };
const CALM = { observedNodes: 10, healthyNodes: 9, phase: "Enabled" };
const SINCE = "2026-01-01T00:00:00Z";
const sinceMs = parseTimeMs(SINCE) ?? assert.fail();

function nodeWith(conditions: object[], labels: Record<string, string> = { worker: "" }): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1", uid: "u1", labels },
    spec: {},
    status: { conditions },
  } as unknown as Node;
}

const unknown = { type: "Ready", status: "Unknown", lastTransitionTime: SINCE };
const announcing = (spec: object, status: object = CALM): Announcing[] => [readAnnouncing(spec, status) ?? []].flat();

test("a health check announces the end of the duration of a condition that is unhealthy for it", () => {
  const checks = announcing({ ...SPEC, unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "90s" }] });
  assert.equal(durationEndMs(checks, nodeWith([unknown])), sinceMs + 90_000);
  assert.equal(durationEndMs(checks, nodeWith([{ ...unknown, status: "True" }])), undefined);
  assert.equal(durationEndMs(checks, nodeWith([{ ...unknown, lastTransitionTime: undefined }])), undefined);
  assert.equal(durationEndMs(checks, nodeWith([unknown], {})), undefined);
});

test("the first end counts of the durations of several conditions and health checks", () => {
  const pressure = { type: "DiskPressure", status: "True", lastTransitionTime: toTime(sinceMs - 60_000) };
  const unhealthyConditions = [
    { type: "Ready", status: "Unknown", duration: "90s" },
    { type: "DiskPressure", status: "True", duration: "100s" },
  ];
  const checks = [...announcing(SPEC), ...announcing({ ...SPEC, unhealthyConditions })];
  assert.equal(durationEndMs(checks, nodeWith([unknown, pressure])), sinceMs + 40_000);
});

test("a health check whose first step has a template of another project announces nothing", () => {
  const step = (order: number, remediationTemplate: object): object => ({ order, remediationTemplate, timeout: "60s" });
  const { selector } = SPEC;
  assert.equal(readAnnouncing({ selector, remediationTemplate: FOREIGN }, CALM), undefined);
  assert.equal(
    readAnnouncing({ selector, escalatingRemediations: [step(2, OURS), step(1, FOREIGN)] }, CALM),
    undefined,
  );
  assert.notEqual(
    readAnnouncing({ selector, escalatingRemediations: [step(2, FOREIGN), step(1, OURS)] }, CALM),
    undefined,
  );
});

for (const [what, spec, status] of [
  ["has no status", SPEC, undefined],
  ["is disabled", SPEC, { ...CALM, phase: "Disabled" }],
  ["is paused", { ...SPEC, pauseRequests: ["maintenance"] }, CALM],
  ["needs 51 % by default", SPEC, { observedNodes: 10, healthyNodes: 5 }],
  ["needs more healthy nodes", { ...SPEC, minHealthy: 10 }, CALM],
  ["allows fewer unhealthy nodes", { ...SPEC, maxUnhealthy: 0 }, CALM],
  ["has a threshold that cannot be read", { ...SPEC, minHealthy: "many" }, CALM],
  ["has no valid spec", { selector: 1 }, CALM],
  [
    "has a selector that cannot be read",
    { ...SPEC, selector: { matchExpressions: [{ key: "a", operator: "X" }] } },
    CALM,
  ],
] as const) {
  test(`a health check that ${what} announces nothing`, () => {
    assert.equal(readAnnouncing(spec, status), undefined);
  });
}

test("a health check announces while its threshold is just met", () => {
  assert.notEqual(readAnnouncing({ ...SPEC, minHealthy: "90%" }, CALM), undefined);
  assert.notEqual(readAnnouncing({ ...SPEC, maxUnhealthy: "10%" }, CALM), undefined);
});
