// Runs before every npm script, on whatever Node the machine has (20 or newer): installs the locked packages, the pinned
// Node among them, when node_modules does not match package-lock.json. Plain JavaScript, since type stripping may be missing.
import { readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The packages that a lock file names, with their versions; undefined where the file is missing or damaged. */
function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(join(root, file), "utf8")).packages;
  } catch {
    return undefined;
  }
}

/** Whether every package that the lock file wants on this platform is installed in the wanted version. */
function installed() {
  const wanted = packagesOf("package-lock.json");
  const present = packagesOf("node_modules/.package-lock.json");
  if (wanted === undefined || present === undefined) return false;
  return Object.entries(wanted).every(([path, pkg]) => {
    if (path === "") return true;
    const here = present[path];
    // npm leaves out optional packages of other platforms.
    if (here === undefined) return pkg.optional === true && !fitsPlatform(pkg);
    return here.version === pkg.version && here.integrity === pkg.integrity;
  });
}

function fitsPlatform(pkg) {
  const fits = (list, value) => list === undefined || list.includes(value);
  return fits(pkg.os, process.platform) && fits(pkg.cpu, process.arch);
}

if (!installed()) {
  process.stderr.write("ironfence: installing the locked npm packages (about 10 s, once) …\n");
  const startedMs = performance.now();
  const result = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (result.status !== 0) {
    process.stderr.write("ironfence: `npm ci` failed; see the lines above. Is the npm registry within reach?\n");
    process.exit(1);
  }
  process.stderr.write(`ironfence: packages installed in ${((performance.now() - startedMs) / 1000).toFixed(1)} s\n`);
}
