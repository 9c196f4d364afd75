import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { reasonPage, REASONS } from "../../../../src/remediator/machine/model/decision/reasons.ts";
import { STATE_NAMES } from "../../../../src/remediator/machine/model/decision/state.ts";
import { ARROWS as arrows, REMEDIATION_DOC as text } from "./diagram.ts";

const read = (page: string): string => readFileSync(new URL(`../../../../docs/${page}`, import.meta.url), "utf8");

/** Names of states that have their own section under a heading. */
function statesUnder(heading: string): string[] {
  const section = text.slice(text.indexOf(heading) + heading.length).split("\n## ")[0] ?? "";
  const names = new Set<string>(STATE_NAMES);
  return [...section.matchAll(/^### ([A-Za-z]+)$/gm)].map(([, name = ""]) => name).filter((name) => names.has(name));
}

describe("docs/explanation/remediation.md", () => {
  it("docs/explanation/remediation.md draws every state, and no other", () => {
    const drawn = new Set(arrows.flatMap(({ from, to }) => [from, to]).filter((name) => name !== "[*]"));
    assert.deepEqual([...drawn].sort(), [...STATE_NAMES].sort());
  });

  it("docs/explanation/remediation.md has a section for every state, in order", () => {
    assert.deepEqual(statesUnder("## States"), [...STATE_NAMES]);
  });

  it("docs/explanation/remediation.md has a heading, and so an anchor, for every reason", () => {
    const headings = [...read("reference/reasons.md").matchAll(/^### (\w+)$/gm)].map(([, name = ""]) => name);
    assert.deepEqual(headings.sort(), [...REASONS].sort());
    assert.equal(reasonPage("BMCTimeout"), "docs/reference/reasons.md#bmctimeout");
  });

  it("docs/explanation/remediation.md gives every state that is not final a way to Undoing or out of it", () => {
    for (const name of STATE_NAMES) {
      if (name === "Succeeded" || name === "Failed" || name === "Undoing") continue;
      assert.ok(
        arrows.some(({ from, to }) => from === name && to === "Undoing"),
        name,
      );
    }
  });
});
