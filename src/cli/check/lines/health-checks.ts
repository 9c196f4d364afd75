import { compileNodePolicy } from "../../../detector/nodes/decide/policy.ts";
import { budgetJudge } from "../../status/could-fence/attempt-budget.ts";
import { machineCheckHold } from "../../status/could-fence/machine-health-checks.ts";
import { itemsOf, shorten } from "../../status/objects/object-problems.ts";
import { uncoveredOf } from "../../status/could-fence/could-fence.ts";
import type { Check, Finding } from "../check.ts";
import { cannotCheck, failed, orOk, warning } from "../check.ts";
import type { Facts, TemplateFact } from "../facts.ts";
import { isUnread } from "../facts.ts";
import { findingsOf, gapsIn } from "./problem-findings.ts";

/** Whether an unhealthy node would be found, and a remediation created for it. */
export const HEALTH_CHECKS: readonly Check<Facts>[] = [
  {
    id: "health-checks",
    category: "Health checks",
    title: "every NodeHealthCheck selects nodes, and nothing holds it",
    applies: servesNodes,
    run: judgeHealthChecks,
  },
  {
    id: "machine-health-checks",
    category: "Health checks",
    title: "every MachineHealthCheck may remediate",
    applies: ({ overview }) => overview.machineHealthChecks !== undefined,
    run: judgeMachineHealthChecks,
  },
  {
    id: "templates",
    category: "Health checks",
    title: "every remediation template that a health check names is there",
    applies: ({ overview }) => itemsOf(overview.healthChecks).length > 0,
    run: (facts) => [...findingsOf("templates", facts), ...judgeTemplates(facts.templates, facts)],
  },
  {
    id: "attempt-budgets",
    category: "Health checks",
    title: "no node has used up its attempt budget",
    applies: ({ overview }) => itemsOf(overview.healthChecks).length > 0,
    run: judgeBudgets,
  },
];

/** An agent of other families needs no NodeHealthCheck. */
function servesNodes({ overview: { agent } }: Facts): boolean {
  return !("families" in agent) || agent.families.length === 0 || agent.families.includes("node-health-check");
}

function judgeHealthChecks(facts: Facts): readonly Finding[] {
  const { overview } = facts;
  const gaps = gapsIn(overview, ["healthChecks", "nodes"]);
  if (gaps.length > 0) return gaps;
  const checks = itemsOf(overview.healthChecks);
  if (checks.length === 0 && itemsOf(overview.machineHealthChecks).length === 0) {
    const message = "there is no health check, so a node is fenced only by hand (ironfence fence)";
    return [warning(message, "create one, such as examples/node-health-check.yaml")];
  }
  const { withoutCheck } = uncoveredOf(overview);
  const rest =
    withoutCheck.length === 0
      ? ""
      : `; none of them selects these ${withoutCheck.length} nodes: ${shorten(withoutCheck)}`;
  return orOk(findingsOf("health-checks", facts), `${checks.length} of ${checks.length}${rest}`);
}

function judgeMachineHealthChecks({ overview }: Facts): readonly Finding[] {
  const gaps = gapsIn(overview, ["machineHealthChecks"]);
  if (gaps.length > 0) return gaps;
  const checks = itemsOf(overview.machineHealthChecks);
  return orOk(
    checks.flatMap((raw): Finding[] => {
      const name = `${raw.metadata.namespace ?? ""}/${raw.metadata.name}`;
      const hold = machineCheckHold(raw, overview.withoutCluster);
      if (hold === undefined) return [];
      const message = `MachineHealthCheck ${name}: ${hold.message}`;
      // Without its Cluster, the health check covers no node.
      if (hold.reason === "ClusterNotFound") return [warning(message)];
      return [failed(message, `ironfence explain mhc ${name} shows each Machine`)];
    }),
    `${checks.length} of ${checks.length}`,
  );
}

/** @param facts the problems in them may already name the same template. */
function judgeTemplates(templates: readonly TemplateFact[], facts: Facts): readonly Finding[] {
  const isNamed = findingsOf("templates", facts).length > 0;
  const findings = templates.flatMap(({ text, healthChecks, problem }): Finding[] => {
    if (problem === undefined) return [];
    if (isUnread(problem)) return [cannotCheck(problem.unread)];
    const hint = "create the template, or correct the reference in the health check";
    return [failed(`${text} of NodeHealthCheck ${shorten(healthChecks)}: ${problem}`, hint)];
  });
  return isNamed ? findings : orOk(findings, `${templates.length} of ${templates.length}`);
}

function judgeBudgets({ overview, nowMs }: Facts): readonly Finding[] {
  const gaps = gapsIn(overview, ["healthChecks", "nodes"]);
  if (gaps.length > 0) return gaps;
  const checks = itemsOf(overview.healthChecks);
  const budgetOf = budgetJudge(checks, nowMs);
  const spent = itemsOf(overview.nodes).flatMap(({ metadata: { name, labels } }): Finding[] =>
    checks.flatMap((check): Finding[] => {
      const compiled = compileNodePolicy(check.spec, check.metadata.annotations);
      if ("problem" in compiled || !compiled.policy.selects(labels)) return [];
      const found = budgetOf(name, compiled.policy.attemptBudget);
      return found === undefined
        ? []
        : [failed(`node ${name}, NodeHealthCheck ${check.metadata.name}: ${found.message}`)];
    }),
  );
  return orOk(spent, "no budget is used up");
}
