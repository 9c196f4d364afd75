import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { run } from "./run.ts";

// Builds programs of other projects from their Go modules. go.mod and go.sum of a folder pin versions and checksums.

const BUILD_TIMEOUT_MS = 25 * 60_000;
const LIST_TIMEOUT_MS = 5 * 60_000;

/** The first `go` on PATH, else the one in the default folder of Go's installer. */
export function findGo(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/go/bin"];
  return folders.map((folder) => join(folder, "go")).find((path) => existsSync(path));
}

/** Builds a static binary without paths of this machine. */
export async function goBuild(
  go: string,
  build: { folder: string; packagePath: string; output: string; ldflags: string },
  signal: AbortSignal,
): Promise<void> {
  // Builds under another name first, so that an interrupted build leaves no partial binary that the next run would use.
  const partial = `${build.output}.part`;
  // The binary must depend only on its sources, so it contains none of our commits. This also works in a clone that
  // another user owns.
  const flags = ["-trimpath", "-buildvcs=false", "-ldflags", build.ldflags];
  await run(go, ["build", ...flags, "-o", partial, build.packagePath], {
    cwd: build.folder,
    env: { CGO_ENABLED: "0" },
    timeoutMs: BUILD_TIMEOUT_MS,
    signal,
  });
  await rename(partial, build.output);
}

/** The folder with the source of a module that go.mod requires. It is downloaded if it is missing. */
export async function moduleSource(go: string, folder: string, module: string, signal: AbortSignal): Promise<string> {
  const listed = await run(go, ["list", "-m", "-f", "{{.Dir}}", module], {
    cwd: folder,
    env: {},
    timeoutMs: LIST_TIMEOUT_MS,
    signal,
  });
  return listed.trim();
}
