// A check judges facts that were read before it runs, and never reads the cluster itself, so it can be tested without
// one.

/**
 * `warning`: fencing works, or an administrator holds it. An administrator should look at the finding. `failed`: at
 * least one node would not be fenced now, and no exemption covers it.
 */
export type Level = "ok" | "warning" | "failed";

/** One thing that a check found. */
export interface Finding {
  level: Level;
  /** What was found, as a sentence without its full stop. */
  message: string;
  /** What to do about it; absent if the message says so. */
  hint?: string;
  /**
   * The entry in the documentation that explains the reason of an object; absent if the page of the check says it all.
   */
  page?: string;
}

/** The headings of a report, in the order of the report. */
export const CATEGORIES = [
  "Kubernetes API",
  "Installation",
  "BMC network",
  "Holds",
  "Fencing targets",
  "Health checks",
  "Remediations",
  "Nodes",
] as const;
export type Category = (typeof CATEGORIES)[number];

/** One check over facts of type F. */
export interface Check<F> {
  /** The anchor of its section in docs/reference/checks.md. It never changes, since scripts and alerts name it. */
  id: string;
  category: Category;
  /** What holds if the check passes. */
  title: string;
  /** Whether the check applies to this cluster; if absent, it always applies. */
  applies?: (facts: F) => boolean;
  /** @returns at least one finding, and at most one of level `ok`. */
  run: (facts: F) => readonly Finding[];
}

/** The result of one check. */
export interface CheckResult {
  id: string;
  category: Category;
  title: string;
  /** The worst level of its findings. */
  level: Level;
  findings: readonly Finding[];
}

const SEVERITY: Readonly<Record<Level, number>> = { ok: 0, warning: 1, failed: 2 };

/** Runs every check that applies, in the order of the categories. Pure. */
export function runChecks<F>(checks: readonly Check<F>[], facts: F): CheckResult[] {
  return CATEGORIES.flatMap((category) =>
    checks
      .filter((check) => check.category === category && (check.applies?.(facts) ?? true))
      .map((check) => resultOf(check, check.run(facts))),
  );
}

export function resultOf(
  { id, category, title }: Pick<Check<never>, "id" | "category" | "title">,
  findings: readonly Finding[],
): CheckResult {
  if (findings.length === 0) throw new Error(`check ${id} returned no finding`);
  const level = findings.reduce<Level>((worst, { level }) => (SEVERITY[level] > SEVERITY[worst] ? level : worst), "ok");
  return { id, category, title, level, findings };
}

export function passed(message: string): Finding {
  return { level: "ok", message };
}

export function warning(message: string, hint?: string): Finding {
  return { level: "warning", message, ...(hint !== undefined && { hint }) };
}

export function failed(message: string, hint?: string): Finding {
  return { level: "failed", message, ...(hint !== undefined && { hint }) };
}

/** A check never passes if it cannot read its facts. @param why names the permission that is missing. */
export function cannotCheck(why: string): Finding {
  return { level: "warning", message: `cannot be checked: ${why}` };
}

/** The findings, or one of level `ok` if there are none. */
export function orOk(findings: readonly Finding[], message: string): readonly Finding[] {
  return findings.length === 0 ? [passed(message)] : findings;
}
