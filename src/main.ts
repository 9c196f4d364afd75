#!/usr/bin/env node
import { proposeCompletions, run } from "@stricli/core";
import { app, EXIT_USAGE } from "./cli/app.ts";
import type { CliContext } from "./cli/context.ts";
import { systemClock, systemRandom } from "./runtime/system.ts";

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
}
// A reader that goes away (`ironfence status | head`) ends the output, not the program with a stack trace.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

// Node leaves the exit code undefined until it is set; the command-line library speaks of null.
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
const context: CliContext = { process: cliProcess, clock: systemClock, random: systemRandom, signal: stop.signal };
const inputs = process.argv.slice(2);
if (inputs[0] === "__complete") {
  // Asked by the completion scripts: one proposal a line, its meaning behind a tab.
  const proposals = await proposeCompletions(app, inputs.slice(1), context);
  for (const { completion, brief } of proposals) process.stdout.write(`${completion}\t${brief}\n`);
} else {
  await run(app, inputs, context);
  // The command-line library has negative codes for a command line that it cannot read.
  if (Number(process.exitCode) < 0) process.exitCode = EXIT_USAGE;
}
