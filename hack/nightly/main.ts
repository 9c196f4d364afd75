import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import { runTiers } from "./run-tiers.ts";
import { TIERS } from "./tiers.ts";

const USAGE = `npm run nightly -- [options]

Runs the checks that take too long for .ci/run, one after the other, and prints the results at the end. If a tier fails, the others still run. Exits with 1 if a tier failed or could not run. Run .ci/run once before: it
installs what the end-to-end tests need.

  --only NAME   one tier; may be given several times
  --list        prints the tiers and runs nothing

Tiers: ${TIERS.map(({ name }) => name).join(", ")}
`;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    list: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
const unknown = values.only?.find((name) => !TIERS.some((tier) => tier.name === name));
if (values.help) {
  process.stdout.write(USAGE);
} else if (unknown !== undefined) {
  process.stderr.write(`error: there is no tier ${unknown}\n\n${USAGE}`);
  process.exitCode = 2;
} else if (values.list) {
  for (const { name, shows, run } of TIERS) process.stdout.write(`${name}: ${shows} (npm run ${run.join(" ")})\n`);
} else {
  const chosen = TIERS.filter(({ name }) => values.only?.includes(name) ?? true);
  const report = await runTiers(chosen, start, (text) => process.stdout.write(`${text}\n`));
  process.exitCode = report.every(({ result }) => result === "passed") ? 0 : 1;
}

/** Runs a script of package.json in this terminal. @returns its exit code; null after the timeout. */
function start(run: readonly string[], timeoutMs: number): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn("npm", ["run", ...run], { stdio: "inherit", timeout: timeoutMs });
    child.once("error", reject);
    child.once("close", resolve);
  });
}
