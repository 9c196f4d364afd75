import type { NodeHealthCheckStatus } from "../../../api/ironfence/node-health-check.ts";
import type { Decider } from "../../shared/model/decider.ts";
import { listFields, listOf, wholeDecider } from "../../shared/model/decider.ts";
import { withoutForeignSpec } from "../../shared/model/template.ts";
import { decideNodeCheck, decideInvalid } from "./decide.ts";
import type { NodeCheckDecision, NodeCheckSnapshot } from "./decision.ts";

/** The input of the decision about a health check with an invalid spec. */
export interface InvalidNodeCheck {
  status: NodeHealthCheckStatus;
  generation: number | undefined;
  /** What is wrong with the spec. Text for the operator. */
  problem: string;
}

export const NODE_CHECK: Decider<NodeCheckSnapshot, NodeCheckDecision> = {
  name: "node-health-check",
  decide: decideNodeCheck,
  fieldsOf: (snapshot) => {
    const { nodes, templates } = snapshot;
    const recorded = "reason" in templates ? templates : templates.map(withoutForeignSpec);
    return { ...snapshot, templates: recorded, ...listFields("nodes", nodes, ({ name }) => name) };
  },
  inputOf: (fields) => ({ ...fields, nodes: listOf("nodes", fields) }) as object as NodeCheckSnapshot,
  recorded: (decision) => ({
    ...decision,
    actions: decision.actions.map((action) =>
      action.type === "create" ? { ...action, template: withoutForeignSpec(action.template) } : action,
    ),
  }),
};

export const INVALID_NODE_CHECK: Decider<InvalidNodeCheck, NodeCheckDecision> = wholeDecider(
  "node-health-check/invalid",
  ({ status, problem, generation }, nowMs) => decideInvalid(status, problem, nowMs, generation),
);
