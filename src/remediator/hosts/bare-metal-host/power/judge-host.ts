import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import type { HostIdentity } from "../../../../bmc/identity/host-identity.ts";
import type { IdentityCheck } from "../../../../bmc/identity/identity-check.ts";
import { meaningfulSerial, meaningfulUuid, sameUuid } from "../../model/identity.ts";
import { storedOwner } from "../store/host-annotations.ts";
import { hostText } from "../store/power-path.ts";

/**
 * Whether the host that answers is the expected one. If both sides have a system UUID, it decides: that of the node or,
 * without a Node, the one that the owner of the host has found. Otherwise the serial number from the inspection of the
 * host decides, which BMCs of Dell report as SKU. It shows that the BMC belongs to the BareMetalHost, but not that the
 * host belongs to the node, so it is not enough for a host that only a name connects with the node. Pure.
 *
 * @param sameSerial another BareMetalHost that was inspected with the same serial number, which then proves nothing.
 */
export function judgeHost(
  host: BareMetalHost,
  node: Node | undefined,
  answer: HostIdentity,
  sameSerial: BareMetalHost | undefined,
): IdentityCheck {
  const text = hostText(host);
  const uuid = meaningfulUuid(node?.status.nodeInfo?.systemUUID) ?? meaningfulUuid(storedOwner(host)?.systemUUID);
  const answered = meaningfulUuid(answer.systemUUID);
  if (uuid !== undefined && answered !== undefined) {
    if (sameUuid(uuid, answered)) {
      return {
        verified: true,
        message: `${answer.device} has system UUID ${answered}, the same as the node of ${text}`,
      };
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
    if (host.consumerRef !== undefined && sameSerial === undefined) {
      return { verified: true, message: `${answer.device} has serial number ${serial}, the same as ${text}` };
    }
  }
  const missing = [
    ...(uuid === undefined ? ["no node reports its system UUID"] : []),
    ...(answered === undefined ? [`${answer.device} reports no system UUID`] : []),
    ...(serial === undefined ? ["status.hardware has no serial number"] : []),
    ...(serial !== undefined && sameSerial !== undefined
      ? [`${hostText(sameSerial)} was inspected with serial number ${serial} as well, so it proves neither`]
      : []),
    ...(serial !== undefined && host.consumerRef === undefined
      ? ["the serial number alone does not connect it with the node, because it has no consumerRef"]
      : []),
  ];
  const message = `nothing shows whether the BMC of ${text} belongs to the node: ${missing.join(", ")}; detach the host and describe it with a FencingTarget and its spec.identity`;
  return { verified: false, reason: "Unknown", message };
}

function mismatch(text: string, what: string): IdentityCheck {
  const message = `another host answers: ${what}. No power order is sent; correct spec.bmc.address of ${text}, or inspect it again if its hardware is new`;
  return { verified: false, reason: "Mismatch", message };
}
