#!/usr/bin/env node
import { BmcGate } from "./bmc/gate/bmc-gate.ts";
import { createOpenDevice } from "./bmc/devices/open-device.ts";
import { runCli } from "./cli/app.ts";
import type { CliContext } from "./cli/terminal/context.ts";
import { CommandFailure } from "./cli/errors/failures.ts";
import { openTerminal } from "./cli/terminal/terminal.ts";
import { invocationOf } from "./cli/terminal/invocation.ts";
import { systemClock, systemRandom } from "./runtime/system.ts";

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => stop.abort(new CommandFailure("Stopped", `stopped by ${name}`)));
}
// A session that ends may send SIGHUP several times. A second one must not kill a command that undoes what it has
// begun.
process.on("SIGHUP", () => stop.abort(new CommandFailure("Stopped", "stopped by SIGHUP")));
// A failed write to stderr ends nothing: a command may still have to undo what it has begun.
process.stderr.on("error", () => undefined);
// If the reader goes away (`ironfence status | head`), exit without a stack trace.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  // EIO: the terminal was closed with its session.
  if (error.code !== "EIO") throw error;
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
  openDevice: createOpenDevice(new BmcGate(systemClock)),
  signal: stop.signal,
  terminal: openTerminal(process.stdin, process.stderr),
};
const [, path = "", ...words] = process.argv;
const { program, inputs } = invocationOf(path, words);
void runCli(inputs, context, program);
