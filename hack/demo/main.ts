import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/runtime/system.ts";
import { startAgent } from "../lib/agent-process.ts";
import { startDashboard } from "../lib/dashboard-process.ts";
import type { Child } from "../lib/processes.ts";
import { parseOptions } from "../lib/options.ts";
import { Chronicle } from "./chronicle.ts";
import { observe } from "./observe.ts";
import { isReady } from "./ready.ts";
import { renderRecording } from "./recording.ts";
import type { SceneResult } from "./scenes.ts";
import { play, SCENES } from "./scenes.ts";
import { jsonScreen, textScreen } from "./screen.ts";
import type { World } from "./world.ts";
import { startWorld } from "./world.ts";

const HELP = `Three outages on a simulated rack, with the real agent as a separate process.

  npm run demo                what happens, live; a table at the end; exit code 0 only if all went as expected
  npm run demo -- --json      one JSON object per line; the last one is {"summary":[…]}
  npm run demo -- --keep      leave everything running, for a browser and kubectl
  npm run demo -- --record docs/tutorial/pictures/demo.svg      the first scene as a picture for the README

Needs only npm: the API server and the BMCs are simulated in this process, on 127.0.0.1. Takes less than a minute.
`;

const START_TIMEOUT_MS = 15_000;
const REFRESH_PERIOD_MS = 250;
/** How often an agent that has lost its lease is started again. */
const RESTARTS_MAX = 3;
/** How long an agent that is started again may take until it leads: its predecessor's lease lasts 15 s. */
const RESTART_MS = 30_000;

const values = parseOptions({
  json: { type: "boolean", default: false },
  keep: { type: "boolean", default: false },
  record: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
});
if (values.help) process.stdout.write(HELP);
else process.exitCode = await demo(values.json, values.keep, values.record);

async function demo(json: boolean, keep: boolean, picture: string | undefined): Promise<number> {
  const screen = json ? jsonScreen(process.stdout) : textScreen(process.stdout);
  const folder = await mkdtemp(join(tmpdir(), "ironfence-demo-"));
  const logPath = join(folder, "agent.log");
  const world = await startWorld(folder);
  const chronicle = new Chronicle(systemClock);
  chronicle.subscribe((entry) => screen.entry(entry));
  screen.title("A rack of six hosts with BMCs, a Kubernetes API, a database pod with a volume on each; all simulated");
  const start = (): Child => startAgent({ kubeconfig: world.kubeconfigPath, logFile: logPath });
  let agent = start();
  chronicle.note("cluster", `ironfence run --kubeconfig ${world.kubeconfigPath} (its log: ${logPath})`);
  const observed = observe(world, chronicle);
  const refresher = setInterval(() => screen.refresh(world), REFRESH_PERIOD_MS);
  const results: SceneResult[] = [];
  let died: string | undefined;
  let stopping = false;
  const watchAgent = async (): Promise<void> => {
    for (let restarts = 0; ; restarts += 1) {
      const lastWords = await agent.ended;
      if (stopping) return;
      if (restarts === RESTARTS_MAX || !lastWords.includes("[LeaseLost]")) {
        died = lastWords;
        chronicle.note("cluster", died);
        return;
      }
      const why = "the agent lost its lease, because this machine is busy";
      chronicle.note("cluster", `${why}: it is started again, as a Deployment does`, undefined, "bad");
      chronicle.allowMore(RESTART_MS);
      agent = start();
    }
  };
  void watchAgent();
  try {
    if ((await chronicle.until(() => died !== undefined || isReady(world), START_TIMEOUT_MS)) && died === undefined) {
      chronicle.note(
        "cluster",
        "six nodes are Ready, every fencing target is Ready, the agent leads",
        undefined,
        "good",
      );
      for (const [index, scene] of SCENES.entries()) {
        screen.title(`Scene ${index + 1}: ${scene.title}`);
        results.push(await play(scene, index + 1, world, chronicle));
      }
    } else {
      results.push({ scene: "start", ok: false, stepsMs: {}, problems: [`the cluster was not ready: see ${logPath}`] });
    }
    const ok = results.every((result) => result.ok) && observed.violations.length === 0 && died === undefined;
    // After the summary, changes are made by the user and are not part of the demo.
    clearInterval(refresher);
    observed.stop();
    screen.summary(results, observed.violations);
    if (picture !== undefined) {
      const entries = chronicle.entries.filter(({ scene }) => scene === 1);
      await writeFile(picture, renderRecording("npm run demo", `Scene 1: ${SCENES[0]?.title}`, entries));
    }
    if (keep) await showAround(world, folder, json);
    return ok ? 0 : 1;
  } finally {
    clearInterval(refresher);
    observed.stop();
    // From here on the agent is expected to end. Ctrl-C has already stopped it too.
    stopping = true;
    await agent.stop();
    await world.stop();
    // After a failed run the folder stays, because the user needs the log.
    if (process.exitCode === undefined && results.every((result) => result.ok)) await rm(folder, { recursive: true });
    else process.stderr.write(`the agent's log: ${logPath}\n`);
  }
}

/** Leaves everything running until Ctrl-C. */
async function showAround(world: World, folder: string, json: boolean): Promise<void> {
  const line = (text: string): void => void (json ? process.stderr : process.stdout).write(`${text}\n`);
  const logFile = join(folder, "dashboard.log");
  const dashboard = await startDashboard({ kubeconfig: world.kubeconfigPath, logFile });
  line("\nStill running; look around in another terminal, end with Ctrl-C:");
  line(`  the dashboard: ${dashboard.url}`);
  line(`  export KUBECONFIG=${world.kubeconfigPath}`);
  line("  kubectl get nodes,nodehealthchecks; kubectl get baremetalremediations,fencingtargets -A");
  line("  npm run -s ironfence -- status");
  line(
    "  kubectl apply --validate=false -f FILE    # the simulated API serves no OpenAPI; ironfence's own schemas are still checked",
  );
  for (const [name, bmc] of world.bmcs) line(`  BMC of ${name}: ${bmc.url}/redfish/v1`);
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => resolve());
  });
  await dashboard.child.stop();
}
