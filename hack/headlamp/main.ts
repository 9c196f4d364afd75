import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { Chronicle } from "../demo/chronicle.ts";
import { observe } from "../demo/observe.ts";
import { isReady } from "../demo/ready.ts";
import { play, SCENES } from "../demo/scenes.ts";
import { startWorld } from "../demo/world.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { startAgent } from "../lib/agent-process.ts";
import { parseOptions } from "../lib/options.ts";

const HELP = `Installs, checks, tests and builds the Headlamp plugin in plugins/headlamp.

  npm run headlamp

The first run downloads about 850 MB of packages, which takes minutes. The tests render the views with objects from the API server of the demo after its outages. The built plugin is in plugins/headlamp/dist.
`;

const PLUGIN = fileURLToPath(new URL("../../plugins/headlamp", import.meta.url));
const READY_TIMEOUT_MS = 30_000;
const STEP_TIMEOUT_MS = 15 * 60_000;
/** Packages must not run install scripts, as in the repository itself. */
const INSTALL = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

const values = parseOptions({ help: { type: "boolean", short: "h", default: false } });
if (values.help) {
  process.stdout.write(HELP);
} else {
  await npm(INSTALL);
  await npm(["run", "tsc"]);
  await npm(["run", "lint"]);
  await withDemo((url) => npm(["test"], { IRONFENCE_API: url }));
  await npm(["run", "build"]);
}

/** Runs npm in the plugin's folder. @throws Error if it fails or takes too long. */
async function npm(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> {
  process.stdout.write(`== plugins/headlamp: npm ${args.join(" ")}\n`);
  const child = spawn("npm", args, {
    cwd: PLUGIN,
    env: { ...process.env, ...env },
    stdio: "inherit",
    timeout: STEP_TIMEOUT_MS,
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`npm ${args.join(" ")} in plugins/headlamp ended with ${code ?? "a signal"}`);
}

/** Runs the demo, and passes the address of its API server without TLS to `use`. */
async function withDemo(use: (url: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-headlamp-"));
  const world = await startWorld(folder);
  const chronicle = new Chronicle(systemClock);
  const agent = startAgent({ kubeconfig: world.kubeconfigPath, logFile: join(folder, "agent.log") });
  const observed = observe(world, chronicle);
  const plain = await startKubeMock({ clock: systemClock, random: systemRandom, server: world.server });
  try {
    process.stdout.write("== the demo\n");
    if (!(await chronicle.until(() => isReady(world), READY_TIMEOUT_MS))) throw new Error("the demo was not ready");
    for (const [index, scene] of SCENES.entries()) {
      const { problems } = await play(scene, index + 1, world, chronicle);
      if (problems.length > 0) throw new Error(`scene ${index + 1} of the demo: ${problems.join("; ")}`);
    }
    await use(plain.url);
  } finally {
    observed.stop();
    await agent.stop();
    await plain.close();
    await world.stop();
    await rm(folder, { recursive: true });
  }
}
