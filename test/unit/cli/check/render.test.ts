import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Finding } from "../../../../src/cli/check/check.ts";
import { resultOf } from "../../../../src/cli/check/check.ts";
import type { CheckReport } from "../../../../src/cli/check/render.ts";
import { renderJson, renderJunit, renderText } from "../../../../src/cli/check/render.ts";

const LEADER = { id: "leader", category: "Installation", title: "an agent leads" } as const;
const PAUSE = { id: "pause", category: "Holds", title: "no pause holds power-offs" } as const;

function report(leader: Finding[], pause: Finding[]): CheckReport {
  return {
    nowMs: Date.parse("2026-01-01T00:00:00Z"),
    mode: "installation",
    results: [resultOf(LEADER, leader), resultOf(PAUSE, pause)],
  };
}

const MIXED = report(
  [{ level: "ok", message: "agent-1 leads" }],
  [
    { level: "warning", message: "one" },
    { level: "failed", message: "paused by <ann> & co", hint: "ironfence resume" },
  ],
);

describe("a report of checks", () => {
  it("a report of checks has a line for each check under its category, and what to do under each that did not pass", () => {
    assert.deepEqual(renderText(MIXED, false), [
      "Installation",
      "√ an agent leads: agent-1 leads",
      "",
      "Holds",
      "× no pause holds power-offs",
      "    ‼ one",
      "    × paused by <ann> & co",
      "      ironfence resume",
      "    see docs/reference/checks.md#pause",
      "",
      "× 1 passed, 0 with warnings, 1 failed",
    ]);
  });

  it("a report of checks has colors only if it is asked to, and lets no text of others bring its own", () => {
    const evil = report([{ level: "ok", message: "\u001b[2Jgone" }], [{ level: "ok", message: "a\nb" }]);
    assert.ok(!renderText(evil, false).join("\n").includes("\u001b"));
    const [, colored = ""] = renderText(evil, true);
    assert.equal(colored, "\u001b[32m√\u001b[0m an agent leads: ?[2Jgone");
    assert.equal(renderText(evil, false)[4], "√ no pause holds power-offs: a?b");
  });

  it("a report of checks is one JSON object with the level, the findings and the page of each check", () => {
    const { checks, ...rest } = JSON.parse(renderJson(MIXED)) as { checks: Record<string, unknown>[] };
    assert.deepEqual(rest, {
      time: "2026-01-01T00:00:00Z",
      mode: "installation",
      ok: false,
      counts: { ok: 1, warning: 0, failed: 1 },
    });
    assert.equal(checks[1]?.["level"], "failed");
    assert.equal(checks[1]?.["page"], "docs/reference/checks.md#pause");
  });

  it("a report of checks is XML for JUnit, with a failure for each level that fails", () => {
    const lines = renderJunit(MIXED, new Set(["failed"])).split("\n");
    assert.equal(lines[1], '<testsuites name="ironfence check" tests="2" failures="1">');
    const text = lines.join("\n");
    assert.match(
      text,
      /<failure type="failed" message="paused by &lt;ann&gt; &amp; co">‼ one\n× paused by &lt;ann&gt; &amp; co\n/,
    );
    assert.match(text, /<system-out>√ agent-1 leads<\/system-out>/);
    const warned = report([{ level: "warning", message: "x\u0000\ud800" }], [{ level: "ok", message: "" }]);
    assert.match(renderJunit(warned, new Set(["failed"])), /failures="0"/);
    assert.match(renderJunit(warned, new Set(["warning", "failed"])), /<failure type="warning" message="x\?\?">/);
  });

  it("a report of checks requires at least one finding of each check", () => {
    assert.throws(() => resultOf(LEADER, []), /check leader returned no finding/);
  });
});
