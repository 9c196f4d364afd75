import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { Decider } from "../../shared/model/decider.ts";
import { listFields, listOf, wholeDecider } from "../../shared/model/decider.ts";
import { withoutForeignSpec } from "../../shared/model/template.ts";
import { decideMachineCheck, decideUnusable } from "./decide.ts";
import type { MachineCheckDecision, MachineCheckSnapshot } from "./decision.ts";
import type { MachineHealthCheckKind } from "./kind.ts";

/** The input of the decision about a health check with an invalid spec. */
export interface InvalidMachineCheck {
  check: MachineHealthCheck;
  /** What is wrong with the spec. Text for the operator. */
  problem: string;
}

export function machineCheckDecider(kind: MachineHealthCheckKind): Decider<MachineCheckSnapshot, MachineCheckDecision> {
  return {
    name: kind.name,
    decide: (snapshot, nowMs) => decideMachineCheck(kind, snapshot, nowMs),
    fieldsOf: (snapshot) => {
      const { machines, template } = snapshot;
      const recorded = template === undefined || "reason" in template ? template : withoutForeignSpec(template);
      return {
        ...snapshot,
        template: recorded,
        ...listFields("machines", machines, ({ machine }) => machine.metadata.name),
      };
    },
    inputOf: (fields) => ({ ...fields, machines: listOf("machines", fields) }) as object as MachineCheckSnapshot,
    recorded: (decision) => ({
      ...decision,
      actions: decision.actions.map((action) =>
        action.type === "request" ? { ...action, template: withoutForeignSpec(action.template) } : action,
      ),
    }),
  };
}

export function invalidMachineCheckDecider({
  name,
}: MachineHealthCheckKind): Decider<InvalidMachineCheck, MachineCheckDecision> {
  return wholeDecider(`${name}/invalid`, ({ check, problem }) => decideUnusable(check, problem));
}
