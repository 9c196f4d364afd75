import type { Request } from "../packets/message.ts";

/** Get System GUID (IPMI 2.0, 22.14). */
export const GET_SYSTEM_GUID: Request = { netFn: 0x06, command: 0x37, data: [] };

const GUID_BYTES = 16;

/**
 * The System GUID as the UUID that the host itself shows, in lower case; undefined if there is none.
 *
 * The standard sends the bytes in reverse order. Most BMCs send the SMBIOS structure instead, in which only the first
 * three fields are swapped, and some send the order of RFC 9562. The version and variant of the UUID, or at least the
 * version, show which order it is. If they do not, it is treated as SMBIOS.
 */
export function parseSystemGuid(data: Buffer): string | undefined {
  if (data.length < GUID_BYTES) return undefined;
  const guid = data.subarray(0, GUID_BYTES);
  const smbios = swapFields(guid);
  const candidates = [smbios, guid, Buffer.from(guid).reverse()];
  const versioned = candidates.filter(hasVersion);
  return toText(versioned.find(hasVariant) ?? versioned[0] ?? smbios);
}

function hasVersion(uuid: Buffer): boolean {
  const version = uuid.readUInt8(6) >> 4;
  return version >= 1 && version <= 8;
}

function hasVariant(uuid: Buffer): boolean {
  return uuid.readUInt8(8) >> 6 === 0b10;
}

function swapFields(guid: Buffer): Buffer {
  const fields = [guid.subarray(0, 4), guid.subarray(4, 6), guid.subarray(6, 8)].map((field) =>
    Buffer.from(field).reverse(),
  );
  return Buffer.concat([...fields, guid.subarray(8)]);
}

function toText(bytes: Buffer): string {
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
