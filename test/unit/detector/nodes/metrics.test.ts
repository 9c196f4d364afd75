import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import type { NodeHealthCheckStatus } from "../../../../src/api/node-health-check.ts";
import { DetectorMetrics } from "../../../../src/detector/nodes/effects/metrics.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { T0 } from "./world.ts";

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
      const metrics = new DetectorMetrics(registry);
      metrics.follow({}, running, T0);
      metrics.follow(running, after, T0);
      assert.deepEqual(await ongoing(registry), kinds);
    });
  }

  it("nothing of a health check that is gone", async () => {
    const registry = new Registry();
    const metrics = new DetectorMetrics(registry);
    metrics.follow({}, running, T0);
    metrics.forget(running);
    assert.deepEqual(await ongoing(registry), []);
  });
});

describe("the histogram of how long nodes were unhealthy", () => {
  /** One node after the other is remediated and recovers after so many seconds. */
  function recovered(...cases: [node: string, seconds: number][]): Registry {
    const registry = new Registry();
    const metrics = new DetectorMetrics(registry);
    for (const [name, seconds] of cases) {
      const [entry] = statusOf({ kind: "X", uid: `of-${name}` }).unhealthyNodes ?? [];
      assert.ok(entry);
      metrics.follow({ unhealthyNodes: [{ ...entry, name }] }, {}, T0 + seconds * 1_000);
    }
    return registry;
  }

  it("has upstream's buckets, labels and names", async () => {
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

  it("keeps a series a node, of the last ten thousand", async () => {
    const nodes = Array.from({ length: 10_001 }, (_, index): [string, number] => [`n${index}`, 60]);
    const text = await recovered(...nodes).metrics();
    assert.equal(text.match(/_count\{/g)?.length, 10_000);
    assert.doesNotMatch(text, /_count\{name="n0"/);
    assert.match(text, /_count\{name="n10000"/);
  });
});
