import type { ApplicationContext } from "@stricli/core";
import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";

/** What commands get from the process they run in. */
export interface CliContext extends ApplicationContext {
  readonly process: ApplicationContext["process"] & { readonly env: Readonly<Partial<Record<string, string>>> };
  readonly clock: Clock;
  readonly random: Random;
  /** Aborts when the process is asked to stop (SIGINT, SIGTERM). */
  readonly signal: AbortSignal;
}

/** Prints one line on standard output. */
export function printLine(context: CliContext, line: string): void {
  context.process.stdout.write(`${line}\n`);
}
