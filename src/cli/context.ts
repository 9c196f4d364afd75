import type { ApplicationContext } from "@stricli/core";
import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Terminal } from "./terminal.ts";

/** What commands get from the process they run in. */
export interface CliContext extends ApplicationContext {
  readonly process: ApplicationContext["process"] & { readonly env: Readonly<Partial<Record<string, string>>> };
  readonly clock: Clock;
  readonly random: Random;
  /** Aborts when the process is asked to stop (SIGINT, SIGTERM). */
  readonly signal: AbortSignal;
  /** Who can be asked; undefined where nobody is there. */
  readonly terminal: Terminal | undefined;
}

/** Prints one line on standard output. */
export function printLine(context: CliContext, line: string): void {
  context.process.stdout.write(`${withoutControls(line)}\n`);
}

/** Prints one line on standard error: progress; standard output stays data. */
export function printNote(context: CliContext, line: string): void {
  context.process.stderr.write(`${withoutControls(line)}\n`);
}

/** BMCs and objects hold text of others: it must not move the cursor, nor begin a line that looks like ours. */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, "?");
}
