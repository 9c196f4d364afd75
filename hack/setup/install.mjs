// Runs before every npm script, on the Node of the machine (20 or newer). It installs the locked packages, including
// the pinned Node, unless they are installed for this lock file already. It is plain JavaScript, because that Node may
// not strip types.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const root = fileURLToPath(new URL("../..", import.meta.url));
// `npm ci` empties node_modules, so the stamp is deleted together with the packages.
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
  // Packages must not run install scripts. Set in .npmrc, the option would also disable the npm scripts that start this
  // file.
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
