import { readServerVersion } from "../../../kube/api-client/server-version.ts";
import { toTime } from "../../../runtime/time.ts";
import { VERSION } from "../../../runtime/version.ts";
import { runChecks } from "../../check/check.ts";
import type { Facts } from "../../check/facts.ts";
import { CHECKS } from "../../check/lines/checks.ts";
import { createTargetProbes } from "../../check/read/live-probes.ts";
import { readFacts } from "../../check/read/read-facts.ts";
import { renderJson, renderText } from "../../check/render.ts";
import { fenceExplainer } from "../../explain/fence.ts";
import { readDecisions } from "../../explain/read.ts";
import { explainCheck, explainNode } from "../../explain/words.ts";
import { problemsOf } from "../../status/problems.ts";
import { itemsOf } from "../../status/objects/object-problems.ts";
import { readOverview } from "../../status/objects/read.ts";
import { renderOverview } from "../../status/render.ts";
import type { Part, PartDeps, PartResult } from "../part.ts";

const READ_TIMEOUT_MS = 70_000;
/** The probe of a slow BMC takes minutes, and 32 BMCs are probed at the same time. */
const LIVE_TIMEOUT_MS = 240_000;
/**
 * The part of the time for the probes. The rest is for the report, which lists the targets that were not probed in
 * time.
 */
const PROBES_TIMEOUT_MS = LIVE_TIMEOUT_MS - READ_TIMEOUT_MS;

/** What ironfence concludes about the cluster: versions, status, checks, and the explanation of every node. */
export const DECISION_PARTS: readonly Part[] = [
  { name: "versions", timeoutMs: 15_000, read: readVersions },
  { name: "status", timeoutMs: READ_TIMEOUT_MS, read: readStatus },
  { name: "check", timeoutMs: READ_TIMEOUT_MS, read: readCheck },
  { name: "explain", timeoutMs: READ_TIMEOUT_MS, read: readExplanations },
];

/** The checks of `check` after a probe of every BMC, and what each probe found. */
export const LIVE_PART: Part = { name: "live", timeoutMs: LIVE_TIMEOUT_MS, read: readLive };

async function readVersions(
  { transport, runtime, cluster, options }: PartDeps,
  signal: AbortSignal,
): Promise<PartResult> {
  const { text: kubernetes } = await readServerVersion(transport, signal);
  const { platform, arch, versions } = process;
  const command = { ironfence: VERSION, node: versions.node, platform, arch };
  const offset = runtime.clockOffset?.();
  const { namespace } = options;
  const json = { command, kubernetes, server: cluster.server, namespace, clockOffset: offset };
  return { files: [{ path: "versions.json", json }], gaps: [] };
}

async function readStatus({ runtime, options, cluster }: PartDeps, signal: AbortSignal): Promise<PartResult> {
  const overview = await readOverview(runtime, options, cluster, signal);
  const problems = problemsOf(overview);
  const { agent, stopSwitch, nowMs } = overview;
  return {
    files: [
      { path: "status.txt", log: renderOverview(overview, problems) },
      { path: "status.json", json: { time: toTime(nowMs), problems, agent, stopSwitch } },
    ],
    gaps: [],
  };
}

async function readCheck(deps: PartDeps, signal: AbortSignal): Promise<PartResult> {
  return checkFiles("check", deps, await readFacts(deps, undefined, signal));
}

function checkFiles(name: string, { runtime }: PartDeps, facts: Facts): PartResult {
  const report = { nowMs: runtime.clock.nowMs(), mode: "installation" as const, results: runChecks(CHECKS, facts) };
  return {
    files: [
      { path: `${name}.json`, json: JSON.parse(renderJson(report)) },
      { path: `${name}.txt`, log: renderText(report, false) },
    ],
    gaps: [],
  };
}

async function readLive(deps: PartDeps, signal: AbortSignal): Promise<PartResult> {
  if (deps.live === undefined) return { files: [], gaps: [] };
  const probes = createTargetProbes(deps.live, { namespace: deps.options.namespace, timeoutMs: PROBES_TIMEOUT_MS });
  const facts = await readFacts(deps, probes, signal);
  const targets = itemsOf(facts.overview.targets).map(
    ({ metadata: { namespace, name }, spec: { nodeName }, status }) => ({
      namespace,
      name,
      nodeName,
      lastProbeTime: status?.lastProbeTime,
      conditions: status?.conditions,
    }),
  );
  const { files, gaps } = checkFiles("live/check", deps, facts);
  return { files: [...files, { path: "live/targets.jsonl", objects: targets }], gaps };
}

async function readExplanations({ runtime, options, cluster }: PartDeps, signal: AbortSignal): Promise<PartResult> {
  const { namespace, nodeLeaseNamespace: leaseNamespace } = options;
  const [live, overview] = await Promise.all([
    readDecisions(runtime, { leaseNamespace, namespace }, signal),
    readOverview(runtime, options, cluster, signal),
  ]);
  const explainFence = fenceExplainer(overview);
  const nodes = [...live.nodes.values()].map(({ metadata: { name } }) => {
    const healthChecks = explainNode(live, name) ?? [];
    const { readiness, steps } = explainFence(name, healthChecks);
    return { node: name, couldFence: readiness, fence: steps, healthChecks };
  });
  return {
    files: [
      { path: "explain/nodes.jsonl", objects: nodes },
      { path: "explain/health-checks.jsonl", objects: live.checks.map(explainCheck) },
    ],
    gaps: [],
  };
}
