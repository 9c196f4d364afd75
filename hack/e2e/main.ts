import { globSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { AUDIT_FOLDER_VARIABLE } from "../control-plane/audit.ts";
import { KUBERNETES_VARIABLE, chooseKubernetes, prepareBinaries } from "../control-plane/binaries.ts";
import { startControlPlane } from "../control-plane/control-plane.ts";
import { prepareChartTools } from "./chart-tools.ts";
import { prepareClusterApiPeer } from "./cluster-api-peer.ts";
import { requireDebianPackages } from "./debian-packages.ts";
import { installPythonTools } from "./python-tools.ts";
import { judgeRights, readAuditLog, readRights } from "./rights.ts";
import { repositoryPath } from "./world.ts";

const HELP = `Tests the agent on real parts: etcd, kube-apiserver, controller manager, scheduler, kwok, sushy-emulator, Cluster API's
controllers; its BMC drivers on servers of other projects; and the simulated BMCs with clients and validators of other projects.

  npm run test:e2e [-- FILE…]      FILE: test files; by default test/e2e and the real half of test/conformance

  --kubernetes VERSION   on the control plane of this version, such as 1.30, instead of the newest one; without files,
                         the tests that do not need the newest one (versions: hack/control-plane/kubernetes)

A run of all files also compares the permissions in deploy with the requests of the agents (audit logs), and fails
for a permission that was never used. Every run fails for a refused call.

$IRONFENCE_E2E_AUDIT names an empty folder for these audit logs. $IRONFENCE_E2E_LOGS names a folder for the logs of the agents.
$IRONFENCE_REDFISH_SCHEMAS names the folder of DMTF's CSDL files (the csdl folder of the bundle DSP8010); by default they
are downloaded from DMTF. $IRONFENCE_E2E_FOREIGN_CRDS names a folder of CRDs that replace hack/foreign-crds in the stories
of Cluster API and Metal3, such as upstream's own.

The first run prepares what is missing: the control plane's programs ($KUBEBUILDER_ASSETS, the cache folder, or a build with
Go that takes about 7 minutes), Cluster API's controllers (3 more), Helm (3 more), and Python packages. The Debian packages in
hack/e2e/debian-packages.txt must be installed. Later runs start at once. It exits with 0 only if every test has run and passed.
`;

/** The slowest file takes about two and a half minutes if it runs alone. */
const FILE_TIMEOUT_MS = 8 * 60_000;
/** Each file has its own control plane (475 MiB) and spends most of its time waiting for boots and timeouts. */
const FILES_AT_ONCE = 2;
/** Characters of each error that are repeated at the end, where a CI system shows them. */
const FAILURE_LENGTH = 500;

/** The file that needs the controllers of Cluster API. */
const UPSTREAM = "cluster-api-upstream";
/** Files that need Helm, kubeconform or actionlint. */
const CHART = /\/(?:chart[-.]|release\.)/;
/** Files that need programs of other projects in addition to the control plane. */
const PEERS = new RegExp(`/peers/|${UPSTREAM}|${CHART.source}`);
/**
 * Files that run only on the newest version of Kubernetes. They need no cluster, compare the mock with the newest
 * version, or shorten durations with a MutatingAdmissionPolicy, which 1.33 does not serve and 1.36 does.
 */
const NEWEST_ONLY = new RegExp(`/peers/|${UPSTREAM}|conformance/real\\.|okd-stories|metal3-v1beta2`);

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
  /** The file, name and first lines of the error of each test that failed. */
  failures: string[];
}

const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));

async function runFiles(files: readonly string[], concurrency: number): Promise<Counts> {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0, failures: [] };
  const tests = run({ files: [...files], concurrency, timeout: FILE_TIMEOUT_MS, signal: stop.signal });
  tests.on("test:summary", ({ file, counts: of }) => {
    // The reporter sends one summary per file and one for all files. Only the last one counts here.
    if (file !== undefined) return;
    counts.passed = of.passed;
    counts.failed = of.tests - of.passed - of.skipped - of.todo;
    counts.skipped = of.skipped + of.todo;
  });
  tests.on("test:fail", ({ name, file, details: { error } }) => {
    // A suite fails only because a test in it does.
    if ("failureType" in error && error.failureType === "subtestsFailed") return;
    const cause = error.cause instanceof Error ? error.cause.message : String(error.cause ?? error.message);
    counts.failures.push(`${basename(file ?? "")}: ${name}: ${cause.slice(0, FAILURE_LENGTH)}`);
  });
  const lines = tests.compose(spec());
  lines.pipe(process.stdout);
  await new Promise((resolve, reject) => lines.once("end", resolve).once("error", reject));
  return counts;
}

/** Runs the API conformance suite: the same cases as against the in-memory server, on a real one without nodes. */
async function runConformance(files: readonly string[]): Promise<Counts> {
  const controlPlane = await startControlPlane({ progress, nodeMonitorGracePeriodMs: 50_000 }, stop.signal);
  try {
    process.env.IRONFENCE_E2E_KUBECONFIG = controlPlane.kubeconfig;
    process.env.IRONFENCE_E2E_ETCD = controlPlane.etcdUrl;
    return await Promise.race([runFiles(files, 1), controlPlane.failed]);
  } finally {
    await controlPlane.stop();
  }
}

