import { BmcError } from "../../interface/errors.ts";
import type { BmcErrorCode } from "../../interface/errors.ts";

/** Completion codes that decide the next step (IPMI 2.0, table 5-2). */
export const COMPLETION = { ok: 0x00, busy: 0xc0, duplicate: 0xcf, unspecified: 0xff } as const;

type Meaning = readonly [code: BmcErrorCode, words: string];

/**
 * The meanings of completion codes. After C3h, CEh and CFh only a reading shows whether the command was carried out.
 */
const COMPLETION_MEANINGS: Readonly<Record<number, Meaning>> = {
  0xc0: ["Busy", "node busy"],
  0xc1: ["Unsupported", "invalid command"],
  0xc2: ["Unsupported", "command invalid for this LUN"],
  0xc3: ["Timeout", "the BMC timed out while processing"],
  0xc4: ["Busy", "out of space"],
  0xc7: ["Unsupported", "request data length invalid"],
  0xc8: ["Unsupported", "request data too long"],
  0xc9: ["Unsupported", "parameter out of range"],
  0xcb: ["Unsupported", "requested record not present"],
  0xcc: ["Unsupported", "invalid data field in request"],
  0xce: ["Timeout", "response could not be provided"],
  0xcf: ["Timeout", "taken for a duplicate"],
  0xd0: ["Busy", "SDR repository in update mode"],
  0xd1: ["Busy", "firmware in update mode"],
  0xd2: ["Busy", "BMC initialization in progress"],
  0xd4: ["PrivilegeTooLow", "insufficient privilege level"],
  0xd5: ["Refused", "not supported in present state"],
  0xd6: ["Unsupported", "command disabled"],
};

/** The failure for a completion code other than 0. @param what device and step, for the message. */
export function completionFailure(what: string, completionCode: number): BmcError {
  const [code, words] = COMPLETION_MEANINGS[completionCode] ?? ["Refused", "refused"];
  return new BmcError(code, `${what}: completion code ${hex(completionCode)}: ${words}`);
}

/** Status codes of RMCP+ that occur (table 13-15). */
const STATUS_MEANINGS: Readonly<Record<number, Meaning>> = {
  0x01: ["Busy", "no session is free"],
  0x02: ["BadResponse", "invalid session id"],
  0x03: ["Unsupported", "invalid payload type"],
  0x04: ["Unsupported", "invalid authentication algorithm"],
  0x05: ["Unsupported", "invalid integrity algorithm"],
  0x06: ["Unsupported", "no matching authentication payload"],
  0x07: ["Unsupported", "no matching integrity payload"],
  0x08: ["BadResponse", "inactive session id"],
  0x09: ["PrivilegeTooLow", "invalid role"],
  0x0a: ["PrivilegeTooLow", "unauthorized role or privilege level"],
  0x0b: ["Busy", "no session is free for this role"],
  0x0c: ["AuthFailed", "invalid length of the user name"],
  0x0d: ["AuthFailed", "user name refused"],
  0x0e: ["BadResponse", "unauthorized GUID"],
  0x0f: ["AuthFailed", "user or password refused"],
  0x10: ["Unsupported", "invalid confidentiality algorithm"],
  0x11: ["Unsupported", "no such cipher suite"],
  0x12: ["BadResponse", "invalid parameter"],
};

/** The BMC refused one step of a login. */
export class LoginRefusal extends BmcError {
  /** RMCP+ status code; never 0. */
  readonly status: number;

  constructor(what: string, status: number) {
    const [code, words] = STATUS_MEANINGS[status] ?? ["BadResponse", "unknown status"];
    super(code, `${what}: RMCP+ status ${hex(status)}: ${words}`);
    this.status = status;
  }
}

function hex(byte: number): string {
  return `${byte.toString(16).toUpperCase().padStart(2, "0")}h`;
}
