import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import type { NodeHealthCheckStatus } from "../../../../src/api/ironfence/node-health-check.ts";
import { NodeHealthCheckMetrics } from "../../../../src/detector/nodes/effects/metrics.ts";
import type { Threshold } from "../../../../src/detector/nodes/decide/threshold.ts";
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

describe("the gauge of ongoing remediations", () => {
  const running = statusOf({ kind: "X", uid: "1" });
  const cases: [string, NodeHealthCheckStatus, string[]][] = [
    ["the gauge of ongoing remediations shows a remediation that is under way", running, ["X"]],
    [
      "the gauge of ongoing remediations does not show one that was given up, although it is on record",
      statusOf({ kind: "X", uid: "1", timedOut: true }),
      [],
    ],
    [
      "the gauge of ongoing remediations shows the present step without the step before",
      statusOf({ kind: "X", uid: "1", timedOut: true }, { kind: "Y", uid: "2" }),
      ["Y"],
    ],
    [
      "the gauge of ongoing remediations shows the second try of a kind whose first try was given up",
      statusOf({ kind: "X", uid: "1", timedOut: true }, { kind: "X", uid: "2" }),
      ["X"],
    ],
    ["the gauge of ongoing remediations shows nothing when the node is healthy", {}, []],
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

  it("the gauge of ongoing remediations shows nothing of a health check that was deleted", async () => {
    const registry = new Registry();
    const metrics = new NodeHealthCheckMetrics(registry, () => []);
    metrics.follow({}, running, T0);
    metrics.forget("check", running);
    assert.deepEqual(await ongoing(registry), []);
  });
});

describe("the histogram of how long nodes were unhealthy", () => {
  /** Metrics after one node after the other was remediated and recovered after the given seconds. */
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

describe("the series of a node that was deleted", () => {
  const HOUR_MS = 3_600_000;
  const [entry] = statusOf({ kind: "X", uid: "1" }).unhealthyNodes ?? [];

  async function namesAfter(end: (metrics: NodeHealthCheckMetrics) => void): Promise<string[]> {
    const registry = new Registry();
    const metrics = new NodeHealthCheckMetrics(registry, () => []);
    for (const name of ["a", "b"]) {
      assert.ok(entry);
      metrics.follow({ unhealthyNodes: [{ ...entry, name }] }, {}, T0 + 60_000);
      metrics.countOld(name);
    }
    end(metrics);
    const series = (await registry.metrics()).matchAll(/(?:_duration_seconds_count|_old_remediation_cr)\{name="(\w)"/g);
    return [...series].map(([, name = ""]) => name).sort();
  }

  it("the series of a node that was deleted stay long enough to be read, and then go", async () => {
    const early = await namesAfter((metrics) => {
      metrics.nodeGone("a", 0);
      metrics.dropGone(HOUR_MS - 1);
    });
    assert.deepEqual(early, ["a", "a", "b", "b"]);
    const late = await namesAfter((metrics) => {
      metrics.nodeGone("a", 0);
      metrics.dropGone(HOUR_MS);
    });
    assert.deepEqual(late, ["b", "b"]);
  });

  it("the series of a node that was deleted stay if a remediation has created the node again", async () => {
    const names = await namesAfter((metrics) => {
      metrics.nodeGone("a", 0);
      metrics.nodeBack("a");
      metrics.dropGone(2 * HOUR_MS);
    });
    assert.deepEqual(names, ["a", "a", "b", "b"]);
  });
});

describe("the gauge of health checks", () => {
  type Gate = Parameters<NodeHealthCheckMetrics["keep"]>[1]["gate"];

  async function shown(
    ...checks: { status: NodeHealthCheckStatus; gate?: Gate; threshold?: Threshold }[]
  ): Promise<string[]> {
    const registry = new Registry();
    const named = checks.map((check, index) => ({ metadata: { name: `check-${index}` }, ...check }));
    const metrics = new NodeHealthCheckMetrics(registry, () => named);
    for (const { metadata, gate, threshold } of named) metrics.keep(metadata.name, { gate, nodes: [] }, threshold);
    const spent = { outcome: "budgetSpent", reason: "", nextCheckMs: undefined };
    metrics.keep(
      "a",
      {
        gate: undefined,
        nodes: [
          { ...spent, name: "n1" },
          { ...spent, name: "n2" },
          { ...spent, name: "n3", outcome: "healthy" },
          { ...spent, name: "n5", outcome: "create" },
          { ...spent, name: "n6", outcome: "deferred" },
          { ...spent, name: "n7", outcome: "foreign" },
          { ...spent, name: "n8", outcome: "excluded" },
        ],
      },
      undefined,
    );
    metrics.keep("b", { gate: undefined, nodes: [{ ...spent, name: "n4" }] }, undefined);
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
    const enabled = condition("Disabled", "NodeHealthCheckEnabled", "False");
    assert.deepEqual(
      await shown(
        { status: { phase: "Enabled", observedNodes: 3, conditions: [enabled] } },
        { status: { phase: "Enabled", observedNodes: 0 } },
        { status: { phase: "Disabled", conditions: [condition("Disabled", "SpecInvalid")] } },
        {
          status: {
            phase: "Remediating",
            conditions: [condition("AttemptBudgetSpent", "GivingUp")],
            observedNodes: 3,
          },
        },
        { status: {} },
      ),
      [
        'ironfence_health_checks{state="Enabled",reason="None"} 1',
        'ironfence_health_checks{state="Enabled",reason="NoNodes"} 1',
        'ironfence_health_checks{state="Remediating",reason="AttemptBudgetSpent"} 1',
        'ironfence_health_checks{state="Disabled",reason="SpecInvalid"} 1',
        'ironfence_health_checks{state="Other",reason="None"} 1',
        "ironfence_attempt_budget_spent 2",
        "ironfence_nodes_not_started 3",
      ],
    );
  });

  it("the gauge of health checks shows what lets no remediation start, before anything else but Disabled", async () => {
    const gate = (outcome: NonNullable<Gate>["outcome"]): Gate => ({ outcome, reason: "in words" });
    const failed = [condition("RemediationFailed", "LastRemediationFailed")];
    const storm = [condition("StormActive", "HealthyNodeThresholdChange"), ...failed];
    for (const [status, given, expected] of [
      [{ phase: "Enabled", conditions: failed }, gate("threshold"), 'state="Enabled",reason="ThresholdHolds"'],
      [{ phase: "Remediating" }, gate("threshold"), 'state="Remediating",reason="ThresholdHolds"'],
      [{ phase: "Enabled", conditions: storm }, gate("threshold"), 'state="Enabled",reason="StormActive"'],
      [{ phase: "Enabled", conditions: storm }, gate("storm"), 'state="Enabled",reason="StormActive"'],
      [{ phase: "Enabled", conditions: storm }, gate("blocked"), 'state="Enabled",reason="ViewStale"'],
      [{ phase: "Enabled" }, gate("upgrading"), 'state="Enabled",reason="ClusterUpgrading"'],
      [{ phase: "Paused", conditions: storm }, gate("paused"), 'state="Paused",reason="PauseRequested"'],
      [{ phase: "Disabled", conditions: storm }, gate("disabled"), 'state="Disabled",reason="Other"'],
      [{ phase: "Enabled", conditions: failed }, undefined, 'state="Enabled",reason="RemediationFailed"'],
    ] as const) {
      const [line] = await shown({ status: { ...status, conditions: [...(status.conditions ?? [])] }, gate: given });
      assert.equal(line, `ironfence_health_checks{${expected}} 1`);
    }
  });

  it("the gauge of health checks shows a threshold at which no node that fails alone may be remediated", async () => {
    const three: NodeHealthCheckStatus = { phase: "Enabled", observedNodes: 3 };
    const gate = { outcome: "threshold", reason: "", announcement: undefined } as const;
    for (const [status, minHealthy, given, reason] of [
      [three, 3, undefined, "ThresholdTooHigh"],
      [three, 4, undefined, "ThresholdTooHigh"],
      [three, 2, undefined, "None"],
      [three, 3, gate, "ThresholdHolds"],
      [{ ...three, observedNodes: 0 }, 1, undefined, "NoNodes"],
      [{ ...three, observedNodes: 0 }, 1, gate, "NoNodes"],
      [{ phase: "Enabled" }, 1, undefined, "None"],
    ] as const) {
      const threshold: Threshold = { kind: "minHealthy", amount: { unit: "nodes", count: minHealthy } };
      const [line] = await shown({ status, gate: given, threshold });
      assert.equal(line, `ironfence_health_checks{state="Enabled",reason="${reason}"} 1`);
    }
  });
});
