import type { CipherSuite } from "./cipher-suite.ts";

/** Privilege levels of a session (IPMI 2.0, 6.8). */
export const PRIVILEGE = { operator: 3, administrator: 4 } as const;
export type Privilege = (typeof PRIVILEGE)[keyof typeof PRIVILEGE];

const RESPONSE_BYTES = 36;
/** A refusal ends after the console's session id. */
const REFUSAL_BYTES = 8;
const ALGORITHM_BLOCK_BYTES = 8;
const ALGORITHM_OFFSETS = [12, 20, 28] as const;

/** The answer of the BMC to an Open Session request. */
export type OpenResponse =
  | { kind: "Opened"; bmcSessionId: number }
  | { kind: "Refused"; status: number }
  /** The BMC chose other algorithms than the requested ones. */
  | { kind: "OtherAlgorithms" };

/** RMCP+ Open Session Request (13.17): one suite, so that the BMC has no choice. */
export function encodeOpenRequest(options: {
  tag: number;
  privilege: Privilege;
  consoleSessionId: number;
  suite: CipherSuite;
}): Buffer {
  const request = Buffer.alloc(8 + 3 * ALGORITHM_BLOCK_BYTES);
  request[0] = options.tag;
  request[1] = options.privilege;
  request.writeUInt32LE(options.consoleSessionId, 4);
  for (const [type, algorithm] of options.suite.algorithms.entries()) {
    request.set([type, 0, 0, ALGORITHM_BLOCK_BYTES, algorithm], 8 + type * ALGORITHM_BLOCK_BYTES);
  }
  return request;
}

/** Parses an RMCP+ Open Session Response (13.18); undefined if it does not answer this request. */
export function parseOpenResponse(
  payload: Buffer,
  requested: { tag: number; consoleSessionId: number; suite: CipherSuite },
): OpenResponse | undefined {
  const [tag = 0, status = 0] = payload;
  // Supermicro: a refusal of one byte, too short to contain the tag of the request.
  if (payload.length === 1 && tag !== 0) return { kind: "Refused", status: tag };
  if (payload.length < 2 || tag !== requested.tag) return undefined;
  if (status !== 0) {
    const names = payload.length >= REFUSAL_BYTES ? payload.readUInt32LE(4) : 0;
    return names === requested.consoleSessionId || names === 0 ? { kind: "Refused", status } : undefined;
  }
  if (payload.length < RESPONSE_BYTES || payload.readUInt32LE(4) !== requested.consoleSessionId) return undefined;
  const bmcSessionId = payload.readUInt32LE(8);
  if (bmcSessionId === 0) return undefined;
  const agreed = ALGORITHM_OFFSETS.every(
    (offset, type) =>
      payload[offset] === type &&
      payload[offset + 3] === ALGORITHM_BLOCK_BYTES &&
      (payload.readUInt8(offset + 4) & 0x3f) === requested.suite.algorithms[type],
  );
  return agreed ? { kind: "Opened", bmcSessionId } : { kind: "OtherAlgorithms" };
}
