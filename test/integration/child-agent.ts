import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Child } from "../../hack/lib/processes.ts";

// Helpers for tests with an agent in a separate process.

const DEADLINE_MS = 60_000;
const POLL_MS = 50;

/**
 * Waits until `found` returns a value. @throws Error with the agent's last output if it ends first, or after a timeout.
 */
export async function until<T>(
  agent: Child,
  what: string,
  found: () => T | Promise<T>,
): Promise<Exclude<T, false | null | undefined>> {
  for (const endMs = Date.now() + DEADLINE_MS; Date.now() < endMs; await delay(POLL_MS)) {
    const result = await found();
    if (result !== undefined && result !== null && result !== false)
      return result as Exclude<T, false | null | undefined>;
    if (!agent.running) break;
  }
  throw new Error(`not in time: ${what}; ${agent.running ? readFileSync(agent.logFile, "utf8") : await agent.ended}`);
}

/** `http://HOST:PORT` of the log line with this message. */
export function addressIn(agent: Child, message: string): string | undefined {
  for (const line of readFileSync(agent.logFile, "utf8").split("\n")) {
    if (!line.includes(`"${message}"`)) continue;
    const { host, port } = JSON.parse(line) as { host: string; port: number };
    return `http://${host}:${port}`;
  }
  return undefined;
}
