import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { ROWS } from "../../../hack/monitoring/panels.ts";
import { problemsIn } from "./promql.ts";

interface ShippedPanel {
  title: string;
  gridPos: { x: number; w: number };
  targets?: { expr: string }[];
}

const QUERIES = ROWS.flatMap(({ panels }) => panels).flatMap(({ queries }) => queries);
const SHIPPED = readFileSync(new URL("../../../deploy/monitoring/dashboard.json", import.meta.url), "utf8");
const { panels: PANELS } = JSON.parse(SHIPPED) as { panels: ShippedPanel[] };

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

  it("the dashboard has no panel that reaches beyond the 24 columns of Grafana's grid", () => {
    for (const { title, gridPos } of PANELS) assert.ok(gridPos.x + gridPos.w <= 24, title);
  });

  it("the dashboard is checked in with every query", () => {
    const shipped = PANELS.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    assert.deepEqual(
      shipped,
      QUERIES.map(({ expr }) => expr),
    );
  });
});