/** The tests in which the API server refuses calls, each with the reason. */
const REFUSALS_EXPECTED: ReadonlySet<string> = new Set([
  // A restarted API server answers before it has read the roles.
  "api-away",
  // The permissions are deleted while the agent may still run.
  "chart-removal",
  // The agent reports which permissions it lacks.
  "late-crds",
  // One of the faults is a family without its permissions.
  "night-shift-agents",
  "night-shift-real-wait",
  // Permissions, the ServiceAccount and the namespace are deleted.
  "removal",
  // The bundle alone grants no permission to fence.
  "olm-bundle",
  // One of the mistakes is a family without its permissions.
  "twenty-mistakes",
  // Everything is deleted while an agent may still run.
  "uninstall",
  // The agent reports that it must not read a kubeconfig.
  "workload-cluster",
]);

/** Builds the programs of other projects that the files need. */
async function preparePeers(files: readonly string[]): Promise<void> {
  if (files.some((file) => file.includes(UPSTREAM))) await prepareClusterApiPeer(progress, stop.signal);
  if (files.some((file) => CHART.test(file))) await prepareChartTools(progress, stop.signal);
}

/** Prints permissions that are unused, refused or outdated. @returns whether there are none. */
async function rightsAreProven(folder: string, files: readonly string[], isComplete: boolean): Promise<boolean> {
  const logs = await Promise.all(
    readdirSync(folder).map(async (name) =>
      readAuditLog(name.split(".")[0] ?? "", await readFile(join(folder, name), "utf8")),
    ),
  );
  const without = files
    .map((file) => basename(file, ".test.ts"))
    .filter((test) => !logs.some((log) => log.test === test));
  const families = readdirSync(repositoryPath("deploy/families")).map((family) => `deploy/families/${family}`);
  const rights = await readRights(
    ["deploy/kustomize", "deploy/secure-metrics", "deploy/check", "deploy/bundle", ...families].map(repositoryPath),
  );
  const { unused, refused, outdated } = judgeRights(rights, logs, REFUSALS_EXPECTED);
  for (const test of without) progress(`permissions: there is no audit log of ${test}`);
  for (const call of refused) progress(`permissions: refused: ${call}`);
  if (isComplete) {
    for (const right of unused) progress(`permissions: granted and never used: ${right}`);
    for (const right of outdated)
      progress(`permissions: SHOWN_BY_SIMULATION is outdated: ${right} is used, or not granted`);
  }
  const calls = logs.reduce((total, log) => total + log.calls.length, 0);
  progress(`permissions: ${rights.length} are granted, ${rights.length - unused.length} were used, in ${calls} calls`);
  return (
    without.length === 0 && refused.length === 0 && calls > 0 && (!isComplete || unused.length + outdated.length === 0)
  );
}

async function main(chosen: readonly string[], kubernetes: string | undefined): Promise<number> {
  if (kubernetes !== undefined) {
    progress(`Kubernetes ${chooseKubernetes(kubernetes).version}`);
    // The processes of the test files read this variable.
    process.env[KUBERNETES_VARIABLE] = kubernetes;
  }
  const all = ["test/conformance/*real.test.ts", "test/e2e/**/*.test.ts"]
    .flatMap((pattern) => globSync(pattern, { cwd: repositoryPath("") }).sort())
    .filter((file) => kubernetes === undefined || !NEWEST_ONLY.test(file));
  const files = chosen.length > 0 ? chosen : all;
  const isConformance = (file: string): boolean => file.includes("conformance/");
  const startedMs = performance.now();
  await requireDebianPackages(stop.signal);
  await installPythonTools(progress, stop.signal);
  if (files.some((file) => !file.includes("/peers/"))) await prepareBinaries(progress, stop.signal);

  const conformance = files.filter(isConformance).map(repositoryPath);
  const withPeers = files.filter((file) => PEERS.test(file)).map(repositoryPath);
  const scenarios = files.filter((file) => !isConformance(file) && !PEERS.test(file)).map(repositoryPath);
  const withAgents = files.filter((file) => !isConformance(file) && !file.includes("/peers/"));
  process.env[AUDIT_FOLDER_VARIABLE] ??= await mkdtemp(join(tmpdir(), "ironfence-audit-"));
  const auditFolder = process.env[AUDIT_FOLDER_VARIABLE];
  await mkdir(auditFolder, { recursive: true });
  if (readdirSync(auditFolder).length > 0)
    throw new Error(`${auditFolder} has to be empty: it would count for this run`);
  // Builds these programs while tests run that do not need them, since those tests mostly wait. Builds run one after
  // the other, because each uses every core.
  const peer = preparePeers(withPeers);
  // Prevents an unhandled rejection. The promise is awaited below, where a failure ends the run.
  peer.catch(() => undefined);
  const results: Counts[] = [];
  if (conformance.length > 0) results.push(await runConformance(conformance));
  if (scenarios.length > 0) results.push(await runFiles(scenarios, FILES_AT_ONCE));
  await peer;
  if (withPeers.length > 0) results.push(await runFiles(withPeers, FILES_AT_ONCE));

  const areRightsProven =
    withAgents.length === 0 ||
    (await rightsAreProven(auditFolder, withAgents, chosen.length === 0 && kubernetes === undefined));
  const sum = (key: "passed" | "failed" | "skipped"): number =>
    results.reduce((total, counts) => total + counts[key], 0);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  for (const failure of results.flatMap(({ failures }) => failures)) progress(`failed: ${failure}`);
  progress(
    `${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped in ${files.length} files, ${seconds} s`,
  );
  // A skipped test proves nothing, and neither does a run without tests.
  const proven = sum("passed") > 0 && sum("failed") === 0 && sum("skipped") === 0 && results.length > 0;
  return proven && areRightsProven ? 0 : 1;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: "boolean", short: "h", default: false }, kubernetes: { type: "string" } },
});
if (values.help) {
  process.stdout.write(HELP);
} else {
  try {
    process.exitCode = await main(positionals, values.kubernetes);
  } catch (error) {
    progress(`could not run: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
