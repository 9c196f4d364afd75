// BER of SNMP for the mock. It shares no code with the driver, so a mistake in one of them does not go unnoticed.

export const TAG = {
  integer: 0x02,
  octets: 0x04,
  null: 0x05,
  oid: 0x06,
  sequence: 0x30,
  counter: 0x41,
  gauge: 0x42,
  ticks: 0x43,
  noSuchObject: 0x80,
  noSuchInstance: 0x81,
  get: 0xa0,
  response: 0xa2,
  set: 0xa3,
  report: 0xa8,
} as const;

export interface Tlv {
  tag: number;
  content: Buffer;
}

export function tlv(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
}

export function integer(value: number, tag: number = TAG.integer): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.writeIntBE(value, 0, 5);
  let start = 0;
  while (start < 4 && isRedundant(bytes[start] ?? 0, bytes[start + 1] ?? 0)) start += 1;
  return tlv(tag, bytes.subarray(start));
}

function isRedundant(first: number, second: number): boolean {
  return (first === 0 && second < 0x80) || (first === 0xff && second >= 0x80);
}

export function octets(value: Uint8Array | string): Buffer {
  return tlv(TAG.octets, Buffer.from(value));
}

export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  return tlv(TAG.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(number: number): number[] {
  const bytes = [number % 128];
  for (let left = Math.floor(number / 128); left > 0; left = Math.floor(left / 128)) bytes.unshift((left % 128) | 0x80);
  return bytes;
}

/** Parses consecutive values. @throws RangeError if the bytes are not BER. */
export function readAll(bytes: Buffer): Tlv[] {
  const values: Tlv[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes.readUInt8(at);
    let length = bytes.readUInt8(at + 1);
    at += 2;
    if (length >= 0x80) {
      const count = length & 0x7f;
      length = bytes.readUIntBE(at, count);
      at += count;
    }
    if (at + length > bytes.length) throw new RangeError("a length beyond the end");
    values.push({ tag, content: bytes.subarray(at, at + length) });
    at += length;
  }
  return values;
}

export function readInteger({ content }: Tlv): number {
  return content.readIntBE(0, content.length);
}

export function readOid({ content }: Tlv): string {
  const first = content.readUInt8(0);
  const numbers = [Math.floor(first / 40), first % 40];
  let number = 0;
  for (const byte of content.subarray(1)) {
    number = number * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    numbers.push(number);
    number = 0;
  }
  return numbers.join(".");
}

/** The value at an index. @throws RangeError if there is none. */
export function at(values: readonly Tlv[], index: number): Tlv {
  const value = values[index];
  if (value === undefined) throw new RangeError("a value is missing");
  return value;
}
