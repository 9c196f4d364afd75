import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { run } from "./run.ts";

// Programs of others, built from their modules by the versions and checksums that a folder's go.mod and go.sum pin.

const BUILD_TIMEOUT_MS = 25 * 60_000;
const LIST_TIMEOUT_MS = 5 * 60_000;

/** The first `go` on PATH, else where Go's own installer puts it. */
export function findGo(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/go/bin"];
  return folders.map((folder) => join(folder, "go")).find((path) => existsSync(path));
}

/** Builds a package, static, and without paths of this machine. */
export async function goBuild(
  go: string,
  build: { folder: string; packagePath: string; output: string; ldflags: string },
  signal: AbortSignal,
): Promise<void> {
  // A build that is cut short must not leave half a binary under the name that the next run trusts.
  const partial = `${build.output}.part`;
  // What is built depends on its sources alone: none of our commits belongs in it, and none is asked of a clone that
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

/** Where the source of a module lies that the folder's go.mod requires; fetched where it is missing. */
export async function moduleSource(go: string, folder: string, module: string, signal: AbortSignal): Promise<string> {
  const listed = await run(go, ["list", "-m", "-f", "{{.Dir}}", module], {
    cwd: folder,
    env: {},
    timeoutMs: LIST_TIMEOUT_MS,
    signal,
  });
  return listed.trim();
}
