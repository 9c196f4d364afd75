import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";

/** How long a child may take to end by itself before it is killed. */
const STOP_TIMEOUT_MS = 5_000;
const LOG_TAIL_LINES = 15;

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** The file with its standard output and error. */
  readonly logFile: string;
  /** Resolves with a message when the process has ended. */
  readonly ended: Promise<string>;
  readonly running: boolean;
  kill(signal: NodeJS.Signals): void;
  /** Asks the process to end, kills it after a timeout, and waits until it has ended. */
  stop(): Promise<void>;
}

// Kills children at exit, because a child that outlives this process would hold ports and use a core. `exit` handlers
// must be synchronous.
const alive = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});
// The test runner ends test files with SIGTERM, which would skip `exit` handlers. Commands have their own signal
// handlers.
if (process.argv[1]?.endsWith(".test.ts") === true) process.once("SIGTERM", () => process.exit(143));

/** Starts a long-running program; it is killed, by its process id, at the latest when this process exits. */
export function startChild(
  name: string,
  command: string,
  args: readonly string[],
  options: { logFile: string; env?: Readonly<Record<string, string>>; cwd?: string },
): Child {
  const log = openSync(options.logFile, "w");
  const child = spawn(command, args, {
    stdio: ["ignore", log, log],
    env: { ...process.env, ...options.env },
    cwd: options.cwd,
  });
  closeSync(log);
  alive.add(child);
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => {
      alive.delete(child);
      resolve(`${name} did not start: ${error.message}`);
    });
    child.once("exit", (code, signal) => {
      alive.delete(child);
      resolve(`${name} ended with ${signal ?? code}; the end of ${options.logFile}:\n${tail(options.logFile)}`);
    });
  });
  return {
    name,
    pid: child.pid ?? -1,
    logFile: options.logFile,
    ended,
    get running() {
      return alive.has(child);
    },
    kill: (signal) => {
      child.kill(signal);
    },
    stop: async () => {
      if (!alive.has(child)) return;
      child.kill("SIGTERM");
      const killer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(killer);
    },
  };
}

/** The last lines of a log, for error messages. */
export function tail(logFile: string): string {
  try {
    return readFileSync(logFile, "utf8").trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
  } catch {
    return "(no log)";
  }
}
