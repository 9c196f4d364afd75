import type { Node } from "../../../api/core.ts";
import type { BareMetalHost } from "../../../api/metal3.ts";
import type { HostIdentity } from "../../../bmc/driver.ts";
import type { IdentityVerdict } from "../../../bmc/topology.ts";
import { meaningfulSerial, meaningfulUuid, sameUuid } from "../identity.ts";
import { storedOwner } from "./host-store.ts";
import { hostText } from "./power-path.ts";

/**
 * Whether the host that answers is the one that is meant. The system UUID decides where both sides have one: the node's own, or
 * in its absence the one that the host's owner found. Else the serial number from the host's inspection does, which Dell's BMCs
 * give as SKU; but it tells that the BMC is the BareMetalHost's, not that this is the node's, so it does not do for a host
 * that nothing but a name ties to the node. Pure.
 *
 * @param twin another BareMetalHost that was inspected with the same serial number, which then says nothing.
 */
export function judgeHost(
  host: BareMetalHost,
  node: Node | undefined,
  answer: HostIdentity,
  twin: BareMetalHost | undefined,
): IdentityVerdict {
  const text = hostText(host);
  const uuid = meaningfulUuid(node?.status.nodeInfo?.systemUUID) ?? meaningfulUuid(storedOwner(host)?.systemUUID);
  const answered = meaningfulUuid(answer.systemUUID);
  if (uuid !== undefined && answered !== undefined) {
    if (sameUuid(uuid, answered)) {
      return { verified: true, message: `${answer.device} has system UUID ${answered}, as the node of ${text}` };
    }
    return mismatch(text, `${answer.device} has system UUID ${answered}, but the node runs on ${uuid}`);
  }
  const serial = meaningfulSerial(host.serialNumber);
  const serials = [answer.serialNumber, answer.sku].flatMap((value) => meaningfulSerial(value) ?? []);
  if (serial !== undefined && serials.length > 0) {
    if (!serials.includes(serial)) {
      const what = `${answer.device} has serial number ${serials.join(" or ")}, but ${text} was inspected with ${serial}`;
      return mismatch(text, what);
    }
    if (host.consumerRef !== undefined && twin === undefined) {
      return { verified: true, message: `${answer.device} has serial number ${serial}, as ${text}` };
    }
  }
  const missing = [
    ...(uuid === undefined ? ["no node reports its system UUID"] : []),
    ...(answered === undefined ? [`${answer.device} reports no system UUID`] : []),
    ...(serial === undefined ? ["status.hardware has no serial number"] : []),
    ...(serial !== undefined && twin !== undefined
      ? [`${hostText(twin)} was inspected with serial number ${serial} as well, so that it proves neither`]
      : []),
    ...(serial !== undefined && host.consumerRef === undefined
      ? ["the serial number alone does not tie it to the node, since it has no consumerRef"]
      : []),
  ];
  const message = `nothing says whether the BMC of ${text} is the node's: ${missing.join(", ")}; detach the host and describe it with a FencingTarget, whose spec.identity can say who it must be`;
  return { verified: false, reason: "Unknown", message };
}

function mismatch(text: string, what: string): IdentityVerdict {
  const message = `another host answers: ${what}. No power order is sent; correct spec.bmc.address of ${text}, or inspect it again if its hardware is new`;
  return { verified: false, reason: "Mismatch", message };
}
