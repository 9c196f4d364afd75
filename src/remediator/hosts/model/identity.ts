import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { HostIdentity } from "../../../bmc/identity/host-identity.ts";
import { meaningfulSerial, meaningfulUuid } from "../../../bmc/identity/placeholders.ts";
import { sameUuid } from "../../../bmc/identity/uuid.ts";
import type { IdentityJudge, IdentityCheck } from "../../../bmc/identity/identity-check.ts";
import { clusterKey } from "../../../nodes/subject.ts";

export { meaningfulSerial, meaningfulUuid } from "../../../bmc/identity/placeholders.ts";
export { canonicalUuid, sameUuid } from "../../../bmc/identity/uuid.ts";

// The identity that a host must have, and whether a device reports it. Pure. Names and addresses change, hardware ids
// do not.

/** The identity that a host must have. At least one of the two values is given. */
export interface ExpectedIdentity {
  source: "spec" | "pinned";
  systemUUID?: string;
  serialNumber?: string;
}

/**
 * The identity that the host of a target must have: the one in its spec, otherwise the one that was pinned from the
 * node that the spec names now. Values that firmware fills in as a default are not an identity.
 */
export function expectedIdentity(target: FencingTarget): ExpectedIdentity | undefined {
  const { identity, nodeName, clusterRef } = target.spec;
  const systemUUID = meaningfulUuid(identity.systemUUID);
  const serialNumber = meaningfulSerial(identity.serialNumber);
  if (systemUUID !== undefined || serialNumber !== undefined) {
    return {
      source: "spec",
      ...(systemUUID !== undefined && { systemUUID }),
      ...(serialNumber !== undefined && { serialNumber }),
    };
  }
  const pin = target.status?.identity;
  // A node of the same name in another cluster is another node.
  const isPin = pin?.nodeName === nodeName && clusterKey(pin.clusterRef) === clusterKey(clusterRef);
  const pinned = isPin ? meaningfulUuid(pin.systemUUID) : undefined;
  return pinned === undefined ? undefined : { source: "pinned", systemUUID: pinned };
}

/**
 * The judge of the devices of a target: one device of a level must report the identity in the target, and none may
 * report another one.
 *
 * @param nodeSystemUUID what the node itself reports, if it exists. It contradicts a pin from replaced hardware. It
 * never replaces a missing pin, because a dead node may have left the value of another machine behind.
 */
export function identityJudge(target: FencingTarget, nodeSystemUUID: string | undefined): IdentityJudge {
  const expected = expectedIdentity(target);
  const { nodeName, identity } = target.spec;
  const nodeUuid = expected?.source === "spec" ? undefined : meaningfulUuid(nodeSystemUUID);
  return (answers) => {
    let match: string | undefined;
    for (const answer of answers) {
      const compared = expected === undefined ? "unknown" : compareIdentity(expected, answer);
      if (compared === "mismatch") {
        const source = expected?.source === "spec" ? "spec.identity" : `the identity pinned from node ${nodeName}`;
        return mismatch(
          `${answer.device} is ${describe(answer)}, but ${source} is ${describe(expected ?? {})}`,
          nodeName,
        );
      }
      const answered = meaningfulUuid(answer.systemUUID);
      if (nodeUuid !== undefined && answered !== undefined && !sameUuid(nodeUuid, answered)) {
        return mismatch(
          `${answer.device} is ${describe(answer)}, but node ${nodeName} runs on system UUID ${nodeUuid}`,
          nodeName,
        );
      }
      if (compared === "match")
        match ??= `${answer.device} is ${describe(answer)}, as ${expected?.source ?? ""} identity says`;
    }
    if (match !== undefined) return { verified: true, message: match };
    return unknown(expected, answers, nodeName, identity.verification === "None");
  };
}

/**
 * Compares the expected identity with the reported one. A value counts if both sides have it. One that differs is a
 * mismatch.
 */
export function compareIdentity(
  expected: { systemUUID?: string | undefined; serialNumber?: string | undefined },
  answer: Partial<HostIdentity>,
): "match" | "mismatch" | "unknown" {
  const comparisons: boolean[] = [];
  const expectedUuid = meaningfulUuid(expected.systemUUID);
  const uuid = meaningfulUuid(answer.systemUUID);
  if (expectedUuid !== undefined && uuid !== undefined) comparisons.push(sameUuid(expectedUuid, uuid));
  const expectedSerial = meaningfulSerial(expected.serialNumber);
  const serial = meaningfulSerial(answer.serialNumber);
  if (expectedSerial !== undefined && serial !== undefined) comparisons.push(expectedSerial === serial);
  if (comparisons.includes(false)) return "mismatch";
  return comparisons.length > 0 ? "match" : "unknown";
}

function mismatch(what: string, nodeName: string): IdentityCheck {
  return {
    verified: false,
    reason: "Mismatch",
    message: `another host answers: ${what}. No power order is sent; correct the address in spec.devices, or spec.identity if node ${nodeName} has new hardware`,
  };
}

function unknown(
  expected: ExpectedIdentity | undefined,
  answers: readonly HostIdentity[],
  nodeName: string,
  accepted: boolean,
): IdentityCheck {
  const why =
    expected === undefined
      ? `the identity of the host of node ${nodeName} is not known: set spec.identity.systemUUID or serialNumber, or wait for a probe while the node is Ready`
      : `no device reports a value of the ${expected.source} identity ${describe(expected)} (answers: ${answers.map(describe).join(", ")}): set a value that the device reports, or spec.identity.verification: None`;
  if (accepted) return { verified: true, message: `not checked, because spec.identity.verification is None; ${why}` };
  return { verified: false, reason: "Unknown", message: why };
}

function describe(identity: { systemUUID?: string; serialNumber?: string }): string {
  const { systemUUID, serialNumber } = identity;
  const parts = [
    systemUUID === undefined ? "" : `system UUID ${systemUUID}`,
    serialNumber === undefined ? "" : `serial number ${serialNumber}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "a host without system UUID and serial number" : parts.join(" and ");
}
