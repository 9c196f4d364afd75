import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renderNodesPage, renderRows } from "../../../../src/cli/dashboard/render/nodes.ts";
import type { FenceReadiness } from "../../../../src/cli/status/could-fence/could-fence.ts";
import { nodeList, nodeQuery } from "../../../../src/cli/dashboard/view/node-list.ts";

const NO = { answer: "no", step: undefined, isIntended: false } as const;
const NODES = Array.from({ length: 120 }, (_, index): FenceReadiness => {
  const node = `worker-${index}`;
  return index < 10
    ? { ...NO, node, reason: "BMCTimeout", message: "no answer" }
    : { ...NO, node, answer: "yes", reason: "", message: "" };
});
const listOf = (query: string, nodes = NODES) => nodeList(nodes, nodeQuery(new URLSearchParams(query)));
const versionsOf = (nodes: readonly FenceReadiness[]): string[] =>
  listOf("", [...nodes]).slices.map(({ version }) => version);

describe("the list of all nodes", () => {
  it("the list of all nodes has the rows of one slice, and links to all other slices", () => {
    const list = listOf("");
    assert.deepEqual(
      list.slices.map(({ from, count }) => [from, count]),
      [
        [0, 50],
        [50, 50],
        [100, 20],
      ],
    );
    const { text } = renderNodesPage(list);
    assert.equal(text.match(/href="\/nodes\/worker-/g)?.length, 50);
    assert.deepEqual(text.match(/(?<=href=")\/nodes\?[^"]*/g), [
      "/nodes?from=50#nodes-50",
      "/nodes?from=100#nodes-100",
    ]);
  });

  it("the list of all nodes begins where the address says, and at the first node if that is nowhere", () => {
    assert.deepEqual(listOf("from=100").rows.map(({ node }) => node)[0], "worker-100");
    for (const query of ["from=150", "from=-50", "from=1e9", "from=x", "from="])
      assert.equal(listOf(query).from, 0, query);
    assert.equal(listOf("from=73").from, 50);
    assert.deepEqual(listOf("", []).rows, []);
  });

  it("the list of all nodes is filtered by name, answer and reason, and its links keep the filter", () => {
    assert.equal(listOf("q=bmcTIMEOUT").matching, 10);
    assert.equal(listOf("q=%20no%20").matching, 10);
    const list = listOf("q=worker-1");
    assert.equal(list.matching, 31);
    assert.match(renderNodesPage(list).text, /31 of 120 nodes match/);
    assert.match(renderNodesPage(listOf("q=worker&from=50")).text, /href="\/nodes\?q=worker&amp;from=100#nodes-100"/);
  });

  it("the version of a slice changes with its rows alone", () => {
    const changed = NODES.map((row) =>
      row.node === "worker-77" ? { ...row, answer: "no" as const, reason: "Unreachable" } : row,
    );
    const [first, second, third] = versionsOf(NODES);
    const after = versionsOf(changed);
    assert.deepEqual([after[0], after[2]], [first, third]);
    assert.notEqual(after[1], second);
  });

  it("the list of all nodes shows the beginning of a long message", () => {
    const [row] = listOf("", [{ ...NO, node: "a", reason: "X", message: "m".repeat(1_000) }]).rows;
    assert.ok(row !== undefined && row.message.length < 200);
    assert.match(renderRows([row]).text, /m…/);
  });
});
