import { conditionOf as foreignConditionOf } from "../../../api/foreign.ts";
import { readMachineHealthCheckStatus } from "../../../api/machine-health-check.ts";
import type { NodeHealthCheck } from "../../../api/node-health-check.ts";
import { compileNodePolicy } from "../../../detector/nodes/decide/policy.ts";
import type { CountedAttempt } from "../../../detector/shared/model/attempts.ts";
import { attemptAllowedAtMs, countAttempts, readAttempts } from "../../../detector/shared/model/attempts.ts";
import { toTime } from "../../../runtime/time.ts";
import { itemsOf, shorten, uncoveredOf } from "../../status/problems.ts";
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
  const rest = withoutCheck.length === 0 ? "" : `; ${withoutCheck.length} nodes are in none: ${shorten(withoutCheck)}`;
  return orOk(findingsOf("health-checks", facts), `${checks.length} of ${checks.length}${rest}`);
}

function judgeMachineHealthChecks({ overview }: Facts): readonly Finding[] {
  const gaps = gapsIn(overview, ["machineHealthChecks"]);
  if (gaps.length > 0) return gaps;
  const checks = itemsOf(overview.machineHealthChecks);
  return orOk(
    checks.flatMap((raw): Finding[] => {
      const name = `${raw.metadata.namespace ?? ""}/${raw.metadata.name}`;
      if (overview.withoutCluster.includes(name)) {
        return [warning(`MachineHealthCheck ${name}: its Cluster is not there`, "correct spec.clusterName")];
      }
      const { conditions, v1beta1Conditions } = readMachineHealthCheckStatus(raw);
      const allowed = foreignConditionOf([...conditions, ...v1beta1Conditions], "RemediationAllowed");
      if (allowed?.status !== "False") return [];
      return [
        failed(
          `MachineHealthCheck ${name}: ${allowed.message || allowed.reason}`,
          `ironfence explain mhc ${name} shows each Machine`,
        ),
      ];
    }),
    `${checks.length} of ${checks.length}`,
  );
}

/** @param facts whose problems may already name the same template. */
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
  const remembered = attemptsByNode(checks);
  const spent = itemsOf(overview.nodes).flatMap(({ metadata }): Finding[] => {
    const { name, labels } = metadata;
    const attempts = countAttempts(remembered.get(name) ?? [], [], nowMs);
    if (attempts.length === 0) return [];
    return checks.flatMap((check): Finding[] => {
      const compiled = compileNodePolicy(check.spec, check.metadata.annotations);
      if ("problem" in compiled || !compiled.policy.selects(labels)) return [];
      const { max } = compiled.policy.attemptBudget;
      const allowedMs = attemptAllowedAtMs(compiled.policy.attemptBudget, attempts);
      if (allowedMs <= nowMs) return [];
      const message = `node ${name} was remediated ${max} times, so NodeHealthCheck ${check.metadata.name} does nothing for it until ${toTime(allowedMs)}`;
      return [failed(message, "find out why the node does not stay healthy")];
    });
  });
  return orOk(spent, "no budget is spent");
}

/** All attempts on record: those of one health check count for the others as well. */
function attemptsByNode(checks: readonly NodeHealthCheck[]): Map<string, CountedAttempt[]> {
  const byNode = new Map<string, CountedAttempt[]>();
  for (const check of checks) {
    for (const [name, attempts] of readAttempts(check)) byNode.set(name, [...(byNode.get(name) ?? []), ...attempts]);
  }
  return byNode;
}
