import { spawn } from "node:child_process";

/** How much of a failed command's output is shown. */
const OUTPUT_TAIL_CHARS = 4_000;

export interface RunOptions {
  cwd?: string;
  /** Added to this process's environment. */
  env: Readonly<Record<string, string>>;
  timeoutMs: number;
  signal: AbortSignal;
}

/**
 * Runs a command to its end.
 *
 * @returns its standard output.
 * @throws Error with the end of its output if it fails, `signal` aborts, or it takes longer than `timeoutMs`.
 */
export async function run(command: string, args: readonly string[], options: RunOptions): Promise<string> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    signal: AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]),
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code !== 0) {
    const tail = `${stdout}${stderr}`.slice(-OUTPUT_TAIL_CHARS).trim();
    throw new Error(`${command} ${args.join(" ")} ended with ${code ?? "a signal"}:\n${tail}`);
  }
  return stdout;
}
