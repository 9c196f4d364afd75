import type { ApplicationContext } from "@stricli/core";
import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withoutControls } from "../../runtime/text/printable.ts";
import type { Random } from "../../runtime/random.ts";
import type { Terminal } from "./terminal.ts";

/** What the process gives to commands. */
export interface CliContext extends ApplicationContext {
  readonly process: ApplicationContext["process"] & { readonly env: Readonly<Partial<Record<string, string>>> };
  readonly clock: Clock;
  readonly random: Random;
  /** Opens power devices. All devices of a process share one BMC gate. */
  readonly openDevice: OpenDevice;
  /** Aborts when the process is asked to stop (SIGINT, SIGTERM, SIGHUP). */
  readonly signal: AbortSignal;
  /** The terminal, for questions to the user; undefined without one. */
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
