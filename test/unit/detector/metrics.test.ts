import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import type { NodeHealthCheckStatus } from "../../../src/api/node-health-check.ts";
import { DetectorMetrics } from "../../../src/detector/metrics.ts";
import { toTime } from "../../../src/runtime/time.ts";
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
