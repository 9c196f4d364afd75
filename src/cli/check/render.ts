import { withoutControls } from "../../runtime/text/printable.ts";
import { toTime } from "../../runtime/time.ts";
import type { CheckResult, Finding, Level } from "./check.ts";
import { CATEGORIES } from "./check.ts";

/** The result of one run. */
export interface CheckReport {
  /** The time of the run, by the clock of this machine. */
  nowMs: number;
  mode: "installation" | "pre";
  results: readonly CheckResult[];
}

const MARKS: Readonly<Record<Level, string>> = { ok: "√", warning: "‼", failed: "×" };
const COLORS: Readonly<Record<Level, string>> = { ok: "\u001b[32m", warning: "\u001b[33m", failed: "\u001b[31m" };
const COLOR_END = "\u001b[0m";

/** Where the section of a check is, in the documentation of this version. */
export function checkPage(id: string): string {
  return `docs/reference/checks.md#${id}`;
}

/** How many checks have each level. */
export function countLevels(results: readonly CheckResult[]): Readonly<Record<Level, number>> {
  const count = (level: Level): number => results.filter((result) => result.level === level).length;
  return { ok: count("ok"), warning: count("warning"), failed: count("failed") };
}

/** Renders the report as text. Text from the cluster cannot move the cursor, and only our own marks are colored. */
export function renderText({ results }: CheckReport, hasColors: boolean): string[] {
  const mark = (level: Level): string => (hasColors ? `${COLORS[level]}${MARKS[level]}${COLOR_END}` : MARKS[level]);
  const lines = CATEGORIES.flatMap((category) => {
    const found = results.filter((result) => result.category === category);
    return found.length === 0 ? [] : [category, ...found.flatMap((result) => linesOf(result, mark)), ""];
  });
  const { ok, warning, failed } = countLevels(results);
  const worst = failed > 0 ? "failed" : warning > 0 ? "warning" : "ok";
  return [...lines, `${mark(worst)} ${ok} passed, ${warning} with warnings, ${failed} failed`];
}

function linesOf({ id, title, level, findings }: CheckResult, mark: (level: Level) => string): string[] {
  const [first] = findings;
  if (level === "ok") return [`${mark("ok")} ${title}: ${withoutControls(first?.message ?? "")}`];
  return [
    `${mark(level)} ${title}`,
    ...findings.flatMap((finding) => [
      `    ${mark(finding.level)} ${withoutControls(finding.message)}`,
      ...(finding.hint === undefined ? [] : [`      ${withoutControls(finding.hint)}`]),
      ...(finding.page === undefined ? [] : [`      see ${withoutControls(finding.page)}`]),
    ]),
    `    see ${checkPage(id)}`,
  ];
}

/** Renders the report as one JSON object. */
export function renderJson({ nowMs, mode, results }: CheckReport): string {
  const counts = countLevels(results);
  const checks = results.map((result) => ({ ...result, page: checkPage(result.id) }));
  return JSON.stringify({ time: toTime(nowMs), mode, ok: counts.failed === 0, counts, checks });
}

/**
 * Renders the report as JUnit XML for CI systems: each check is a test case. @param failsOn levels that count as
 * failures.
 */
export function renderJunit({ nowMs, results }: CheckReport, failsOn: ReadonlySet<Level>): string {
  const failures = (of: readonly CheckResult[]): number => of.filter(({ level }) => failsOn.has(level)).length;
  const suites = CATEGORIES.flatMap((category) => {
    const found = results.filter((result) => result.category === category);
    if (found.length === 0) return [];
    const head = `<testsuite name="${category}" tests="${found.length}" failures="${failures(found)}" timestamp="${toTime(nowMs)}">`;
    return [`  ${head}`, ...found.flatMap((result) => caseOf(result, failsOn)), "  </testsuite>"];
  });
  const head = `<testsuites name="ironfence check" tests="${results.length}" failures="${failures(results)}">`;
  return ['<?xml version="1.0" encoding="UTF-8"?>', head, ...suites, "</testsuites>"].join("\n");
}

function caseOf({ id, title, level, findings }: CheckResult, failsOn: ReadonlySet<Level>): string[] {
  const name = `name="${escapeXml(`${id}: ${title}`)}" classname="ironfence.check"`;
  const text = escapeXml([...findings.map(textOf), ...(level === "ok" ? [] : [`see ${checkPage(id)}`])].join("\n"));
  const inner = failsOn.has(level)
    ? `<failure type="${level}" message="${escapeXml(findings.find((finding) => finding.level === level)?.message ?? "")}">${text}</failure>`
    : `<system-out>${text}</system-out>`;
  return [`    <testcase ${name}>`, `      ${inner}`, "    </testcase>"];
}

function textOf({ level, message, hint, page }: Finding): string {
  const rest = [hint, page === undefined ? undefined : `see ${page}`].filter((line) => line !== undefined);
  return [`${MARKS[level]} ${message}`, ...rest].join("\n  ");
}

/** XML 1.0 has no way to write most control characters. */
function escapeXml(text: string): string {
  const plain = text
    .split("\n")
    .map((line) => withoutControls(line).replaceAll(/[\ud800-\udfff\ufffe\uffff]/gu, "?"))
    .join("\n");
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
