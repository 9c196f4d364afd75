import { NODE_NAME } from "../../api/annotations.ts";
import type { BareMetalRemediation } from "../../api/bare-metal-remediation.ts";
import type { FencingTarget } from "../../api/fencing-target.ts";
import { readBareMetalHost } from "../../api/metal3.ts";
import { HostIndex } from "../../remediator/hosts/bare-metal-host/host-index.ts";
import { hostText, refusalOf, maintenanceOf } from "../../remediator/hosts/bare-metal-host/power-path.ts";
import { localNode } from "../../nodes/subject.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import type { NodeExplanation } from "./words.ts";
import { conditionOf, itemsOf, problemsOf, reportedCondition } from "../status/problems.ts";
import type { Overview } from "../status/read.ts";
import { readyOf } from "../../remediator/hosts/fencing-target/target-store.ts";

/** One precondition of a fence of a node. */
export interface FenceStep {
  step: "agent" | "health check" | "remediation" | "target" | "maintenance" | "pause" | "turn";
  /** `holds`: it keeps the node from being fenced now. `unknown`: you have no permission to read it. */
  state: "ok" | "holds" | "unknown";
  found: string;
}

/** Reasons of a remediation that waits for its admission. */
const TURN: ReadonlySet<string> = new Set([
  "WaitingForTurn",
  "ReplacementTurn",
  "ControlPlaneQuorum",
  "HostBusy",
  "OwnNode",
]);
/** Outcomes of a health check for which a remediation starts or is under way. */
const STARTS: ReadonlySet<string> = new Set(["create", "remediating"]);

/** The preconditions of a fence of the node, in the order in which both halves of the agent check them. Pure. */
export function fenceSteps(overview: Overview, nodeName: string, checks: readonly NodeExplanation[]): FenceStep[] {
  const remediation = currentOf(
    itemsOf(overview.remediations).filter(
      (candidate) => nodeOf(candidate) === nodeName && candidate.status?.node?.cluster === undefined,
    ),
  );
  const target = itemsOf(overview.targets).find(
    ({ spec }) => spec.nodeName === nodeName && spec.clusterRef === undefined,
  );
  return [
    agentStep(overview),
    checkStep(checks, remediation),
    remediationStep(overview, remediation),
    targetStep(overview, nodeName, target),
    maintenanceStep(overview, nodeName, target),
    pauseStep(overview),
    turnStep(remediation),
  ];
}

/** The remediation that counts if a node has several, as after an escalation: one without a verdict, else the newest. */
function currentOf(candidates: readonly BareMetalRemediation[]): BareMetalRemediation | undefined {
  const made = ({ metadata }: BareMetalRemediation): number => parseTimeMs(metadata.creationTimestamp) ?? 0;
  const [current] = candidates.toSorted(
    (one, other) => Number(hasVerdict(one)) - Number(hasVerdict(other)) || made(other) - made(one),
  );
  return current;
}

function hasVerdict({ status }: BareMetalRemediation): boolean {
  const succeeded = conditionOf(status?.conditions, "Succeeded");
  return succeeded !== undefined && succeeded.status !== "Unknown";
}

function agentStep(overview: Overview): FenceStep {
  const step = "agent";
  const problem = problemsOf(overview).find(({ kind }) => kind === "Agent");
  if (problem !== undefined) return { step, state: "holds", found: problem.message };
  const { agent } = overview;
  if ("message" in agent) return { step, state: "unknown", found: agent.message };
  return { step, state: "ok", found: `${agent.leader} leads` };
}

function checkStep(checks: readonly NodeExplanation[], remediation: BareMetalRemediation | undefined): FenceStep {
  const step = "health check";
  const concerned = checks.filter(({ selected, reasons }) => selected || reasons.length > 0);
  if (concerned.length === 0) {
    const found =
      remediation === undefined ? "no health check covers the node" : "none; the remediation was made by hand";
    return { step, state: remediation === undefined ? "holds" : "ok", found };
  }
  const isStarting = remediation !== undefined || concerned.some(({ outcome }) => STARTS.has(outcome));
  const found = concerned.map(({ healthCheck, outcome, reason }) => `${healthCheck}: ${outcome}: ${reason}`).join("; ");
  return { step, state: isStarting ? "ok" : "holds", found };
}

