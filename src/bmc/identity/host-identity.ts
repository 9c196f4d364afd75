import { meaningfulSerial, meaningfulUuid } from "./placeholders.ts";
import { parseUuid, sameUuid } from "./uuid.ts";

/** The identity of the host, as its BMC reports it. A value is missing if the BMC does not report it. */
export interface HostIdentity {
  /** SMBIOS system UUID in the textual form of the BMC, in lower case. Its byte order depends on the vendor. */
  systemUUID?: string;
  serialNumber?: string;
  /**
   * What the tools of some vendors show as the serial number, for example the service tag of Dell (DSP0268,
   * ComputerSystem.SKU).
   */
  sku?: string;
  manufacturer?: string;
  model?: string;
  /** The name that the device has for the host, for example `/redfish/v1/Systems/1`. */
  device: string;
}

/**
 * Whether the host that answers after a new login is the one that was identified before. A value that is no longer
 * reported may mean another host. But while their host is off, some BMCs lose a part of the identity or swap the byte
 * order of the UUID, and some learn a part of it only after POST.
 *
 * @returns `Unknown` if a host that is off reports nothing that can be compared.
 */
export function compareHosts(
  before: HostIdentity,
  now: HostIdentity,
  { isOff }: { isOff: boolean },
): "Same" | "Other" | "Unknown" {
  const comparisons = [
    compareValues(uuidOf(before), uuidOf(now), sameUuid),
    compareValues(meaningfulSerial(before.serialNumber), meaningfulSerial(now.serialNumber), (a, b) => a === b),
  ];
  if (comparisons.includes("Other") || (comparisons.includes("Gone") && !isOff)) return "Other";
  if (comparisons.includes("Same") || comparisons.every((comparison) => comparison === undefined)) return "Same";
  return isOff ? "Unknown" : "Other";
}

/** Some BMCs report a value that is not a UUID. It distinguishes hosts like a serial number. */
function uuidOf({ systemUUID }: HostIdentity): string | undefined {
  return parseUuid(systemUUID) === undefined ? meaningfulSerial(systemUUID) : meaningfulUuid(systemUUID);
}

/** Compares one value of two identities. Undefined if neither identity has it. */
function compareValues(
  before: string | undefined,
  now: string | undefined,
  isSame: (a: string, b: string) => boolean,
): "Same" | "Other" | "Gone" | "New" | undefined {
  if (before === undefined) return now === undefined ? undefined : "New";
  if (now === undefined) return "Gone";
  return isSame(before, now) ? "Same" : "Other";
}
