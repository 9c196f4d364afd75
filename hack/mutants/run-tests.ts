import { spawn } from "node:child_process";
import { performance } from "node:perf_hooks";

/** The result of one test file. */
export interface TestRun {
  /** The first failure: the test, and what it says; undefined where all tests passed. */
  failed: string | undefined;
  tookMs: number;
}

/** A test that is reported, at most so many characters of it. */
const TOLD_MAX = 500;
/** How much of what a test file writes is kept, from the end, for one that ends without naming a test. */
const TAIL_MAX = 10_000;

/**
 * Runs one test file up to its first failure.
 *
 * @param folder the tree that it belongs to.
 * @param timeoutMs the file fails that has not ended by then.
 * @param env variables that it gets in addition to those of this process.
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
    // The test runner takes any other for a wish to end in order, and then says 1 as if a test had failed.
    killSignal: "SIGKILL",
    // It must not take itself for a part of another run.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let report = "";
  let failed: string | undefined;
  let tail = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    report += chunk;
    failed ??= firstFailure(report);
    // What has passed is not looked through again.
    if (!report.includes("not ok ")) report = report.slice(report.lastIndexOf("\n") + 1);
    // One is enough: what runs on, and what it has started, ends here.
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
 * The test that failed first in a TAP report, with its message; undefined while none has, or it is not reported in full
 * yet.
 */
function firstFailure(report: string): string | undefined {
  const [, indent, name, details] = /^( *)not ok \d+ - (.+)\n\1 {2}---\n([\s\S]*?)^\1 {2}\.\.\.$/m.exec(report) ?? [];
  if (indent === undefined || name === undefined || details === undefined) return undefined;
  const [, block, line] = /^ *error: (?:\|-\n([\s\S]*?)(?=^ {0,40}\w+: )|(.*)$)/m.exec(details) ?? [];
  const message = (block ?? line ?? "no message").replaceAll(/\s+/g, " ").trim();
  return `${name}: ${message}`.slice(0, TOLD_MAX);
}
