import { readFile } from "node:fs/promises";
import { delimiter } from "node:path";
import { run } from "../lib/run.ts";

const LIST = new URL("debian-packages.txt", import.meta.url);
const CHECK_TIMEOUT_MS = 30_000;

/**
 * Looks for the programs of debian-packages.txt on PATH and in the sbin folder, which it adds to the PATH of this
 * process.
 *
 * @throws Error that says what to install.
 */
export async function requireDebianPackages(signal: AbortSignal): Promise<void> {
  process.env.PATH = [process.env.PATH ?? "", "/usr/sbin"].join(delimiter);
  const missing: string[] = [];
  for (const line of (await readFile(LIST, "utf8")).split("\n")) {
    const [, name, check] = /^([a-z]\S*)\s+(.+)$/.exec(line) ?? [];
    if (name === undefined || check === undefined) continue;
    await run("sh", ["-c", check], { env: {}, timeoutMs: CHECK_TIMEOUT_MS, signal }).catch(() => missing.push(name));
  }
  signal.throwIfAborted();
  if (missing.length > 0) {
    throw new Error(
      `what others wrote is missing (Debian: apt-get install --no-install-recommends ${missing.join(" ")})`,
    );
  }
}
