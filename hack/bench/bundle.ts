import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";

/** Users run the bundle of the image: the sources cost more memory, since their types are stripped at the start. */
export async function bundle(folder: string): Promise<string> {
  const program = join(folder, "ironfence.js");
  await promisify(execFile)(process.execPath, [fileURLToPath(new URL("../build/main.ts", import.meta.url)), program]);
  return program;
}
