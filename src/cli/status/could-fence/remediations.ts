import { NODE_NAME } from "../../../api/names/annotations.ts";
import { causeText } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import { itemsOf, remediationProblems, reportedCondition } from "../objects/object-problems.ts";
import type { Overview } from "../objects/read.ts";
import type { Precondition } from "./precondition.ts";
import { blocks, ok, unknown } from "./precondition.ts";

/** Reasons of a remediation that waits for its admission. */
const ADMISSION_WAITS: ReadonlySet<string> = new Set([
  "WaitingForTurn",
  "ReplacementTurn",
  "ControlPlaneQuorum",
  "HostBusy",
  "OwnNode",
]);
/** Reasons of waits for admission that end by themselves. */
const SELF_ENDING: ReadonlySet<string> = new Set(["WaitingForTurn", "ReplacementTurn", "HostBusy", "OwnNode"]);

/** Finds, for a node of the agent's own cluster, the remediation that counts. */
export function remediationFinder({ remediations }: Overview): (nodeName: string) => BareMetalRemediation | undefined {
  const byNode = Map.groupBy(
    itemsOf(remediations).filter(({ status }) => status?.node?.cluster === undefined),
    nodeOf,
  );
  return (nodeName) => currentOf(byNode.get(nodeName) ?? []);
}

/** A node may have several, for example after an escalation: takes one without a verdict, or else the newest. */
function currentOf(candidates: readonly BareMetalRemediation[]): BareMetalRemediation | undefined {
  const made = ({ metadata }: BareMetalRemediation): number => parseTimeMs(metadata.creationTimestamp) ?? 0;
  const [current] = candidates.toSorted(
    (one, other) => Number(hasVerdict(one)) - Number(hasVerdict(other)) || made(other) - made(one),
  );
  return current;
}

function hasVerdict({ status }: BareMetalRemediation): boolean {
  const succeeded = conditionOf(status?.conditions, "Succeeded");
  return succeeded !== undefined && succeeded.status !== "Unknown";
}

function nodeOf({ metadata, status }: BareMetalRemediation): string {
  return status?.node?.name ?? metadata.annotations?.[NODE_NAME] ?? metadata.name;
}

/** Whether a remediation of the node has failed, or waits for something other than admission. */
export function judgeRemediation(
  { remediations }: Overview,
  remediation: BareMetalRemediation | undefined,
): Precondition {
  const step = "remediation";
  if (remediations !== undefined && !Array.isArray(remediations)) {
    return unknown(step, "RemediationsUnread", remediations.problem);
  }
  if (remediation === undefined) return ok(step, "there is none");
  const { namespace = "", name } = remediation.metadata;
  const condition = reportedCondition(remediation);
  const words = condition === undefined ? "no agent has begun it yet" : `${condition.reason}: ${condition.message}`;
  const { phase = "new", evidence } = remediation.status ?? {};
  const cause = evidence === undefined ? "" : `; cause of death: ${causeText(evidence)}`;
  const found = `BareMetalRemediation ${namespace}/${name}: ${phase}: ${words}${cause}`;
  if (condition === undefined) return blocks(step, "New", words, { found, isIntended: true });
  const [problem] = remediationProblems(remediation);
  if (problem === undefined || ADMISSION_WAITS.has(problem.reason)) return ok(step, found);
  return blocks(step, problem.reason, problem.message, { found });
}

/** What a remediation of the node waits for, if that is admission. */
export function judgeWaiting(remediation: BareMetalRemediation | undefined): Precondition | undefined {
  const condition = remediation === undefined ? undefined : reportedCondition(remediation);
  if (condition === undefined || !ADMISSION_WAITS.has(condition.reason)) return undefined;
  const { reason, message } = condition;
  return blocks("admission", reason, message, { found: `${reason}: ${message}`, isIntended: SELF_ENDING.has(reason) });
}
