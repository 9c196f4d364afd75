import { spawn } from "node:child_process";
import { performance } from "node:perf_hooks";

/** The result of one test file. */
export interface TestRun {
  /** The first failed test with its message; undefined if all tests passed. */
  failed: string | undefined;
  tookMs: number;
}

/** The most characters of a failed test that are reported. */
const TOLD_MAX = 500;
/** How many of the last characters of the output are kept, in case a test file fails without naming a test. */
const TAIL_MAX = 10_000;

/**
 * Runs one test file up to its first failure.
 *
 * @param folder the tree that contains the test file.
 * @param timeoutMs the test file fails if it takes longer.
 * @param env variables in addition to those of this process.
 */
export async function runTests(
  folder: string,
  file: string,
  timeoutMs: number,
  signal: AbortSignal,
  env: Readonly<Record<string, string>> = {},
): Promise<TestRun> {
  const startMs = performance.now();
  const stop = new AbortController();
  const child = spawn(process.execPath, ["--test-reporter=tap", file], {
    cwd: folder,
    signal: AbortSignal.any([signal, stop.signal]),
    timeout: timeoutMs,
    // On any other signal the test runner shuts down in order and exits with 1, as if a test had failed.
    killSignal: "SIGKILL",
    // Without this, the test runner would believe that it is part of another run.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let report = "";
  let failed: string | undefined;
  let tail = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    report += chunk;
    failed ??= firstFailure(report);
    // Drops the part of the report that contains only passed tests.
    if (!report.includes("not ok ")) report = report.slice(report.lastIndexOf("\n") + 1);
    // One failure is enough. This ends the test file and the processes that it has started.
    if (failed !== undefined) stop.abort();
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (tail = (tail + chunk).slice(-TAIL_MAX)));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", (error) => {
      if (!stop.signal.aborted) reject(error);
    });
    child.once("close", resolve);
  });
  const tookMs = performance.now() - startMs;
  if (failed !== undefined) return { failed, tookMs };
  if (code === 0) return { failed: undefined, tookMs };
  if (code === null) return { failed: `no end within ${Math.round(timeoutMs / 1_000)} s`, tookMs };
  const why = /^.*Error.*$/m.exec(tail)?.[0] ?? (tail.trim() || "it wrote nothing");
  return { failed: `exit code ${code}, and no test that failed: ${why.slice(-TOLD_MAX)}`, tookMs };
}

/**
 * The first failed test in a TAP report, with its message; undefined if there is none or its report is not complete
 * yet.
 */
function firstFailure(report: string): string | undefined {
  const [, indent, name, details] = /^( *)not ok \d+ - (.+)\n\1 {2}---\n([\s\S]*?)^\1 {2}\.\.\.$/m.exec(report) ?? [];
  if (indent === undefined || name === undefined || details === undefined) return undefined;
  const [, block, line] = /^ *error: (?:\|-\n([\s\S]*?)(?=^ {0,40}\w+: )|(.*)$)/m.exec(details) ?? [];
  const message = (block ?? line ?? "no message").replaceAll(/\s+/g, " ").trim();
  return `${name}: ${message}`.slice(0, TOLD_MAX);
}
