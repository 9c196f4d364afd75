import { CommandFailure } from "../errors/failures.ts";

/** Ends the enrolment. @throws CommandFailure */
export function failEnrolment(why: string): never {
  throw new CommandFailure("EnrolmentFailed", `nothing is enrolled: ${why}`);
}
