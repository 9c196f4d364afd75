import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setTimeout as delay } from "node:timers/promises";
import type { Child } from "./processes.ts";
import { startChild, tail } from "./processes.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/**
 * Starts `ironfence dashboard` as a user would, on a free port. @returns the process and the address that it printed.
 */
export async function startDashboard(options: {
  kubeconfig: string;
  logFile: string;
}): Promise<{ child: Child; url: string }> {
  const { kubeconfig, logFile } = options;
  const child = startChild("ironfence dashboard", process.execPath, [MAIN, "dashboard", "--kubeconfig", kubeconfig], {
    logFile,
  });
  const endMs = performance.now() + START_TIMEOUT_MS;
  while (child.running && performance.now() < endMs) {
    const [url] = /^http:\/\/127\.0\.0\.1:\d+\/open\?key=\S+$/m.exec(readFileSync(logFile, "utf8")) ?? [];
    if (url !== undefined) return { child, url };
    await delay(POLL_MS);
  }
  await child.stop();
  throw new Error(`ironfence dashboard printed no address:\n${tail(logFile)}`);
}
