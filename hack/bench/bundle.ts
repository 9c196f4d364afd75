import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";

/**
 * Builds the bundle, because users run the one of the image. The sources need more memory, because Node strips their
 * types at the start.
 */
export async function bundle(folder: string): Promise<string> {
  const program = join(folder, "ironfence.js");
  await promisify(execFile)(process.execPath, [fileURLToPath(new URL("../build/main.ts", import.meta.url)), program]);
  return program;
}
