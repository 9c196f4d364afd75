import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { collectedGauge, createCounter, createHistogram, metric } from "../../../src/telemetry/metric.ts";

const LABELS = { who: ["a", "b"], how: ["fast", "slow"] };

async function lines(registry: Registry, name: string): Promise<string[]> {
  return (await registry.metrics()).split("\n").filter((line) => line.startsWith(name));
}

describe("a metric whose label values are known", () => {
  it("a metric whose label values are known has every series of a counter at 0 from the start, so that the first increase is seen", async () => {
    const registry = new Registry();
    createCounter(metric({ name: "x_total", type: "counter", help: "x", labels: LABELS }), registry);
    assert.deepEqual(await lines(registry, "x_total"), [
      'x_total{who="a",how="fast"} 0',
      'x_total{who="a",how="slow"} 0',
      'x_total{who="b",how="fast"} 0',
      'x_total{who="b",how="slow"} 0',
    ]);
  });

  it("a metric whose label values are known has only the series of a counter that are given, if some combinations do not exist", async () => {
    const registry = new Registry();
    const definition = metric({ name: "x_total", type: "counter", help: "x", labels: LABELS });
    createCounter(definition, registry, [{ who: "a", how: "slow" }]);
    assert.deepEqual(await lines(registry, "x_total"), ['x_total{who="a",how="slow"} 0']);
  });

  it("a metric whose label values are known has every series of a histogram at 0 from the start", async () => {
    const registry = new Registry();
    const labels = { who: ["a", "b"] };
    createHistogram(metric({ name: "x", type: "histogram", help: "x", labels, buckets: [1] }), registry);
    assert.deepEqual(await lines(registry, "x_count"), ['x_count{who="a"} 0', 'x_count{who="b"} 0']);
  });

  it("a metric whose label values are known shows a gauge as it is when it is read, and 0 for what was counted before and is gone", async () => {
    const registry = new Registry();
    let count = 3;
    collectedGauge(metric({ name: "x", type: "gauge", help: "x", labels: { who: ["a", "b"] } }), registry, (set) => {
      if (count > 0) set({ who: "a" }, count);
    });
    assert.deepEqual(await lines(registry, "x"), ['x{who="a"} 3', 'x{who="b"} 0']);
    count = 0;
    assert.deepEqual(await lines(registry, "x"), ['x{who="a"} 0', 'x{who="b"} 0']);
  });
});

it("a metric with a label that users choose has no series before there is a value", async () => {
  const registry = new Registry();
  createCounter(metric({ name: "x_total", type: "counter", help: "x", labels: { node: "the node" } }), registry);
  assert.deepEqual(await lines(registry, "x_total"), []);
});
