import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import type { NodeHealthCheckStatus } from "../../../../src/api/node-health-check.ts";
import { NodeHealthCheckMetrics } from "../../../../src/detector/nodes/effects/metrics.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { T0 } from "./builders.ts";

const ONGOING = "nodehealthcheck_ongoing_remediation{";

function statusOf(...attempts: { kind: string; uid: string; timedOut?: boolean }[]): NodeHealthCheckStatus {
  const remediations = attempts.map(({ kind, uid, timedOut = false }) => ({
    resource: { apiVersion: "fence.example/v1", kind, namespace: "fencing", name: "a", uid },
    started: toTime(T0),
    ...(timedOut && { timedOut: toTime(T0) }),
  }));
  return attempts.length === 0 ? {} : { unhealthyNodes: [{ name: "a", remediations }] };
}

async function ongoing(registry: Registry): Promise<string[]> {
  const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith(ONGOING));
  return lines.map((line) => /remediation="(\w+)"/.exec(line)?.[1] ?? "");
}

describe("the gauge of remediations that go on", () => {
  const running = statusOf({ kind: "X", uid: "1" });
  const cases: [string, NodeHealthCheckStatus, string[]][] = [
    ["shows what goes on", running, ["X"]],
    ["not what was given up, though it is on record", statusOf({ kind: "X", uid: "1", timedOut: true }), []],
    ["nor the step before", statusOf({ kind: "X", uid: "1", timedOut: true }, { kind: "Y", uid: "2" }), ["Y"]],
    [
      "the second try of a kind whose first was given up",
      statusOf({ kind: "X", uid: "1", timedOut: true }, { kind: "X", uid: "2" }),
      ["X"],
    ],
    ["nothing once the node is well", {}, []],
  ];
  for (const [name, after, kinds] of cases) {
    it(name, async () => {
      const registry = new Registry();
      const metrics = new NodeHealthCheckMetrics(registry, () => []);
      metrics.follow({}, running, T0);
      metrics.follow(running, after, T0);
      assert.deepEqual(await ongoing(registry), kinds);
    });
  }

  it("nothing of a health check that is gone", async () => {
    const registry = new Registry();
    const metrics = new NodeHealthCheckMetrics(registry, () => []);
    metrics.follow({}, running, T0);
    metrics.forget("check", running);
    assert.deepEqual(await ongoing(registry), []);
  });
});

describe("the histogram of how long nodes were unhealthy", () => {
  /** One node after the other is remediated and recovers after so many seconds. */
  function recovered(...cases: [node: string, seconds: number][]): Registry {
    const registry = new Registry();
    const metrics = new NodeHealthCheckMetrics(registry, () => []);
    for (const [name, seconds] of cases) {
      const [entry] = statusOf({ kind: "X", uid: `of-${name}` }).unhealthyNodes ?? [];
      assert.ok(entry);
      metrics.follow({ unhealthyNodes: [{ ...entry, name }] }, {}, T0 + seconds * 1_000);
    }
    return registry;
  }

  it("the histogram of how long nodes were unhealthy has upstream's buckets, labels and names", async () => {
    const lines = (await recovered(["a", 30], ["a", 45.5], ["a", 4_000]).metrics()).split("\n");
    const labels = 'name="a",namespace="fencing",remediation="X"';
    const name = "nodehealthcheck_unhealthy_node_duration_seconds";
    const bounds = ["30", "60", "120", "180", "240", "300", "600", "1200", "2400", "3600", "+Inf"];
    assert.ok(lines.includes(`# TYPE ${name} histogram`));
    assert.deepEqual(
      lines.filter((line) => line.startsWith(name)),
      [
        ...bounds.map((le, index) => `${name}_bucket{le="${le}",${labels}} ${index === 0 ? 1 : le === "+Inf" ? 3 : 2}`),
        `${name}_sum{${labels}} 4075.5`,
        `${name}_count{${labels}} 3`,
      ],
    );
  });

  it("the histogram of how long nodes were unhealthy keeps a series a node, of the last ten thousand", async () => {
    const nodes = Array.from({ length: 10_001 }, (_, index): [string, number] => [`n${index}`, 60]);
    const text = await recovered(...nodes).metrics();
    assert.equal(text.match(/_count\{/g)?.length, 10_000);
    assert.doesNotMatch(text, /_count\{name="n0"/);
    assert.match(text, /_count\{name="n10000"/);
  });
});

describe("the gauge of health checks", () => {
  async function shown(...statuses: NodeHealthCheckStatus[]): Promise<string[]> {
    const registry = new Registry();
    const metrics = new NodeHealthCheckMetrics(registry, () => statuses.map((status) => ({ status })));
    metrics.setBudgetSpent("a", 2);
    metrics.setBudgetSpent("b", 1);
    metrics.forget("b", {});
    const lines = (await registry.metrics()).split("\n");
    return lines.filter((line) => /^ironfence_.* [^0]/.test(line));
  }
  const condition = (type: string, reason: string, status: "True" | "False" = "True") => ({
    type,
    reason,
    status,
    message: "",
    lastTransitionTime: toTime(T0),
  });

  it("the gauge of health checks counts them by phase and by why they do not remediate, and the nodes that are given up", async () => {
    assert.deepEqual(
      await shown(
        { phase: "Enabled", observedNodes: 3, conditions: [condition("Disabled", "NodeHealthCheckEnabled", "False")] },
        { phase: "Enabled", observedNodes: 0 },
        { phase: "Disabled", conditions: [condition("Disabled", "SpecInvalid")] },
        { phase: "Remediating", conditions: [condition("AttemptBudgetSpent", "GivingUp")], observedNodes: 3 },
        { phase: "Paused", observedNodes: 3, conditions: [condition("StormActive", "x", "False")] },
        {},
      ),
      [
        'ironfence_health_checks{state="Enabled",reason="None"} 1',
        'ironfence_health_checks{state="Enabled",reason="NoNodes"} 1',
        'ironfence_health_checks{state="Remediating",reason="AttemptBudgetSpent"} 1',
        'ironfence_health_checks{state="Paused",reason="None"} 1',
        'ironfence_health_checks{state="Disabled",reason="SpecInvalid"} 1',
        'ironfence_health_checks{state="Other",reason="None"} 1',
        "ironfence_attempt_budget_spent 2",
      ],
    );
  });
});
