import { openDeviceOn } from "../lib/open-device.ts";
import { runCli } from "../../src/cli/app.ts";
import type { CliContext } from "../../src/cli/terminal/context.ts";
import type { Terminal } from "../../src/cli/terminal/terminal.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";

// Runs command lines in this process and captures their output.

export interface CliResult {
  out: string;
  err: string;
  code: number;
  /** Questions on the terminal, and whether the answer was echoed. */
  asked: { question: string; echo: boolean }[];
}

export interface CliOptions {
  env?: Readonly<Record<string, string>>;
  /** Answers of the user at the terminal, in order; absent if there is no terminal. */
  answers?: readonly string[];
  signal?: AbortSignal;
  /** How far the wall clock of this machine is ahead of the API server's, in milliseconds. */
  aheadMs?: number;
  /** Called with each write to standard output. */
  onLine?: (text: string) => void;
  /** Called with each line on standard error. */
  onNote?: (line: string) => void;
}

/** Runs one command line as a user would. */
export async function cli(inputs: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const result: CliResult = { out: "", err: "", code: 0, asked: [] };
  const answers = [...(options.answers ?? [])];
  const terminal: Terminal = {
    ask: (question, { echo }) => {
      result.asked.push({ question, echo });
      const answer = answers.shift();
      return answer === undefined
        ? Promise.reject(new Error(`no answer is prepared for ${question}`))
        : Promise.resolve(answer);
    },
  };
  const process: CliContext["process"] = {
    stdout: {
      write: (text: string) => {
        result.out += text;
        options.onLine?.(text);
      },
    },
    stderr: {
      write: (text: string) => {
        result.err += text;
        options.onNote?.(text);
      },
    },
    env: options.env ?? {},
    exitCode: null,
  };
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + (options.aheadMs ?? 0) };
  await runCli(inputs, {
    process,
    clock,
    random: systemRandom,
    openDevice: openDeviceOn(clock),
    signal: options.signal ?? new AbortController().signal,
    terminal: options.answers === undefined ? undefined : terminal,
  });
  return { ...result, code: Number(process.exitCode) };
}
