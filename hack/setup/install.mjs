// Runs before every npm script, on whatever Node the machine has (20 or newer): installs the locked packages, the pinned
// Node among them, unless that was done for this very lock file. Plain JavaScript, since type stripping may be missing.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const root = fileURLToPath(new URL("../..", import.meta.url));
// `npm ci` empties node_modules, so the stamp never outlives what it speaks of.
const stampFile = join(root, "node_modules", ".ironfence-installed");
const platform = `${process.platform}-${process.arch}`;

function textOf(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

const lock = createHash("sha256")
  .update(textOf(join(root, "package-lock.json")) ?? "")
  .digest("hex");
const wanted = `${platform} ${lock}`;

if (textOf(stampFile) !== wanted) {
  process.stderr.write("ironfence: installing the locked npm packages (10 to 20 s, once) …\n");
  const startedMs = performance.now();
  // No package runs a script of its own; in .npmrc the option would turn off the scripts that lead here, too.
  const result = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (result.status !== 0) {
    process.stderr.write("ironfence: `npm ci` failed; see the lines above. Is the npm registry within reach?\n");
    process.exit(1);
  }
  writeFileSync(stampFile, wanted);
  process.stderr.write(`ironfence: packages installed in ${((performance.now() - startedMs) / 1000).toFixed(1)} s\n`);
}
