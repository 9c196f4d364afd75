import type { CliContext } from "./context.ts";
import { printNote } from "./context.ts";
import { CommandRefusal } from "../errors/failures.ts";

/**
 * Prints the concerns about an order and asks the user to agree to it.
 *
 * @param concerns if there are none, nothing is asked.
 * @param agreed the user has agreed beforehand (`--yes`).
 * @throws CommandRefusal if the answer is not yes, or if there is no terminal.
 */
export async function confirm(
  context: CliContext,
  order: string,
  concerns: readonly string[],
  agreed: boolean,
): Promise<void> {
  for (const concern of concerns) printNote(context, `! ${concern}`);
  if (concerns.length === 0 || agreed) return;
  if (context.terminal === undefined) {
    throw new CommandRefusal(
      "NotConfirmed",
      `${order}: refused, since ${concerns.join("; and ")}. Nothing was ordered; --yes agrees to it`,
    );
  }
  const answer = await context.terminal.ask(`${order}? Type yes: `, { echo: true }, context.signal);
  if (answer.trim().toLowerCase() !== "yes") {
    throw new CommandRefusal(
      "NotConfirmed",
      `${order}: not confirmed, so nothing was ordered; answer yes, or give --yes`,
    );
  }
}
