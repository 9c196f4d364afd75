// Failures that a command tells in one line; anything else is a defect and comes with its stack.

/** The command did not come to what it was asked for. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}

/** A rule of safety, or the person who was asked, forbids it: nothing was ordered. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

/** Something went wrong while the command ran. */
export const EXIT_FAILURE = 1;
/** The command line itself is wrong: nothing was done. */
export const EXIT_USAGE = 2;
/** Refused: nothing was ordered. */
export const EXIT_REFUSED = 3;
