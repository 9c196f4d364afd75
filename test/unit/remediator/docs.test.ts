import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { createMetrics } from "../../../src/remediator/metrics.ts";
import { pageOf, REASONS } from "../../../src/remediator/machine/model/reasons.ts";
import { STATE_NAMES } from "../../../src/remediator/machine/model/state.ts";
import { ARROWS as arrows, REMEDIATION_DOC as text } from "./diagram.ts";

const read = (page: string): string => readFileSync(new URL(`../../../docs/${page}`, import.meta.url), "utf8");

/** First cells of the table under a heading. */
function rowsUnder(heading: string): string[] {
  const section = text.slice(text.indexOf(heading) + heading.length).split("\n## ")[0] ?? "";
  return [...section.matchAll(/^\| ([A-Z][A-Za-z]+) \|/gm)].map(([, name = ""]) => name);
}

describe("docs/explanation/remediation.md", () => {
  it("draws every state, and no other", () => {
    const drawn = new Set(arrows.flatMap(({ from, to }) => [from, to]).filter((name) => name !== "[*]"));
    assert.deepEqual([...drawn].sort(), [...STATE_NAMES].sort());
  });

  it("lists every state in its table, in order", () => {
    assert.deepEqual(rowsUnder("## States"), [...STATE_NAMES]);
  });

  it("has a heading, and so an anchor, for every reason", () => {
    const headings = [...read("reference/reasons.md").matchAll(/^### (\w+)$/gm)].map(([, name = ""]) => name);
    assert.deepEqual(headings.sort(), [...REASONS].sort());
    assert.equal(pageOf("BMCTimeout"), "docs/reference/reasons.md#bmctimeout");
  });

  it("gives every state that is not final a way to Undoing or out of it", () => {
    for (const name of STATE_NAMES) {
      if (name === "Succeeded" || name === "Failed" || name === "Undoing") continue;
      assert.ok(
        arrows.some(({ from, to }) => from === name && to === "Undoing"),
        name,
      );
    }
  });

  it("lists every metric", async () => {
    const registry = new Registry();
    createMetrics(registry);
    const page = read("reference/metrics.md");
    for (const { name } of await registry.getMetricsAsJSON()) assert.ok(page.includes(`\`${name}\``), name);
  });
});
