import { printable } from "../../runtime/text/printable.ts";

/**
 * Why a BMC call failed. The set is closed: callers decide on the code alone.
 *
 * | code | meaning | try again |
 * |---|---|---|
 * | Unreachable | no connection, or it broke before an answer | yes |
 * | Timeout | no answer by the deadline; the order may or may not have taken effect | yes, after reading the state |
 * | TlsUntrusted | certificate not trusted, or not the pinned one | no |
 * | AuthFailed | user or password refused | no: more tries lock accounts |
 * | PrivilegeTooLow | the account may log in, but not do this | no |
 * | SystemNotFound | the named System or outlet does not exist, or another host answers | no |
 * | SystemAmbiguous | more than one System and none chosen | no |
 * | Unsupported | the BMC does not offer the operation | no |
 * | Busy | the BMC cannot answer now (not ready, rate limited, session table full) | yes |
 * | Refused | the BMC refused the operation in its present state | yes, after reading the state |
 * | BadResponse | an answer that breaks the protocol, or a bound on size, depth or length | yes |
 * | Aborted | the caller's signal aborted, or this process may no longer send orders | no |
 */
export type BmcErrorCode =
  | "Unreachable"
  | "Timeout"
  | "TlsUntrusted"
  | "AuthFailed"
  | "PrivilegeTooLow"
  | "SystemNotFound"
  | "SystemAmbiguous"
  | "Unsupported"
  | "Busy"
  | "Refused"
  | "BadResponse"
  | "Aborted";

const RETRYABLE: ReadonlySet<BmcErrorCode> = new Set(["Unreachable", "Timeout", "Busy", "Refused", "BadResponse"]);

/**
 * The one error class of `src/bmc`. Its message names the device, the step and the cause, and never contains a secret.
 * Parts of it come from the BMC, and are shown in conditions and Events, so control characters are removed.
 */
export class BmcError extends Error {
  override readonly name = "BmcError";
  readonly code: BmcErrorCode;
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean;

  constructor(code: BmcErrorCode, message: string, options?: { cause?: unknown }) {
    super(printable(message), options);
    this.code = code;
    this.retryable = RETRYABLE.has(code);
  }
}

/** The failure of an order that was not sent because this process has lost its lease. */
export function orderNotAllowed(what: string): BmcError {
  return new BmcError("Aborted", `${what} was not sent: this process may no longer send orders`);
}
