import { sumsToZero } from "../packets/message.ts";
import type { Request } from "../packets/message.ts";
import type { HostIdentity } from "../../identity/host-identity.ts";

// The FRU inventory (IPMI 2.0, chapter 34, and "Platform Management FRU Information Storage Definition" 1.0): the
// manufacturer and the serial number of the host.

/** The FRU of the system itself. */
const FRU_ID = 0;
const NETFN_STORAGE = 0x0a;
const HEADER_BYTES = 8;
/** Offsets within the inventory count in groups of this size. */
const GROUP_BYTES = 8;
const FORMAT_VERSION = 1;
/** How many bytes of an area are read. Areas are much smaller. */
export const AREA_BYTES_MAX = 512;
/** How many fields are read. Custom fields follow after them. */
const FIELDS_MAX = 8;
const NO_MORE_FIELDS = 0xc1;

export const GET_FRU_INFO: Request = { netFn: NETFN_STORAGE, command: 0x10, data: [FRU_ID] };

/** The size of the inventory, and whether its offsets and counts are in words of two bytes. */
export interface FruInfo {
  sizeBytes: number;
  byWords: boolean;
}

export function parseFruInfo(data: Buffer): FruInfo | undefined {
  if (data.length < 3) return undefined;
  return { sizeBytes: data.readUInt16LE(0), byWords: (data.readUInt8(2) & 1) !== 0 };
}

/** Read FRU Data of `countBytes` from `offsetBytes`; both are even if the inventory counts in words. */
export function readFru(info: FruInfo, offsetBytes: number, countBytes: number): Request {
  const unit = info.byWords ? 2 : 1;
  const offset = offsetBytes / unit;
  return { netFn: NETFN_STORAGE, command: 0x11, data: [FRU_ID, offset & 0xff, offset >> 8, countBytes / unit] };
}

/** The bytes in an answer to `readFru`: never more than requested. */
export function parseFruData(info: FruInfo, data: Buffer, countBytes: number): Buffer | undefined {
  const [count = 0] = data;
  const bytes = data.subarray(1, 1 + Math.min(count * (info.byWords ? 2 : 1), countBytes));
  return bytes.length === 0 ? undefined : bytes;
}

export const FRU_HEADER_BYTES = HEADER_BYTES;

/** The offsets of the chassis and product areas in bytes; undefined for an area that does not exist. */
export function parseFruHeader(header: Buffer): { chassis: number | undefined; product: number | undefined } {
  const isSound = header.length === HEADER_BYTES && (header.readUInt8(0) & 0x0f) === FORMAT_VERSION;
  if (!isSound || !sumsToZero(header)) return { chassis: undefined, product: undefined };
  const at = (index: number): number | undefined => {
    const offset = header.readUInt8(index) * GROUP_BYTES;
    return offset === 0 ? undefined : offset;
  };
  return { chassis: at(2), product: at(4) };
}

/** The length of an area, from its first two bytes. */
export function areaBytes(start: Buffer): number {
  return Math.min((start[1] ?? 0) * GROUP_BYTES, AREA_BYTES_MAX);
}

/** The serial number in a chassis info area. */
export function parseChassisArea(area: Buffer): Pick<HostIdentity, "serialNumber"> {
  const [, serialNumber] = fields(area);
  return serialNumber === undefined ? {} : { serialNumber };
}

/** Manufacturer, model and serial number in a product info area. */
export function parseProductArea(area: Buffer): Pick<HostIdentity, "manufacturer" | "model" | "serialNumber"> {
  const [manufacturer, model, , , serialNumber] = fields(area);
  return {
    ...(manufacturer !== undefined && { manufacturer }),
    ...(model !== undefined && { model }),
    ...(serialNumber !== undefined && { serialNumber }),
  };
}

/** The text fields of an area, which begin after three bytes in both kinds. Empty if the area is damaged. */
function fields(area: Buffer): (string | undefined)[] {
  const texts: (string | undefined)[] = [];
  if (area.length < GROUP_BYTES || (area.readUInt8(0) & 0x0f) !== FORMAT_VERSION || !sumsToZero(area)) return texts;
  for (let offset = 3; texts.length < FIELDS_MAX;) {
    const typeAndLength = area[offset];
    if (typeAndLength === undefined || typeAndLength === NO_MORE_FIELDS) break;
    const length = typeAndLength & 0x3f;
    const bytes = area.subarray(offset + 1, offset + 1 + length);
    if (bytes.length < length) break;
    texts.push(decode(typeAndLength >> 6, bytes));
    offset += 1 + length;
  }
  return texts;
}

/** One field by its type. Undefined if it is empty or not text. */
function decode(type: number, bytes: Buffer): string | undefined {
  const text = type === 3 ? bytes.toString("latin1") : type === 2 ? sixBit(bytes) : type === 1 ? bcd(bytes) : "";
  const printable = text.replaceAll(/[^\x20-\x7e]/g, "").trim();
  return printable === "" ? undefined : printable;
}

/** 6-bit ASCII: four characters in three bytes, beginning with the space. */
function sixBit(bytes: Buffer): string {
  let text = "";
  for (let bit = 0; bit + 6 <= bytes.length * 8; bit += 6) {
    const pair = (bytes[bit >> 3] ?? 0) | ((bytes[(bit >> 3) + 1] ?? 0) << 8);
    text += String.fromCharCode(0x20 + ((pair >> (bit & 7)) & 0x3f));
  }
  return text;
}

/** "BCD plus": two characters in a byte. */
function bcd(bytes: Buffer): string {
  return bytes.toString("hex").replaceAll(/[a-f]/g, (digit) => " -.???"["abcdef".indexOf(digit)] ?? "");
}
