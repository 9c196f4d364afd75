/**
 * Datagrams of IPMI over LAN (IPMI 2.0, 13.6): an RMCP header, then a session header of version 1.5 or 2.0 (RMCP+). All
 * numbers are little-endian.
 */

/** All IPMI messages are much shorter. Longer datagrams are ignored. */
export const DATAGRAM_BYTES_MAX = 1_024;

/** Version 6, reserved, no RMCP acknowledgement requested, class IPMI. */
const RMCP_HEADER = Buffer.from([0x06, 0x00, 0xff, 0x07]);
const RMCP_PLUS = 0x06;
const V15_HEADER_BYTES = 14;
const V20_HEADER_BYTES = 16;

/** Payload types of RMCP+ (table 13-16). */
export const PAYLOAD = {
  ipmi: 0x00,
  openRequest: 0x10,
  openResponse: 0x11,
  rakp1: 0x12,
  rakp2: 0x13,
  rakp3: 0x14,
  rakp4: 0x15,
} as const;

/** The header of an RMCP+ datagram. */
export interface PlusHeader {
  payloadType: number;
  encrypted: boolean;
  authenticated: boolean;
  sessionId: number;
  sequence: number;
}

export type Packet =
  /** A message outside of any session, without authentication. Nothing else of version 1.5 is used. */
  { version: "1.5"; payload: Buffer } | ({ version: "2.0"; payload: Buffer } & PlusHeader);

/** An IPMI message outside of any session, as version 1.5 wraps it. */
export function encodeSessionless(payload: Uint8Array): Buffer {
  const header = Buffer.alloc(V15_HEADER_BYTES);
  RMCP_HEADER.copy(header);
  header[13] = payload.length;
  return Buffer.concat([header, payload]);
}

/** An RMCP+ datagram up to the end of its payload. */
export function encodePlus(header: PlusHeader, payload: Uint8Array): Buffer {
  const datagram = Buffer.alloc(V20_HEADER_BYTES + payload.length);
  RMCP_HEADER.copy(datagram);
  datagram[4] = RMCP_PLUS;
  datagram[5] = header.payloadType | (header.encrypted ? 0x80 : 0) | (header.authenticated ? 0x40 : 0);
  datagram.writeUInt32LE(header.sessionId, 6);
  datagram.writeUInt32LE(header.sequence, 10);
  datagram.writeUInt16LE(payload.length, 14);
  datagram.set(payload, V20_HEADER_BYTES);
  return datagram;
}

/** Parses a received datagram; undefined if it is not IPMI or its lengths contradict each other. */
export function parsePacket(datagram: Buffer): Packet | undefined {
  if (datagram.length > DATAGRAM_BYTES_MAX || datagram.length < V15_HEADER_BYTES) return undefined;
  // The sequence number of the RMCP header has no meaning if no acknowledgement is requested.
  if (datagram[0] !== RMCP_HEADER[0] || datagram[3] !== RMCP_HEADER[3]) return undefined;
  const authType = datagram[4];
  if (authType === 0) {
    const payload = datagram.subarray(V15_HEADER_BYTES, V15_HEADER_BYTES + (datagram[13] ?? 0));
    return payload.length === datagram[13] ? { version: "1.5", payload } : undefined;
  }
  if (authType !== RMCP_PLUS || datagram.length < V20_HEADER_BYTES) return undefined;
  const type = datagram.readUInt8(5);
  const payloadBytes = datagram.readUInt16LE(14);
  const payload = datagram.subarray(V20_HEADER_BYTES, V20_HEADER_BYTES + payloadBytes);
  if (payload.length !== payloadBytes) return undefined;
  return {
    version: "2.0",
    payloadType: type & 0x3f,
    encrypted: (type & 0x80) !== 0,
    authenticated: (type & 0x40) !== 0,
    sessionId: datagram.readUInt32LE(6),
    sequence: datagram.readUInt32LE(10),
    payload,
  };
}
