import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { ALERTS, runbookOf } from "../../../hack/monitoring/alerts.ts";
import { metricsIn, problemsIn } from "./promql.ts";

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

describe("the alerts", () => {
  it("the alerts name metrics, labels and values that exist", () => {
    assert.deepEqual(problemsIn('ironfence_fencing_targets{reason="Tired"} > ironfence_nothing'), [
      "reason of ironfence_fencing_targets is never Tired",
      "ironfence_nothing is not a metric",
    ]);
    for (const { name, expr, example, otherExamples = [] } of ALERTS) {
      assert.notDeepEqual(metricsIn(expr), [], name);
      const series = [example, ...otherExamples].flatMap((each) => Object.keys(each.series));
      for (const text of [expr, ...series]) assert.deepEqual(problemsIn(text), [], name);
    }
  });

  it("the alerts each have a runbook: what it means, the impact, how to see it and what to do; and there is no other", () => {
    const pages = readdirSync(new URL("../../../docs/how-to/runbooks", import.meta.url));
    assert.deepEqual(pages.map((page) => `docs/how-to/runbooks/${page}`).sort(), ALERTS.map(runbookOf).sort());
    for (const alert of ALERTS) {
      const headings = [...read(runbookOf(alert)).matchAll(/^#+ .*$/gm)].map(([heading]) => heading);
      const wanted = [`# ${alert.name}`, "## Meaning", "## Impact", "## How to see it", "## What to do"];
      assert.deepEqual(headings, wanted);
    }
  });

  it("the alerts each have a runbook that shows the commands by which the alert is seen", () => {
    for (const alert of ALERTS) {
      const [, seen = ""] = /^## How to see it\n\n```\n(.*?)\n```$/ms.exec(read(runbookOf(alert))) ?? [];
      assert.ok(seen !== "", alert.name);
      for (const line of seen.split("\n")) assert.match(line, /^(?:kubectl|ironfence) /, alert.name);
    }
  });

  it("the alerts are all listed in the page on monitoring, with severity and summary", () => {
    const page = read("docs/how-to/monitoring.md").replaceAll("\n  ", " ");
    const items = page.match(/^- \[Ironfence.*$/gm);
    const wanted = ALERTS.map((alert) => {
      const summary = alert.summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, "`$1`");
      const runbook = runbookOf(alert).replace("docs/how-to/", "");
      return `- [${alert.name}](${runbook}) (${alert.severity}): ${summary}.`;
    });
    assert.deepEqual(items, wanted);
  });

  it("the alerts link to their runbooks if the command of the page on monitoring puts an address before each path", () => {
    const [, script = ""] = /sed '([^']+)'/.exec(read("docs/how-to/monitoring.md")) ?? [];
    for (const file of ["rules.yaml", "prometheus-rule.yaml"]) {
      const { stdout, status } = spawnSync("sed", [script], {
        input: read(`deploy/monitoring/${file}`),
        encoding: "utf8",
        timeout: 10_000,
      });
      assert.equal(status, 0);
      const links = [...stdout.matchAll(/runbook_url: "?([^"\n]*)/g)].map(([, link]) => link);
      const wanted = ALERTS.map((alert) => `https://git.example/ironfence/blob/main/${runbookOf(alert)}`);
      assert.deepEqual(links, wanted, file);
    }
  });
});
