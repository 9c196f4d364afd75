// Parses the header of an SNMP message (RFC 3412 section 6, RFC 3414 section 2.4), which net-snmp does not check before
// it accepts an answer. Pure.

const INTEGER = 0x02;
const OCTET_STRING = 0x04;
const OID = 0x06;
const SEQUENCE = 0x30;
const REPORT = 0xa8;

const USM = 3;

export interface V3Envelope {
  version: 3;
  messageId: number;
  isAuthenticated: boolean;
  isEncrypted: boolean;
  /** Hexadecimal digits; empty in the request that discovers it. */
  engineId: string;
  /** The first OID of a Report that is not encrypted. It shows which check of the PDU failed. Otherwise undefined. */
  report: string | undefined;
}

export type Envelope = { version: 1 } | V3Envelope;

/** @returns undefined for anything that is not a well-formed message of version 2c or 3. */
export function readEnvelope(datagram: Uint8Array): Envelope | undefined {
  try {
    const message = new BerReader(datagram).enter(SEQUENCE);
    const version = message.integer();
    if (version === 1) return { version };
    if (version !== 3) return undefined;
    const header = message.enter(SEQUENCE);
    const messageId = header.integer();
    header.integer();
    const [flags = 0] = header.bytes(OCTET_STRING);
    if (header.integer() !== USM) return undefined;
    const security = new BerReader(message.bytes(OCTET_STRING)).enter(SEQUENCE);
    const engineId = Buffer.from(security.bytes(OCTET_STRING)).toString("hex");
    const isAuthenticated = (flags & 1) !== 0;
    const isEncrypted = (flags & 2) !== 0;
    const report = isEncrypted ? undefined : readReport(message);
    return { version, messageId, isAuthenticated, isEncrypted, engineId, report };
  } catch (error) {
    if (error instanceof BerError) return undefined;
    throw error;
  }
}

function readReport(message: BerReader): string | undefined {
  const scoped = message.enter(SEQUENCE);
  scoped.bytes(OCTET_STRING);
  scoped.bytes(OCTET_STRING);
  if (scoped.peek() !== REPORT) return undefined;
  const pdu = scoped.enter(REPORT);
  for (let field = 0; field < 3; field++) pdu.integer();
  return pdu.enter(SEQUENCE).enter(SEQUENCE).oid();
}

class BerError extends Error {
  override readonly name = "BerError";
}

/** Reads values with definite lengths, never beyond the end of the value that contains them. */
class BerReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  peek(): number | undefined {
    return this.#bytes[this.#at];
  }

  enter(tag: number): BerReader {
    return new BerReader(this.bytes(tag));
  }

  integer(): number {
    const bytes = this.bytes(INTEGER);
    if (bytes.length === 0 || bytes.length > 5) throw new BerError("an integer of this length");
    return Buffer.from(bytes).readIntBE(0, bytes.length);
  }

  oid(): string {
    const bytes = this.bytes(OID);
    const [first = 0] = bytes;
    const numbers = [Math.floor(first / 40), first % 40];
    let number = 0;
    for (const byte of bytes.subarray(1)) {
      number = number * 128 + (byte & 0x7f);
      if (number > 0xff_ff_ff_ff) throw new BerError("a number of an OID that is too large");
      if ((byte & 0x80) !== 0) continue;
      numbers.push(number);
      number = 0;
    }
    return numbers.join(".");
  }

  bytes(tag: number): Uint8Array {
    if (this.#next() !== tag) throw new BerError("another tag");
    const length = this.#length();
    if (this.#at + length > this.#bytes.length) throw new BerError("a length beyond the end");
    const bytes = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return bytes;
  }

  #length(): number {
    const first = this.#next();
    if (first < 0x80) return first;
    const count = first & 0x7f;
    if (count === 0 || count > 3) throw new BerError("a length of this form");
    let length = 0;
    for (let at = 0; at < count; at++) length = length * 256 + this.#next();
    return length;
  }

  #next(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new BerError("the end");
    this.#at += 1;
    return byte;
  }
}
