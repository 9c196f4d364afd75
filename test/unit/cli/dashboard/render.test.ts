import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { renderDocument } from "../../../../src/cli/dashboard/render/document.ts";
import type { Html } from "../../../../src/cli/dashboard/render/html.ts";
import { html } from "../../../../src/cli/dashboard/render/html.ts";
import { renderNodePage } from "../../../../src/cli/dashboard/render/node.ts";
import { renderNodesPage, renderRows } from "../../../../src/cli/dashboard/render/nodes.ts";
import { renderOverviewPage } from "../../../../src/cli/dashboard/render/overview.ts";
import { SCRIPT } from "../../../../src/cli/dashboard/render/script.ts";
import { STYLE } from "../../../../src/cli/dashboard/render/style.ts";
import { nodeList, nodeQuery } from "../../../../src/cli/dashboard/view/node-list.ts";
import { nodePage } from "../../../../src/cli/dashboard/view/node-page.ts";
import { overviewPage } from "../../../../src/cli/dashboard/view/overview-page.ts";
import type { Overview } from "../../../../src/cli/status/objects/read.ts";
import { AT, OVERVIEW } from "../overview-fixture.ts";
import { healthCheck, node, remediation, target } from "./fixture.ts";

const KIB = 1_024;
const frame = { path: "/", title: "Overview", cluster: "c", nowMs: 0, version: "v" };

/** Markup that a browser would execute, and characters that would end an attribute or a line. */
const HOSTILE = `<img src=x onerror=hack()></script><script>hack()</script>"'\`&\u202e\u0000\r\ndata: x`;

/** The hostile text in every place that the cluster, its users or its BMCs can write. */
function hostileOverview(): Overview {
  const condition = { status: "True" as const, reason: HOSTILE, message: HOSTILE, lastTransitionTime: HOSTILE };
  const outcome = {
    time: AT,
    result: "Failed" as const,
    reason: HOSTILE,
    message: HOSTILE,
    attempts: 1,
    remediation: { namespace: HOSTILE, name: HOSTILE, uid: "o" },
  };
  const owner = { uid: "o", kind: HOSTILE, namespace: HOSTILE, name: HOSTILE, since: HOSTILE };
  const { agent } = OVERVIEW;
  assert.ok(agent.state === "leading");
  return {
    ...OVERVIEW,
    cluster: { server: HOSTILE, source: HOSTILE },
    namespace: HOSTILE,
    agent: { ...agent, leader: HOSTILE, version: HOSTILE, notReady: HOSTILE },
    stopSwitch: { paused: true, reason: HOSTILE, since: HOSTILE },
    nodes: [node(HOSTILE, HOSTILE)],
    targets: [target(HOSTILE, { reason: HOSTILE, message: HOSTILE, status: { outcomes: [outcome], owner } })],
    healthChecks: [healthCheck({ phase: HOSTILE, reason: HOSTILE, unhealthyNodes: [{ name: `${HOSTILE}2` }] })],
    machineHealthChecks: { problem: HOSTILE },
    remediations: [
      remediation(HOSTILE, "PoweringOff", HOSTILE, {
        conditions: [{ type: "Processing", ...condition }],
        node: { name: HOSTILE, zone: HOSTILE },
        timeline: [{ step: HOSTILE, time: AT, message: HOSTILE }],
      }),
      remediation(`${HOSTILE}3`, "Resolving", HOSTILE, { conditions: [{ type: "Processing", ...condition }] }),
      remediation(`${HOSTILE}4`, "Failed", HOSTILE, {
        conditions: [{ ...condition, type: "Succeeded", status: "False", lastTransitionTime: AT }],
      }),
    ],
  };
}

