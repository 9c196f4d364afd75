import type { ErrorCode } from "./error-codes.ts";

// Failures that a command reports in one line; anything else is a defect and comes with its stack.

/** The command did not achieve what was asked. Its message names the object, the cause and the next step. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/**
 * A safety rule, or the answer of the user, forbids the command: nothing was ordered. Its message names the object and
 * the reason.
 */
export class CommandRefusal extends Error {
  override readonly name = "CommandRefusal";
  readonly code: "Refused" | "NotConfirmed" | "ObjectNotFound";

  constructor(code: CommandRefusal["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** Something went wrong while the command ran. */
export const EXIT_FAILURE = 1;
/** The command line itself is wrong: nothing was done. */
export const EXIT_USAGE = 2;
/** Refused: nothing was ordered. */
export const EXIT_REFUSED = 3;
