import { reasonPage, REASONS } from "../../../remediator/machine/model/decision/reasons.ts";
import type { Problem } from "../../status/objects/object-problems.ts";
import { problemsOf } from "../../status/problems.ts";
import { shorten } from "../../status/objects/object-problems.ts";
import type { Overview } from "../../status/objects/read.ts";
import type { Finding } from "../check.ts";
import { cannotCheck } from "../check.ts";
import type { Facts } from "../facts.ts";

// `ironfence status` and `ironfence check` report the same problems: `status` by object, and `check` under the check
// that each of them fails.

/** The check that reports a problem, by kind and reason, or by kind alone. */
const CHECK_OF: ReadonlyMap<string, string> = new Map([
  ["Cluster", "custom-resources"],
  ["Agent StandsBy", "one-installation"],
  ["Agent NoAgent", "leader"],
  ["Agent Observes", "leader"],
  ["Agent NotReady", "agent-ready"],
  ["StopSwitch", "pause"],
  ["FencingTarget Maintenance", "maintenance"],
  ["FencingTarget WrongNamespace", "target-namespaces"],
  ["FencingTarget", "fencing-targets"],
  ["Node NoTarget", "nodes-covered"],
  ["Node AttemptBudgetSpent", "attempt-budgets"],
  ["Node", "could-fence"],
  ["NodeHealthCheck RemediationTemplateNotFound", "templates"],
  ["NodeHealthCheck RemediationTemplateInvalid", "templates"],
  ["NodeHealthCheck", "health-checks"],
  ["BareMetalRemediation", "remediations"],
]);

/**
 * The id of the check that reports a problem; undefined for sections that cannot be read, which each check reports
 * itself.
 */
export function checkOf({ kind, reason }: Pick<Problem, "kind" | "reason">): string | undefined {
  return CHECK_OF.get(`${kind} ${reason}`) ?? CHECK_OF.get(kind);
}

/** The problems that one check reports. Pure. */
export function problemsUnder(id: string, { overview }: Pick<Facts, "overview">): Problem[] {
  return problemsOf(overview).filter((problem) => checkOf(problem) === id);
}

/** The problems that one check reports, as findings, grouped by reason. */
export function findingsOf(id: string, facts: Pick<Facts, "overview">): Finding[] {
  return groupByReason(problemsUnder(id, facts));
}

/** Reasons that an administrator has asked for. A check after an upgrade must not fail because of them. */
const HELD_ON_PURPOSE: ReadonlySet<string> = new Set(["PauseRequested"]);

/** One finding for each reason: a rack whose switch is down is one line. */
export function groupByReason(problems: readonly Problem[]): Finding[] {
  return [...Map.groupBy(problems, ({ severity, reason }) => `${severity} ${reason}`).values()].map((same) => {
    const [first] = same;
    const level = first?.severity === "error" && !HELD_ON_PURPOSE.has(first.reason) ? "failed" : "warning";
    const names = same.flatMap(({ name }) => name ?? []);
    const whose = names.length === 0 ? "" : `${shorten(names)}: `;
    const count = same.length === 1 ? "" : ` (${same.length})`;
    const page = first === undefined ? undefined : pageOfReason(first);
    const message = `${first?.reason ?? ""}${count}: ${whose}${first?.message ?? ""}`;
    return { level, message, ...(page !== undefined && { page }) };
  });
}

/** The page of documentation that explains the reason of an object; undefined if there is none. */
function pageOfReason({ kind, reason }: Problem): string | undefined {
  if (kind === "BareMetalRemediation") return pageOfRemediation(reason);
  return kind === "FencingTarget" ? pageOfTarget(reason) : undefined;
}

/**
 * The entry for a reason of a FencingTarget. Undefined for reasons that no probe writes: the page of the check explains
 * them.
 */
export function pageOfTarget(reason: string): string | undefined {
  return WITHOUT_PAGE.has(reason) ? undefined : `docs/reference/target-reasons.md#${reason.toLowerCase()}`;
}

function pageOfRemediation(text: string): string | undefined {
  const reason = REASONS.find((known) => known === text);
  return reason === undefined ? undefined : reasonPage(reason);
}

/** The reason of a target whose status has no condition yet. */
export const NOT_PROBED = "NotProbed";
/** Reasons that are never in the status of a target. */
const WITHOUT_PAGE: ReadonlySet<string> = new Set([NOT_PROBED, "ProbeOld", "NoTarget", "TargetsUnread", "HostsUnread"]);

type Section = "nodes" | "healthChecks" | "machineHealthChecks" | "bareMetalHosts" | "remediations" | "targets";

/** Why a check has no result: sections that cannot be read, and kinds that are not served. */
export function gapsIn(overview: Overview, sections: readonly Section[]): Finding[] {
  return sections.flatMap((name) => {
    const section = overview[name];
    if (section === undefined) return [cannotCheck(`the cluster does not serve ${KINDS[name]}`)];
    return Array.isArray(section) ? [] : [cannotCheck(section.problem)];
  });
}

const KINDS: Readonly<Record<Section, string>> = {
  nodes: "Node",
  healthChecks: "NodeHealthCheck",
  machineHealthChecks: "MachineHealthCheck",
  bareMetalHosts: "BareMetalHost",
  remediations: "BareMetalRemediation",
  targets: "FencingTarget",
};
