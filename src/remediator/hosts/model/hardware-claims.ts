import { parseBmcAddress } from "../../../bmc/interface/address.ts";
import { BmcError } from "../../../bmc/interface/errors.ts";
import { canonicalUuid } from "./identity.ts";

// What identifies a piece of hardware in the indexes of FencingTargets and of BareMetalHosts. Two objects with the same
// claim describe the same host.

/** The claim of every object that names the host with that system UUID. */
export const uuidClaim = (uuid: string): string => `uuid ${canonicalUuid(uuid)}`;

/**
 * The claims of an address. Its object is indexed under the `filed` ones, and no other object may be indexed under an
 * `exclusive` one. An address without a System means the only System of its BMC, and therefore conflicts with every
 * System of that BMC. An address that cannot be parsed claims nothing: it is refused when it is opened.
 */
export function systemClaims(addressText: string): { filed: string[]; exclusive: string[] } {
  const address = readAddress(addressText);
  if (address === undefined) return { filed: [], exclusive: [] };
  const system = `system ${address.key}`;
  if (address.protocol !== "redfish") return { filed: [system], exclusive: [system] };
  const anySystem = `any system of ${address.origin}`;
  const someSystem = `some system of ${address.origin}`;
  return address.system === undefined
    ? { filed: [anySystem, someSystem], exclusive: [someSystem] }
    : { filed: [system, someSystem], exclusive: [system, anySystem] };
}

function readAddress(text: string): ReturnType<typeof parseBmcAddress> | undefined {
  try {
    return parseBmcAddress(text);
  } catch (error) {
    if (error instanceof BmcError) return undefined;
    throw error;
  }
}