describe("the pages", () => {
  it("the pages run nothing that names, messages and BMCs say", () => {
    const overview = hostileOverview();
    const { page, nodes } = overviewPage(overview);
    const single = nodePage(overview, HOSTILE, { problem: HOSTILE });
    assert.ok(single);
    const query = new URLSearchParams({ q: HOSTILE });
    const all = nodeList(nodes, nodeQuery(new URLSearchParams()));
    const filtered = { ...all, filter: HOSTILE, slices: [...all.slices, { from: 50, count: 1, version: "v" }] };
    for (const [content, path] of [
      [renderOverviewPage(page), HOSTILE],
      [renderNodesPage(all), `/nodes?${query.toString()}`],
      [renderNodesPage(filtered), "/nodes"],
      [renderNodePage(single), "/nodes/x"],
    ] as const) {
      const text = renderDocument({ ...frame, title: HOSTILE, cluster: HOSTILE, path }, content);
      assert.match(text, /hack\(\)/, "the text is shown");
      assert.doesNotMatch(text, /<img|<script>|\u202e/);
      assert.doesNotMatch(text, /"'`&(?!amp;)/, "no attribute ends early");
      assert.equal(text.match(/<script/g)?.length, 1, "ours");
      const tags = text.replaceAll(/"[^"]*"/g, '""').match(/<[a-z][^<>]*>/g) ?? [];
      assert.ok(tags.length > 20);
      for (const tag of tags) assert.doesNotMatch(tag, /\s(on[a-z]+|style|srcdoc)=/);
    }
  });

  it("the pages escape the content of elements and attributes, and nothing twice", () => {
    const inner = html`<i>${"&"}</i>`;
    const { text } = html`<a href="${'"><b>'}">${inner}${undefined}${[inner, 1]}</a>`;
    assert.equal(text, '<a href="&quot;&gt;&lt;b&gt;"><i>&amp;</i><i>&amp;</i>1</a>');
  });

  describe("the size of the pages", () => {
    /** The practical maximum lengths of a node name and of a condition message. */
    const message = "x".repeat(1_000);
    const names = Array.from(
      { length: 5_000 },
      (_, index) => `worker-${index}.rack-7.${"long-name-".repeat(4)}.example.com`,
    );
    const { page, nodes } = overviewPage({
      ...OVERVIEW,
      nodes: names.map((name) => node(name, "Unknown")),
      targets: names.map((name, index) =>
        target(name, { reason: index % 2 === 0 ? "BMCTimeout" : "Unreachable", message }),
      ),
      remediations: names.slice(0, 500).map((name) => remediation(name, "PoweringOff", "BMCTimeout")),
    });
    const sizeOf = (path: string, content: Html): number =>
      [renderDocument({ ...frame, path }, content), STYLE, SCRIPT].reduce(
        (sum, text) => sum + Buffer.byteLength(text),
        0,
      );

    it("the pages take less than 100 KiB in all, even if 5,000 nodes cannot be fenced and 500 are", () => {
      const bytes = sizeOf("/", renderOverviewPage({ ...page, nowMs: 0 }));
      assert.ok(bytes < 100 * KIB, `${bytes} bytes`);
    });

    it("the page of 5,000 nodes takes less than 100 KiB in all, wherever it begins, and each slice of rows less than 32 KiB", () => {
      for (const text of ["", "from=4950", "q=bmctimeout"]) {
        const list = nodeList(nodes, nodeQuery(new URLSearchParams(text)));
        assert.equal(list.rows.length, 50);
        const bytes = sizeOf("/nodes", renderNodesPage(list));
        assert.ok(bytes < 100 * KIB, `${text}: ${bytes} bytes`);
        assert.ok(Buffer.byteLength(renderRows(list.rows).text) < 32 * KIB);
      }
    });
  });

  it("the pages do not change because time passes", () => {
    const at = (nowMs: number): string =>
      renderOverviewPage(overviewPage({ ...OVERVIEW, nowMs, nodes: [node("w1")], targets: [target("w1")] }).page).text;
    assert.equal(at(OVERVIEW.nowMs), at(OVERVIEW.nowMs + 41_000));
  });

  it("the pages have a script and a style that load nothing from elsewhere", () => {
    for (const text of [SCRIPT, STYLE]) assert.doesNotMatch(text, /https?:|\/\/[a-z]|url\(|@import/);
  });
});

describe("a fence on the page", () => {
  const shown = (nowMs: number): string => {
    const drain = { attemptID: "a1", pods: 4, attachments: 1, left: 2 };
    const status = { attempt: { id: "a1", kind: "Reboot" } as never, drain, timeline: [{ step: "s", time: AT }] };
    const outcome = {
      time: "2025-12-31T00:02:13Z",
      startTime: "2025-12-31T00:00:00Z",
      reason: "NodeRestored",
      message: "said",
      attempts: 1,
      remediation: { namespace: "n", name: "r", uid: "gone" },
    };
    const outcomes = [
      { ...outcome, result: "Succeeded" as const },
      { ...outcome, result: "Failed" as const, reason: "PowerOnTimeout" },
    ];
    const overview: Overview = {
      ...OVERVIEW,
      nowMs,
      nodes: [node("worker-3", "Unknown")],
      targets: [target("worker-3", { status: { outcomes } })],
      remediations: [remediation("worker-3", "Releasing", "Releasing", status)],
    };
    return renderOverviewPage(overviewPage(overview).page)
      .text.replaceAll(/<[^>]*>/g, " ")
      .replaceAll(/\s+/g, " ");
  };

  it("a fence on the page reads without scripts as the docs show it", () => {
    const text = shown(Date.parse(AT) + 41_000);
    const page = readFileSync(new URL("../../../../docs/how-to/dashboard.md", import.meta.url), "utf8");
    const [, block = ""] = /look like this:\n\n```\n([\s\S]*?)```/.exec(page) ?? [];
    const lines = block.trim().split("\n");
    assert.ok(lines.length > 5, "the block in the docs");
    for (const expected of lines) {
      assert.ok(text.includes(expected), `${expected}\n${text}`);
    }
  });
});
