import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Check } from "../../../src/cli/check/check.ts";
import { CATEGORIES, runChecks } from "../../../src/cli/check/check.ts";
import { CHECKS } from "../../../src/cli/check/lines/checks.ts";
import { PRE_CHECKS } from "../../../src/cli/check/lines/pre-checks.ts";
import { checkOf, NOT_PROBED } from "../../../src/cli/check/lines/problem-findings.ts";
import { NODE_HEALTH_CHECK_METRICS } from "../../../src/detector/nodes/effects/metrics.ts";
import { REASONS } from "../../../src/remediator/machine/model/decision/reasons.ts";
import { checkPage } from "../../../src/cli/check/render.ts";
import { target, withOverview } from "../cli/check/facts-fixture.ts";

// The checks of `ironfence check`, the sections of docs/reference/checks.md and the reasons of objects must match.

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const PAGE = "docs/reference/checks.md";

const ALL: readonly Pick<Check<never>, "id" | "category">[] = [...CHECKS, ...PRE_CHECKS];
const IDS = new Set(ALL.map(({ id }) => id));

/** The sections of the page, with category and id of the check. */
function sections(): { category: string; id: string; text: string }[] {
  return read(PAGE)
    .split(/^## /m)
    .slice(1)
    .flatMap((part) => {
      const [category = ""] = part.split("\n");
      return part
        .split(/^### /m)
        .slice(1)
        .map((section) => ({ category, id: section.split("\n")[0] ?? "", text: section }));
    });
}

/** Reasons of FencingTargets that have an entry. */
function reasonsOfTargets(): string[] {
  return [...read("docs/reference/target-reasons.md").matchAll(/^### (\w+)$/gm)].map(([, reason = ""]) => reason);
}

/** The functions of a source file. */
function functionsOf(path: string): string[] {
  return read(path).split(/^(?:export )?(?:async )?(?:function|const) /m);
}

/** The reasons of objects in the source of `ironfence status`, with the check that prints them. */
function reasonsOfStatus(): [id: string, reason: string][] {
  const sources = ["src/cli/status/objects/object-problems.ts", "src/cli/status/problems.ts"];
  return sources.flatMap(functionsOf).flatMap((text) => {
    const kinds = [...text.matchAll(/kind(?:: | = )"(\w+)"/g)].map(([, kind = ""]) => kind);
    const reasons = [...text.matchAll(/reason: "(\w+)"/g)].map(([, reason = ""]) => reason);
    // Each check itself reports what it cannot read. Functions without a kind concern health checks.
    return reasons
      .filter((reason) => reason !== "Forbidden")
      .map((reason): [string, string] => [checkOf({ kind: kinds[0] ?? "NodeHealthCheck", reason }) ?? "none", reason]);
  });
}

/** The reasons in the source of the answer to "could this node be fenced?". */
function reasonsOfAnswer(): string[] {
  const folder = "src/cli/status/could-fence";
  return readdirSync(join(ROOT, folder)).flatMap((file) =>
    // Names in lower case are steps, not reasons.
    [
      ...read(`${folder}/${file}`).matchAll(
        /(?:reason: |(?:blocks|unknown)\(\s*(?:step,|"[a-z ]+",)?\s*)"([A-Z]\w+)"/g,
      ),
    ].map(([, reason = ""]) => reason),
  );
}

/** Reasons for which a health check is disabled. */
const DISABLED = /^(?:RemediationTemplate|SpecInvalid|Conflicting)/;
/** Reasons with which a target is usable. */
const USABLE = new Set(["Usable", "Answering", "Matched", "VerificationDisabled"]);

describe("the page of the checks", () => {
  it("the page of the checks has one section for each check, under its category, and no other", () => {
    const found = sections().map(({ category, id }) => `${category}: ${id}`);
    const wanted = new Set(ALL.map(({ category, id }) => `${category}: ${id}`));
    assert.deepEqual([...found].sort(), [...wanted].sort());
    assert.deepEqual([...new Set(sections().map(({ category }) => category))], [...CATEGORIES]);
  });

  it("the page of the checks says in each section what the check means, what causes it, and how to fix it", () => {
    for (const { id, text } of sections()) {
      for (const word of ["Meaning", "Cause", "Fix"])
        assert.match(text, new RegExp(`^- \\*\\*${word}\\*\\*: `, "m"), id);
    }
  });

  it("the page of the checks is where the command sends its reader", () => {
    for (const id of IDS) assert.equal(checkPage(id), `${PAGE}#${id}`);
  });
});

describe("the reasons of objects", () => {
  it("the reasons of objects each appear in a line of the checks if a target is not Ready because of them", () => {
    const reasons = reasonsOfTargets().filter((reason) => !USABLE.has(reason));
    assert.ok(reasons.length > 30, String(reasons.length));
    for (const reason of reasons) {
      const broken = target("n1", { status: "False", reason }, { maintenance: reason === "Maintenance" });
      const results = runChecks(CHECKS, withOverview({ targets: [broken, target("n2"), target("n3")] }));
      const complaining = results.filter(({ level }) => level !== "ok");
      // An administrator wants a maintenance, so it is only a warning.
      const [level, id] = reason === "Maintenance" ? ["warning", "maintenance"] : ["failed", "fencing-targets"];
      assert.deepEqual(
        complaining.map((result) => `${result.level} ${result.id}`),
        [`${level} ${id}`, `${level} could-fence`],
        reason,
      );
      const [finding] = complaining[0]?.findings ?? [];
      if (reason === "Maintenance") continue;
      assert.match(finding?.message ?? "", new RegExp(`^${reason}: `));
      assert.equal(finding?.page, `docs/reference/target-reasons.md#${reason.toLowerCase()}`);
    }
  });

  it("the reasons of objects that status reports, and their kinds, each lead to a check", () => {
    const source = ["objects/object-problems", "problems"].map((name) => read(`src/cli/status/${name}.ts`)).join("\n");
    const kinds = new Set(
      [...source.matchAll(/kind: "(\w+)"|const kind = "(\w+)"/g)].map(([, one, other]) => one ?? other),
    );
    // Each check itself reports what it cannot read.
    kinds.delete("Status");
    const reasons = [...source.matchAll(/reason: "(\w+)"/g)].map(([, reason = ""]) => reason);
    assert.ok(kinds.size >= 7 && reasons.length >= 12, [...kinds].join(" "));
    for (const kind of kinds) {
      const leads = reasons.some((reason) => IDS.has(checkOf({ kind: kind ?? "", reason }) ?? ""));
      assert.ok(leads, kind ?? "");
    }
    for (const reason of reasons) {
      const leads = [...kinds].some((kind) => IDS.has(checkOf({ kind: kind ?? "", reason }) ?? ""));
      assert.ok(leads || reason === "Forbidden", reason);
    }
  });

  it("the reasons of objects each are named in the section of the check that prints them", () => {
    const textOf = new Map(sections().map(({ id, text }) => [id, text]));
    const refusals = [
      ...read("src/remediator/hosts/bare-metal-host/store/power-path.ts").matchAll(/new HostRefusal\("(\w+)"/g),
    ];
    assert.ok(refusals.length >= 5);
    const disabled = NODE_HEALTH_CHECK_METRICS.flatMap(({ labels }) => labels["reason"] ?? []);
    const printed: [id: string, reason: string][] = [
      ...reasonsOfStatus(),
      ...refusals.map(([, reason = ""]): [string, string] => ["bare-metal-hosts", reason]),
      ...disabled.flatMap((reason): [string, string][] =>
        DISABLED.test(reason) ? [[checkOf({ kind: "NodeHealthCheck", reason }) ?? "none", reason]] : [],
      ),
      ["fencing-targets", NOT_PROBED],
    ];
    assert.ok(printed.length > 20, JSON.stringify(printed));
    const missing = printed.filter(([id, reason]) => textOf.get(id)?.includes(`\`${reason}\``) !== true);
    assert.deepEqual(missing, []);
  });

  it("the reasons of an answer each are named in a section of the checks, or on the page of reasons", () => {
    const page = read(PAGE);
    const entries = ["reasons", "target-reasons"].map((name) => read(`docs/reference/${name}.md`)).join("\n");
    const named = (reason: string): boolean => page.includes(`\`${reason}\``) || entries.includes(`\n### ${reason}\n`);
    const reasons = new Set(reasonsOfAnswer());
    assert.ok(reasons.size > 15, [...reasons].join(" "));
    assert.deepEqual(
      [...reasons].filter((reason) => !named(reason)),
      [],
    );
  });

  it("the reasons of a remediation that a check prints each have an entry, to which its line leads", () => {
    const entries = read("docs/reference/reasons.md");
    for (const reason of REASONS) assert.match(entries, new RegExp(`^### ${reason}$`, "m"));
  });
});
