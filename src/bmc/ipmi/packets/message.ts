/** IPMI messages in the LAN format (IPMI 2.0, 13.8): addresses, network function, command, data, two checksums. */

const BMC_ADDRESS = 0x20;
/** The agent's own address: software id 40h, "remote console 1". */
const CONSOLE_ADDRESS = 0x81;
/** Two addresses, two bytes of network function and sequence, two checksums, the command. */
const REQUEST_BYTES_MIN = 7;
const RESPONSE_BYTES_MIN = 8;

/** A command to the BMC. */
export interface Request {
  netFn: number;
  command: number;
  data: readonly number[];
}

/** The answer of the BMC. */
export interface Response {
  /** 0 is success (table 5-2). */
  completionCode: number;
  data: Buffer;
}

/** A request on the wire. @param sequence 0 to 63; the answer repeats it. */
export function encodeRequest({ netFn, command, data }: Request, sequence: number): Buffer {
  const head = [BMC_ADDRESS, netFn << 2];
  const body = [CONSOLE_ADDRESS, sequence << 2, command, ...data];
  return Buffer.from([...head, checksum(head), ...body, checksum(body)]);
}

/**
 * Parses the answer to a request.
 *
 * @returns undefined if it answers another request or is too short. The caller decides about `checksumsHold`: some BMCs
 * send wrong checksums, which matters only if the message is not authenticated.
 */
export function parseResponse(
  message: Buffer,
  { netFn, command }: Request,
  sequence: number,
): (Response & { checksumsHold: boolean }) | undefined {
  if (message.length < RESPONSE_BYTES_MIN) return undefined;
  const isOurs =
    message[0] === CONSOLE_ADDRESS &&
    message.readUInt8(1) >> 2 === (netFn | 1) &&
    message[3] === BMC_ADDRESS &&
    message.readUInt8(4) >> 2 === sequence &&
    message[5] === command;
  if (!isOurs) return undefined;
  const checksumsHold = sumsToZero(message.subarray(0, 3)) && sumsToZero(message.subarray(3));
  return { completionCode: message.readUInt8(6), data: message.subarray(7, -1), checksumsHold };
}

/** Parses a request like a BMC; undefined for anything but a valid request to the BMC. */
export function parseRequest(message: Buffer): (Request & { sequence: number }) | undefined {
  if (message.length < REQUEST_BYTES_MIN || message[0] !== BMC_ADDRESS) return undefined;
  if (!sumsToZero(message.subarray(0, 3)) || !sumsToZero(message.subarray(3))) return undefined;
  return {
    netFn: message.readUInt8(1) >> 2,
    command: message.readUInt8(5),
    data: [...message.subarray(6, -1)],
    sequence: message.readUInt8(4) >> 2,
  };
}

/** An answer on the wire, as a BMC sends it. */
export function encodeResponse(
  { netFn, command, sequence }: { netFn: number; command: number; sequence: number },
  completionCode: number,
  data: readonly number[],
): Buffer {
  const head = [CONSOLE_ADDRESS, (netFn | 1) << 2];
  const body = [BMC_ADDRESS, sequence << 2, command, completionCode, ...data];
  return Buffer.from([...head, checksum(head), ...body, checksum(body)]);
}

/** Two's complement of the sum, so that all bytes together sum to zero. */
function checksum(bytes: readonly number[]): number {
  return -bytes.reduce((sum, byte) => sum + byte, 0) & 0xff;
}

/** Whether the checksum at the end of the bytes is correct. */
export function sumsToZero(bytes: Uint8Array): boolean {
  return (bytes.reduce((sum, byte) => sum + byte, 0) & 0xff) === 0;
}
