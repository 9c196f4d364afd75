import { appendFile, chmod, copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { bundledPackages, licenseNotice } from "../build/packages.ts";
import type { Architecture } from "../lib/node-program.ts";
import { nodeProgram } from "../lib/node-program.ts";
import { run } from "../lib/run.ts";

// Builds a single executable application
// (https://nodejs.org/docs/latest-v24.x/api/single-executable-applications.html): a copy of the Node binary with the
// bundle in an additional section.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const POSTJECT = createRequire(import.meta.url).resolve("postject/dist/cli.js");
const TIMEOUT_MS = 120_000;
/** Node's names for the section, and for the bytes that say whether it exists. */
const SECTION = "NODE_SEA_BLOB";
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

/** The command line as one file that needs no Node. @returns its contents. */
export async function buildExecutable(architecture: Architecture, signal: AbortSignal): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-executable-"));
  try {
    // Node runs the script of an executable as CommonJS.
    const bundle = join(folder, "ironfence.cjs");
    const { metafile } = await build({
      absWorkingDir: ROOT,
      entryPoints: ["src/main.ts"],
      outfile: bundle,
      bundle: true,
      platform: "node",
      target: "node24",
      format: "cjs",
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: "none",
      metafile: true,
      logLevel: "warning",
    });
    await appendFile(bundle, await licenseNotice(bundledPackages(metafile)));
    const blob = join(folder, "blob");
    const config = { main: "ironfence.cjs", output: blob, disableExperimentalSEAWarning: true };
    await writeFile(join(folder, "config.json"), JSON.stringify(config));
    const options = { cwd: folder, env: {}, timeoutMs: TIMEOUT_MS, signal };
    await run(process.execPath, ["--experimental-sea-config", "config.json"], options);
    const program = join(folder, "ironfence");
    await copyFile(await nodeProgram(architecture, signal), program);
    await chmod(program, 0o755);
    await run(process.execPath, [POSTJECT, program, SECTION, blob, "--sentinel-fuse", FUSE], options);
    return await readFile(program);
  } finally {
    await rm(folder, { recursive: true });
  }
}
