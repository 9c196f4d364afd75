import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { ROWS } from "../../../hack/monitoring/panels.ts";
import { problemsIn } from "./promql.ts";

const QUERIES = ROWS.flatMap(({ panels }) => panels).flatMap(({ queries }) => queries);

describe("the dashboard", () => {
  it("the dashboard asks for metrics, labels and values that exist", () => {
    for (const { expr } of QUERIES) assert.deepEqual(problemsIn(expr), [], expr);
  });

  it("the dashboard names series by labels that their query keeps", () => {
    for (const { expr, legend } of QUERIES) {
      for (const [, label = ""] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
        assert.ok(expr.includes(label) || label === "instance", `${legend}: ${expr}`);
      }
    }
  });

  it("the dashboard is checked in with every query", () => {
    const text = readFileSync(new URL("../../../deploy/monitoring/dashboard.json", import.meta.url), "utf8");
    const { panels } = JSON.parse(text) as { panels: { targets?: { expr: string }[] }[] };
    const shipped = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    assert.deepEqual(
      shipped,
      QUERIES.map(({ expr }) => expr),
    );
  });
});