function remediationStep({ remediations }: Overview, remediation: BareMetalRemediation | undefined): FenceStep {
  const step = "remediation";
  if (remediations !== undefined && !Array.isArray(remediations)) {
    return { step, state: "unknown", found: remediations.problem };
  }
  if (remediation === undefined) return { step, state: "ok", found: "there is none" };
  const { namespace = "", name } = remediation.metadata;
  const said = reportedCondition(remediation);
  const words = said === undefined ? "no agent has begun it yet" : `${said.reason}: ${said.message}`;
  const found = `BareMetalRemediation ${namespace}/${name}: ${remediation.status?.phase ?? "new"}: ${words}`;
  const isFailed = said?.type === "Succeeded" && said.status === "False";
  return { step, state: isFailed || said === undefined ? "holds" : "ok", found };
}

function targetStep(overview: Overview, nodeName: string, target: FencingTarget | undefined): FenceStep {
  const step = "target";
  const { targets, strayTargets, namespace } = overview;
  if (targets !== undefined && !Array.isArray(targets)) return { step, state: "unknown", found: targets.problem };
  if (target === undefined) {
    const host = hostOf(overview, nodeName);
    if (host !== undefined) {
      const refusal = refusalOf(host);
      return { step, state: refusal === undefined ? "ok" : "holds", found: refusal?.message ?? hostText(host) };
    }
    const stray = strayTargets.find(({ spec }) => spec.nodeName === nodeName);
    const elsewhere = stray === undefined ? "" : `; the one in namespace ${stray.metadata.namespace ?? ""} is not used`;
    const found = `no FencingTarget in namespace ${namespace} names the node${elsewhere}: create one with spec.nodeName ${nodeName}`;
    return { step, state: "holds", found };
  }
  const what = `FencingTarget ${namespace}/${target.metadata.name}`;
  const ready = readyOf(target.status);
  if (ready === undefined) return { step, state: "holds", found: `${what} has not been probed yet` };
  const isReady = ready.status === "True" || ready.reason === "Maintenance";
  return { step, state: isReady ? "ok" : "holds", found: `${what}: ${ready.reason}: ${ready.message}` };
}

function maintenanceStep(overview: Overview, nodeName: string, target: FencingTarget | undefined): FenceStep {
  const step = "maintenance";
  const host = target === undefined ? hostOf(overview, nodeName) : undefined;
  const found = host === undefined ? undefined : maintenanceOf(host);
  if (found !== undefined) return { step, state: "holds", found };
  if (target?.spec.maintenance !== true) return { step, state: "ok", found: "none" };
  const what = `spec.maintenance of FencingTarget ${overview.namespace}/${target.metadata.name}`;
  return { step, state: "holds", found: `${what} is true: set it to false when the work is done` };
}

function pauseStep({ stopSwitch }: Overview): FenceStep {
  const step = "pause";
  if ("problem" in stopSwitch) return { step, state: "unknown", found: stopSwitch.problem };
  if (!stopSwitch.paused) return { step, state: "ok", found: "none" };
  return { step, state: "holds", found: `${stopSwitch.reason ?? "paused"}: end it with ironfence resume` };
}

function turnStep(remediation: BareMetalRemediation | undefined): FenceStep {
  const step = "turn";
  const said = remediation === undefined ? undefined : reportedCondition(remediation);
  if (said === undefined || !TURN.has(said.reason)) return { step, state: "ok", found: "nothing to wait for" };
  return { step, state: "holds", found: `${said.reason}: ${said.message}` };
}

function hostOf({ bareMetalHosts, nodes }: Overview, nodeName: string) {
  const node = itemsOf(nodes).find(({ metadata }) => metadata.name === nodeName);
  const index = new HostIndex();
  for (const raw of itemsOf(bareMetalHosts)) index.applyHost({ type: "added", object: readBareMetalHost(raw) });
  const located = index.locate(localNode(nodeName), node);
  return located.found ? located.host : undefined;
}

function nodeOf({ metadata, status }: BareMetalRemediation): string {
  return status?.node?.name ?? metadata.annotations?.[NODE_NAME] ?? metadata.name;
}
