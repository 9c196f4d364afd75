#!/usr/bin/env node
import { runCli } from "./cli/app.ts";
import type { CliContext } from "./cli/context.ts";
import { CommandFailure } from "./cli/failures.ts";
import { openTerminal } from "./cli/terminal.ts";
import { systemClock, systemRandom } from "./runtime/system.ts";

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => stop.abort(new CommandFailure(`stopped by ${name}`)));
}
// A reader that goes away (`ironfence status | head`) ends the output, not the program with a stack trace.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

// Node leaves the exit code undefined until it is set; the command-line library uses null.
const cliProcess: CliContext["process"] = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  get exitCode() {
    return process.exitCode ?? null;
  },
  set exitCode(code) {
    process.exitCode = code ?? undefined;
  },
};
const context: CliContext = {
  process: cliProcess,
  clock: systemClock,
  random: systemRandom,
  signal: stop.signal,
  terminal: openTerminal(process.stdin, process.stderr),
};
await runCli(process.argv.slice(2), context);
