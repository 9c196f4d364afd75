// Failures that a command reports in one line; anything else is a defect and comes with its stack.

/** The command did not achieve what was asked. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}

/** A safety rule, or the user who was asked, forbids it: nothing was ordered. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

/** Something went wrong while the command ran. */
export const EXIT_FAILURE = 1;
/** The command line itself is wrong: nothing was done. */
export const EXIT_USAGE = 2;
/** Refused: nothing was ordered. */
export const EXIT_REFUSED = 3;
