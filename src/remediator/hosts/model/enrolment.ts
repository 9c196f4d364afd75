import { createHash } from "node:crypto";
import type { Device, Enrolment, FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { IdentityCheck } from "../../../bmc/identity/identity-check.ts";
import type { OutletAnswer } from "../../../bmc/topology/outlets.ts";
import { isOutletAddress } from "../../../bmc/interface/address.ts";
import { clusterKey } from "../../../nodes/subject.ts";
import { expectedIdentity, meaningfulUuid, sameUuid } from "./identity.ts";

// Whether the outlets of a target are those that were shown to feed its host. Pure. An outlet has no identity: what
// `ironfence enroll` has shown holds only as long as nothing of it is edited (docs/decisions/0066-outlet-enrolment.md).

/** Why the outlets of a target are not used. */
export interface EnrolmentProblem {
  reason: "NotEnrolled" | "EnrolmentEnded" | "OutletsMisplaced";
  /** What is wrong or differs, with the next step. */
  message: string;
}

/** The outlets of a target, in the order of its spec. */
export function outletsOf(target: FencingTarget): Device[] {
  return target.spec.devices.filter(({ address }) => isOutletAddress(address));
}

/** The enrolled outlets that the spec of a target still names, even if the enrolment has ended. */
export function enrolledOutlets({ spec, status }: FencingTarget): Enrolment["outlets"] {
  const outlets = status?.enrolment?.outlets ?? [];
  return outlets.filter(({ address }) => spec.devices.some((device) => device.address === address));
}

/**
 * Why the outlets of a target do not count as those of its host; undefined if they do. It needs no answer of a PDU.
 *
 * @param nodeSystemUUID what the node of the target reports; undefined if it does not exist, or is not known.
 */
export function enrolmentProblem(
  target: FencingTarget,
  nodeSystemUUID: string | undefined,
): EnrolmentProblem | undefined {
  const misplaced = whyMisplaced(target);
  if (misplaced !== undefined) return { reason: "OutletsMisplaced", message: misplaced };
  const { enrolment } = target.status ?? {};
  if (enrolment === undefined) {
    const message = `the outlets are not enrolled, so nothing shows which host they feed: ${nextStep(target)}`;
    return { reason: "NotEnrolled", message };
  }
  const why = whyEnded(target, enrolment, nodeSystemUUID);
  return why === undefined ? undefined : { reason: "EnrolmentEnded", message: endedText(target, enrolment, why) };
}

/** The judge of the outlets of a target: each must be the one that was enrolled, and nothing else may differ. */
export function judgeOutlets(
  target: FencingTarget,
  nodeSystemUUID: string | undefined,
  answers: readonly OutletAnswer[],
): IdentityCheck {
  const { enrolment } = target.status ?? {};
  const problem = enrolmentProblem(target, nodeSystemUUID);
  const differs = enrolment === undefined ? undefined : whyOther(enrolment, answers);
  const unmetered = enrolment === undefined ? undefined : whyUnmetered(enrolment, answers);
  if (problem === undefined && enrolment !== undefined && differs === undefined && unmetered === undefined) {
    const { time, nodeName } = enrolment;
    const list = enrolment.outlets.map(describe).join(", ");
    return { verified: true, message: `${list} feed the host of node ${nodeName}, as the enrolment of ${time} says` };
  }
  const ended = (why: string): string => (enrolment === undefined ? why : endedText(target, enrolment, why));
  const message = problem?.message ?? ended(differs ?? unmetered ?? "the outlets are not those that were enrolled");
  // The host may be off because of these outlets, and nothing else would switch them on again.
  const hasEnded = problem === undefined || problem.reason === "EnrolmentEnded";
  const enoughForOn = enrolment !== undefined && hasEnded && wereEnrolled(enrolment, answers);
  return { verified: false, reason: "Unknown", message, ...(enoughForOn && { enoughForOn }) };
}

/** A digest of what an operator has configured for the outlets of a host. Any edit of it ends the enrolment. */
export function enrolledSpecDigest(target: FencingTarget): string {
  const { nodeName, clusterRef, identity } = target.spec;
  // How long a call may take says nothing about the outlet.
  const outlets = outletsOf(target).map(({ timeouts: _timeouts, ...outlet }) => outlet);
  return createHash("sha256").update(canonical({ nodeName, clusterRef, identity, outlets })).digest("hex");
}

function whyMisplaced(target: FencingTarget): string | undefined {
  const levels = [...new Set(outletsOf(target).map(({ level }) => level))];
  if (levels.length > 1) {
    const which = levels.toSorted((a, b) => a - b).join(" and ");
    return `spec.devices has outlets at levels ${which}, but the host is off only if all of them are off: give all outlets of the host the same level`;
  }
  const isMixed = target.spec.devices.some(({ address, level }) => level === levels[0] && !isOutletAddress(address));
  if (!isMixed) return undefined;
  return `level ${levels[0]} of spec.devices has outlets and other devices: give the outlets a level of their own`;
}

/** What has changed in the target or the node since the outlets were enrolled; undefined if nothing has. */
function whyEnded(target: FencingTarget, enrolment: Enrolment, nodeSystemUUID: string | undefined): string | undefined {
  const { nodeName, clusterRef } = target.spec;
  if (enrolment.nodeName !== nodeName || clusterKey(enrolment.clusterRef) !== clusterKey(clusterRef)) {
    return `they were enrolled for node ${enrolment.nodeName}, and the target names node ${nodeName}`;
  }
  if (enrolment.specDigest !== enrolledSpecDigest(target)) {
    return "the outlets or the identity in the spec of the target were edited";
  }
  const expected = expectedIdentity(target)?.systemUUID;
  if (expected !== undefined && !sameUuid(expected, enrolment.systemUUID)) {
    return `they were enrolled for system UUID ${enrolment.systemUUID}, and the target expects ${expected}`;
  }
  const reported = meaningfulUuid(nodeSystemUUID);
  if (reported !== undefined && !sameUuid(reported, enrolment.systemUUID)) {
    return `they were enrolled for system UUID ${enrolment.systemUUID}, and node ${nodeName} runs on ${reported}`;
  }
  return undefined;
}

/** What differs between the outlets that answer and those that were enrolled. */
function whyOther({ outlets }: Enrolment, answers: readonly OutletAnswer[]): string | undefined {
  if (outlets.length !== answers.length) {
    return `${answers.length} outlets answer, and ${outlets.length} were enrolled`;
  }
  for (const [index, answer] of answers.entries()) {
    const before = outlets[index];
    const isSame =
      before?.address === answer.address &&
      before.pdu === answer.pdu &&
      before.outlet === answer.outlet &&
      (before.label ?? "") === (answer.label ?? "");
    if (!isSame) {
      const was = before === undefined ? "no outlet" : describe(before);
      return `${answer.address} is ${describe(answer)} now, and ${was} was enrolled`;
    }
  }
  return undefined;
}

/** Whether each outlet that answers is one of those that were enrolled, whatever its label is. */
function wereEnrolled({ outlets }: Enrolment, answers: readonly OutletAnswer[]): boolean {
  return answers.every(({ address, pdu, outlet }) =>
    outlets.some((before) => before.address === address && before.pdu === pdu && before.outlet === outlet),
  );
}

/** Which enrolled outlet has lost its meter. Without the meter, an outlet whose relay is stuck would count as off. */
function whyUnmetered({ outlets }: Enrolment, answers: readonly OutletAnswer[]): string | undefined {
  const index = outlets.findIndex(({ metered }, at) => metered === true && answers[at]?.metered !== true);
  return index === -1 ? undefined : `${answers[index]?.address ?? "an outlet"} has no meter now, and had one before`;
}

function describe({ pdu, outlet, label }: { pdu: string; outlet: string; label?: string | undefined }): string {
  return `outlet ${outlet}${label === undefined ? "" : ` "${label}"`} of PDU ${pdu}`;
}

function endedText(target: FencingTarget, { time }: Enrolment, why: string): string {
  return `the enrolment of the outlets of ${time} has ended, because ${why}: ${nextStep(target)}`;
}

function nextStep({ metadata: { name } }: FencingTarget): string {
  return `run ironfence enroll ${name} in maintenance`;
}

/** JSON with sorted keys: the API server may return fields in another order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
