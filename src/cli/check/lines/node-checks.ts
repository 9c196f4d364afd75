import type { ReadinessGroup } from "../../status/could-fence/could-fence.ts";
import { groupsOf, judgeNodes } from "../../status/could-fence/could-fence.ts";
import { shorten } from "../../status/objects/object-problems.ts";
import type { Check, Finding } from "../check.ts";
import { failed, orOk } from "../check.ts";
import type { Facts } from "../facts.ts";
import { pageOfTarget } from "./problem-findings.ts";

/** The answer for each node, as the dashboard, `status` and `explain` show it. The other checks show the reasons. */
export const NODE_CHECKS: readonly Check<Facts>[] = [
  { id: "could-fence", category: "Nodes", title: "every node could be fenced now", run: judgeAll },
];

function judgeAll({ overview }: Facts): readonly Finding[] {
  const { nodes, unread } = judgeNodes(overview);
  if (unread !== undefined) return [failed(`cannot be judged: ${unread}`)];
  const yes = nodes.filter(({ answer }) => answer === "yes");
  const byHand = yes.filter(({ reason }) => reason === "NoHealthCheck").length;
  const hand = byHand === 0 ? "" : `, ${byHand} of them by hand only`;
  return orOk(groupsOf(nodes).map(findingOf), `${yes.length} of ${nodes.length}${hand}`);
}

/** A node for which the answer is not known fails the check. */
function findingOf({ answer, reason, message, step, isIntended, nodes }: ReadinessGroup): Finding {
  const page = step === "target" ? pageOfTarget(reason) : undefined;
  return {
    level: answer === "no" && isIntended ? "warning" : "failed",
    message: `${answer}: ${reason} (${nodes.length}): ${shorten(nodes)}: ${message}`,
    hint: `ironfence explain node ${nodes[0] ?? ""} shows each precondition`,
    ...(page !== undefined && { page }),
  };
}
