import type { BmcIdentity } from "../rack/bmc.ts";

const GROUP_BYTES = 8;

/** The FRU inventory of a host: header, chassis area and product area, each with its checksum. */
export function fruImage({ manufacturer, model, serialNumber }: BmcIdentity): Buffer {
  // Type 17h: rack mount chassis. Language 25: English.
  const chassis = area([0x17], ["CH-1", `${serialNumber}-C`]);
  const product = area([25], [manufacturer, model, "PN-1", "v1", serialNumber, "", ""]);
  const header = [1, 0, 1, 0, 1 + chassis.length / GROUP_BYTES, 0, 0];
  return Buffer.concat([Buffer.from([...header, checksum(header)]), chassis, product]);
}

function area(kind: readonly number[], texts: readonly string[]): Buffer {
  const fields = texts.flatMap((text) => [0xc0 | text.length, ...Buffer.from(text, "latin1")]);
  const content = [...kind, ...fields, 0xc1];
  const groups = Math.ceil((content.length + 3) / GROUP_BYTES);
  const bytes = [1, groups, ...content];
  while (bytes.length < groups * GROUP_BYTES - 1) bytes.push(0);
  return Buffer.from([...bytes, checksum(bytes)]);
}

function checksum(bytes: readonly number[]): number {
  return -bytes.reduce((sum, byte) => sum + byte, 0) & 0xff;
}
