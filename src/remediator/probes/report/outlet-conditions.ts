import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { enrolmentProblem, judgeOutlets, outletsOf } from "../../hosts/model/enrolment.ts";
import type { TargetCondition, TargetStatusFacts } from "./status-facts.ts";

// What the status of a FencingTarget reports about its outlets of PDUs. Pure.

/** The type of the condition. Only targets with outlets have it. */
export const OUTLETS_ENROLLED = "OutletsEnrolled";

/** The condition `OutletsEnrolled`: whether the outlets count as those of the host. Undefined without outlets. */
export function enrolmentOf(
  target: FencingTarget,
  { probe, nodeSystemUUID }: Pick<TargetStatusFacts, "probe" | "nodeSystemUUID">,
): TargetCondition | undefined {
  const outlets = outletsOf(target);
  if (outlets.length === 0) return undefined;
  const problem = enrolmentProblem(target, nodeSystemUUID);
  if (problem !== undefined) return { status: "False", reason: problem.reason, message: problem.message };
  const answers = (probe?.result.devices ?? []).flatMap((device) =>
    device.ok && device.outlet !== undefined ? [{ ...device.outlet, address: device.address }] : [],
  );
  if (answers.length < outlets.length) {
    const message = "not every PDU has answered, so the enrolment of the outlets cannot be compared";
    return { status: "Unknown", reason: "NoAnswer", message };
  }
  const check = judgeOutlets(target, nodeSystemUUID, answers);
  return check.verified
    ? { status: "True", reason: "Enrolled", message: check.message }
    : { status: "False", reason: "EnrolmentEnded", message: check.message };
}
