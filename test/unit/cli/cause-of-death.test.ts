import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { node, remediation, target } from "./dashboard/fixture.ts";
import { AT, OVERVIEW } from "./overview-fixture.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Evidence } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { renderDocument } from "../../../src/cli/dashboard/render/document.ts";
import type { Html } from "../../../src/cli/dashboard/render/html.ts";
import { renderNodePage } from "../../../src/cli/dashboard/render/node.ts";
import { renderOverviewPage } from "../../../src/cli/dashboard/render/overview.ts";
import { nodePage } from "../../../src/cli/dashboard/view/node-page.ts";
import { overviewPage } from "../../../src/cli/dashboard/view/overview-page.ts";
import { judgeRemediation } from "../../../src/cli/status/could-fence/remediations.ts";
import type { Overview } from "../../../src/cli/status/objects/read.ts";
import { renderOverview } from "../../../src/cli/status/render.ts";

const SENTENCE = "Uncorrectable ECC, DIMM B2, 41 s before the node was lost";
const CAUSE = `Memory: ${SENTENCE}`;
const EVIDENCE: Evidence = { class: "Memory", message: SENTENCE, readAt: AT, entries: [] };

/** One host that is being fenced, one whose fence has failed, and one whose remediation was already deleted. */
const FENCED = remediation("w1", "PoweringOff", "PoweringOff", { evidence: EVIDENCE });
const FAILED = remediation("w2", "Failed", "Failed", {
  evidence: EVIDENCE,
  conditions: [
    { type: "Succeeded", status: "False", reason: "RejoinTimeout", message: "said", lastTransitionTime: AT },
  ],
});
const OUTCOME = {
  time: AT,
  result: "Succeeded" as const,
  reason: "Succeeded",
  message: "said",
  attempts: 1,
  cause: CAUSE,
  remediation: { namespace: "ironfence-system", name: "gone", uid: "gone" },
};

function overviewOf(...remediations: readonly (typeof FENCED)[]): Overview {
  return {
    ...OVERVIEW,
    nodes: ["w1", "w2", "w3"].map((name) => node(name, "Unknown")),
    targets: [target("w1"), target("w2"), target("w3", { status: { outcomes: [OUTCOME] } })],
    remediations: [...remediations],
  };
}

/** How often the text of a page names the cause. */
function count(content: Html): number {
  return (
    renderDocument({ path: "/", title: "t", cluster: "c", nowMs: 0, version: "v" }, content).split(CAUSE).length - 1
  );
}

describe("the cause of death", () => {
  it("the cause of death is in ironfence status, one line for each remediation that knows it", () => {
    const lines = renderOverview(overviewOf(FENCED, remediation("w2", "PoweringOff", "PoweringOff", {})), []);
    const found = lines.filter((line) => line.includes("cause of death"));
    assert.deepEqual(found, [`  cause of death, ${FENCED.metadata.name}: ${CAUSE}`]);
  });

  it("the cause of death is in the line about the remediation of ironfence explain", () => {
    const { found } = judgeRemediation(overviewOf(FENCED), FENCED);
    assert.ok(found?.endsWith(`; cause of death: ${CAUSE}`), found);
    const unknown = remediation("w1", "PoweringOff", "PoweringOff", {});
    assert.doesNotMatch(judgeRemediation(overviewOf(unknown), unknown).found ?? "", /cause of death/);
  });

  it("the cause of death is on the overview page for fences under way and for those that have ended, with and without their remediation", () => {
    const { page } = overviewPage(overviewOf(FENCED, FAILED));
    assert.deepEqual(
      page.ended.map(({ node: name, cause }) => [name, cause]),
      [
        ["w2", CAUSE],
        ["w3", CAUSE],
      ],
    );
    assert.equal(count(renderOverviewPage(page)), 3);
    assert.equal(count(renderOverviewPage(overviewPage({ ...overviewOf(), targets: [] }).page)), 0);
  });

  it("the cause of death is on the page of its node", () => {
    const page = nodePage(overviewOf(FENCED), "w1", { problem: "forbidden" });
    assert.ok(page);
    assert.equal(page.fence?.cause, CAUSE);
    assert.equal(count(renderNodePage(page)), 2, "under the fence, and under why it is fenced");
  });

  it("the cause of death is a column of kubectl get -o wide", () => {
    const column = BARE_METAL_REMEDIATIONS.printerColumns.find(({ name }) => name === "Cause");
    assert.deepEqual([column?.jsonPath, column?.priority], [".status.evidence.message", 1]);
  });
});
