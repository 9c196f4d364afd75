import { parseUuid, swapUuid } from "./uuid.ts";

// What firmware reports if no identity was set at the factory. Many hosts share each of these values, so none of them
// identifies a host. Pure.

/** A UUID in lower case with dashes; undefined for anything else, and for default values that boards share. */
export function meaningfulUuid(text: string | undefined): string | undefined {
  const uuid = parseUuid(text);
  if (uuid === undefined) return undefined;
  return isPlaceholderUuid(uuid) || isPlaceholderUuid(swapUuid(uuid)) ? undefined : uuid;
}

/** A serial number without surrounding spaces; undefined for a placeholder. */
export function meaningfulSerial(text: string | undefined): string | undefined {
  const serial = text?.trim();
  return serial === undefined || isPlaceholderSerial(serial) ? undefined : serial;
}

/**
 * Whether many boards share this UUID.
 *
 * @param uuid in lower case with dashes, in one byte order: the caller checks the other one as well.
 */
function isPlaceholderUuid(uuid: string): boolean {
  return REPEATED_UUID.test(uuid) || UNSET_UUID.test(uuid) || UUIDS.has(uuid);
}

/** Whether a serial number, without surrounding spaces, is a placeholder. */
function isPlaceholderSerial(serial: string): boolean {
  const words = serial.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return words === "" || /^(.)\1*$/.test(words) || SERIALS.has(words) || isCount(words.replace(COUNT_PREFIX, ""));
}

/** One digit, or one byte, repeated: `00…`, `ff…`, `5858…`, `fefe…`. */
const REPEATED_UUID = /^(.)(.)(?:-?\1\2)+$/;
/** Only the first field is set. */
const UNSET_UUID = /-ffff-ffff-ffff-ffffffffffff$/;

/**
 * Factory defaults, each in one of its two byte orders. Some are from the list of UUIDs that FreeBSD refuses
 * (libexec/rc/rc.d/hostid of freebsd-src).
 */
const UUIDS: ReadonlySet<string> = new Set([
  "00010203-0405-0607-0809-0a0b0c0d0e0f",
  "01020304-0506-0708-090a-0b0c0d0e0f10",
  "03000200-0400-0500-0006-000700080009",
  "07090201-0103-0301-0807-060504030201",
  "12345678-1234-1234-1234-123456789abc",
  "12345678-1234-5678-1234-567812345678",
  "12345678-1234-5678-90ab-cddeefaabbcc",
  "11111111-2222-3333-4444-555555555555",
  // Dell without a service tag: the characters of the tag are spaces.
  "4c4c4544-0000-2010-8020-80c04f202020",
  "890e2d14-cacd-45d1-ae66-bc80e8bfeb0f",
  "8e275844-178f-44a8-aceb-a7d7e5178c63",
  "dc698397-fa54-4cf2-82c8-b1b5307a6a7f",
  "deadbeef-dead-beef-dead-beefdeadbeef",
]);

/** In lower case, only letters and digits. */
const SERIALS: ReadonlySet<string> = new Set([
  "baseboardserialnumber",
  "chassisserialnumber",
  "default",
  "defaultstring",
  "empty",
  "filledbyoem",
  "invalid",
  "na",
  "none",
  "nonespecified",
  "noserial",
  "noserialnumber",
  "notapplicable",
  "notavailable",
  "notdefined",
  "notpresent",
  "notprovided",
  "notset",
  "notsettable",
  "notspecified",
  "null",
  "oem",
  "pcie2",
  "serialnumber",
  "systemserialnumber",
  "tbd",
  "tobefilled",
  "tobefilledbyoem",
  "type2boardserialnumber",
  "undefined",
  "unknown",
  "unspecified",
]);

/** `SYS-1234567890`, `MB-1234567890`, `SN12345678`. */
const COUNT_PREFIX = /^(?:sys|mb|sn|chassis)/;
/** A shorter count may be a real serial number. */
const COUNT_LENGTH_MIN = 8;

/**
 * Whether a text is a sequence of ascending digits from 0 or 1, possibly repeated: `0123456789ABCDEF`,
 * `01234567890123456789AB`.
 */
function isCount(text: string): boolean {
  if (text.length < COUNT_LENGTH_MIN || !/^[01]/.test(text)) return false;
  for (let at = 1; at < text.length; at += 1) {
    const pair = text.slice(at - 1, at + 1);
    if (pair !== "90" && pair !== "f0" && !COUNT.includes(pair)) return false;
  }
  return true;
}

const COUNT = "0123456789abcdef";
