import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { parseDurationMs } from "../../../src/runtime/duration.ts";
import type { Coverage } from "./coverage.ts";
import { addUp, noCoverage, tables } from "./coverage.ts";
import type { Finding } from "./explorer.ts";
import { explore, tellFinding } from "./explorer.ts";
import { ALL_SCENARIOS, ENDLESS, MODES } from "./modes.ts";
import { play } from "./play.ts";
import type { Run } from "./run.ts";
import { rackOf, walkOf, worldOf } from "./walk.ts";

const USAGE = `npm run sim -- [options]

Plays fences in simulated clusters with faults of every kind, and checks the safety rules after every step
(docs/evidence/simulation.md). Ends with 1 if a rule is broken.

  --budget 30m        how long (1m)
  --mode NAME         one kind of exploration, may be given several times: ${Object.keys(MODES).join(", ")}
  --scenario NAME     one scenario, may be given several times: ${ALL_SCENARIOS.join(", ")}
  --from N            first seed of the random runs (drawn from the time)
  --workers N         threads (${availableParallelism()})
  --seed N            plays the random run of that seed and prints its story
  --rack N            plays the run of mode rack with that seed and prints its story
  --world N           plays the run of mode world with that seed and prints its story
  --replay JSON       plays a run that was printed, and prints its story
  --record FILE       with one of the last four: writes the log of decisions, for ironfence replay FILE
`;

const PROGRESS_MS = 10_000;
/** The first argument of a worker; its share is the second. */
const WORK = "work";

interface Share {
  modes: readonly string[];
  names: readonly string[];
  seed: number;
  share: number;
  of: number;
  endMs: number;
}

/** A message of a worker: its progress, or a broken rule. */
type Report = { coverage: Coverage } | { finding: Finding };

const [first, share] = process.argv.slice(2);
if (first === WORK && share !== undefined) await work(JSON.parse(share) as Share);
else process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      budget: { type: "string", default: "1m" },
      mode: { type: "string", multiple: true },
      scenario: { type: "string", multiple: true },
      from: { type: "string" },
      workers: { type: "string", default: String(availableParallelism()) },
      seed: { type: "string" },
      rack: { type: "string" },
      world: { type: "string" },
      replay: { type: "string" },
      record: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.replay !== undefined) return tellRun(JSON.parse(values.replay) as Run, values.record);
  if (values.seed !== undefined) return tellRun(walkOf(Number(values.seed)), values.record);
  if (values.rack !== undefined) return tellRun(rackOf(Number(values.rack)), values.record);
  if (values.world !== undefined) return tellRun(worldOf(Number(values.world)), values.record);
  const budgetMs = parseDurationMs(values.budget);
  if (budgetMs === undefined) throw new Error(`--budget: "${values.budget}" is not a duration such as 30m`);
  const names = values.scenario ?? ALL_SCENARIOS;
  // If a scenario is named, modes with random runs are left out.
  const modes =
    values.mode ?? Object.keys(MODES).filter((mode) => values.scenario === undefined || !ENDLESS.includes(mode));
  const seed = Number(values.from ?? Date.now() % 1_000_000_000);
  const of = Number(values.workers);
  console.log(`random runs begin with seed ${seed}; ${of} workers, ${values.budget}`);
  const endMs = Date.now() + budgetMs;
  const coverages = new Map<number, Coverage>();
  const findings: Finding[] = [];
  const startedMs = Date.now();
  const total = (): Coverage => {
    const sum = noCoverage();
    for (const coverage of coverages.values()) addUp(sum, coverage);
    return sum;
  };
  const progress = setInterval(() => {
    const { runs, fences, byMode } = total();
    const seconds = (Date.now() - startedMs) / 1_000;
    const rate = `${(runs / seconds).toFixed(1)} runs and ${(fences / seconds).toFixed(1)} fences a second`;
    const byNow = Object.entries(byMode).map(([mode, times]) => `${mode} ${times}`);
    console.log(`${Math.round(seconds)} s: ${runs} distinct runs, ${fences} fences, ${rate}: ${byNow.join(", ")}`);
  }, PROGRESS_MS);
  const onReport = (share: number, report: Report): void => {
    if ("coverage" in report) coverages.set(share, report.coverage);
    else findings.push(report.finding);
    if ("finding" in report) console.log(`\n${tellFinding(report.finding)}\n`);
  };
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort(new Error(name)));
  const workers = Array.from({ length: of }, (_, share) =>
    startWorker({ modes, names, seed, share, of, endMs }, (report) => onReport(share, report), stop.signal),
  );
  try {
    await Promise.all(workers);
  } finally {
    clearInterval(progress);
  }
  const coverage = total();
  console.log(`\n${tables(coverage)}\n`);
  const hours = (coverage.virtualMs / 3_600_000).toFixed(1);
  console.log(`${coverage.runs} distinct runs, ${coverage.fences} simulated fences, ${hours} h of simulated time`);
  console.log(findings.length === 0 ? "no rule was broken" : `${findings.length} rules were broken, as printed above`);
  return findings.length === 0 ? 0 : 1;
}

/** Plays one run and prints its story. */
async function tellRun(run: Run, file: string | undefined): Promise<number> {
  const log: string[] = [];
  const record = (line: string): void => void log.push(line);
  const { story, violations, verdicts } = await play(run, { story: true, ...(file !== undefined && { record }) });
  if (file !== undefined) await writeFile(file, log.join(""));
  for (const line of story) console.log(line);
  console.log(`verdicts: ${verdicts.join(", ") || "none"}`);
  for (const { invariant, atMs, what } of violations) {
    console.log(`${invariant} is broken at ${(atMs / 1_000).toFixed(2)} s: ${what}`);
  }
  return violations.length === 0 ? 0 : 1;
}

/** @param signal ends the worker early. What it has reported still counts. */
async function startWorker(share: Share, onReport: (report: Report) => void, signal: AbortSignal): Promise<void> {
  // The worker has its own process group, so Ctrl-C ends the main process, which then ends the workers.
  const worker = fork(new URL(import.meta.url), [WORK, JSON.stringify(share)], { detached: true });
  worker.on("message", (report) => onReport(report as Report));
  signal.addEventListener("abort", () => worker.kill("SIGKILL"), { once: true });
  const [code] = await once(worker, "exit");
  if (code !== 0 && !signal.aborted) throw new Error(`a worker ended with ${String(code)}`);
}

/** Plays one worker's share, and reports to the main process every second. */
async function work({ endMs, ...options }: Share): Promise<void> {
  // Thousands of calls in a run fail as expected, and nothing needs their stack traces.
  Error.stackTraceLimit = 0;
  process.once("disconnect", () => process.exit());
  let toldMs = 0;
  let now: Run | undefined;
  // Code in a run waits only for promises and the virtual clock. If the process ends because nothing is left to run,
  // the run is reported.
  process.once("exit", (code) => {
    if (code !== 0) console.error(`the worker ended with ${code} in ${JSON.stringify(now)}`);
  });
  const { coverage } = await explore({
    ...options,
    goesOn: () => Date.now() < endMs,
    onBegin: (run) => (now = run),
    onRun: (coverage) => {
      if (Date.now() - toldMs < 1_000) return;
      toldMs = Date.now();
      process.send?.({ coverage } satisfies Report);
    },
    onFinding: (finding) => process.send?.({ finding } satisfies Report),
  });
  process.send?.({ coverage } satisfies Report);
  process.disconnect();
}
