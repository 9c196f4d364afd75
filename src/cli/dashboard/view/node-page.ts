import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { EvaluatedNodeChecks } from "../../../detector/nodes/evaluate-once.ts";
import { clusterKey, subjectOf } from "../../../nodes/subject.ts";
import { isFinal } from "../../../remediator/machine/model/decision/state.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { FenceStep } from "../../explain/fence.ts";
import { fenceExplainer } from "../../explain/fence.ts";
import type { NodeExplanation } from "../../explain/words.ts";
import { explainNode } from "../../explain/words.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import { itemsOf, reportedCondition } from "../../status/objects/object-problems.ts";
import type { Overview } from "../../status/objects/read.ts";
import type { FenceReadiness } from "../../status/could-fence/could-fence.ts";
import { fencesOf, disconnectionJudge, readyCondition } from "./fences.ts";
import { endedOf } from "./ended-fences.ts";
import type { Fence } from "./fences.ts";
import type { Ended } from "./ended-fences.ts";
import type { DisconnectionAdvice } from "./disconnection.ts";

/** What is decided about one node and why, its fences, and what its BMC has shown. */
export interface NodePage {
  node: string;
  nowMs: number;
  ready: { status: string; since: string | undefined } | undefined;
  readiness: FenceReadiness | undefined;
  plug: DisconnectionAdvice;
  /** The fence that is under way. */
  fence: Fence | undefined;
  steps: FenceStep[];
  healthChecks: NodeExplanation[];
  /** Why the decisions of health checks are not shown; undefined if they are. */
  undecided: string | undefined;
  timelines: Timeline[];
  evidence: TargetEvidence[];
  ended: Ended[];
}

/** The data of the picture of one remediation: its steps, with their times. */
export interface Timeline {
  remediation: string;
  title: string;
  startMs: number;
  endMs: number;
  isRunning: boolean;
  entries: TimelineEntry[];
}

export interface TimelineEntry {
  step: string;
  atMs: number;
  message: string;
}

/** A target, its devices, and what the last probe has shown. */
export interface TargetEvidence {
  target: string;
  devices: string[];
  facts: { what: string; found: string }[];
  conditions: { type: string; status: string; reason: string; message: string; since: string }[];
}

/**
 * @param decisions what the detector decides now, or why it cannot be read. @returns undefined if neither the cluster
 * nor any object names such a node.
 */
export function nodePage(
  overview: Overview,
  name: string,
  decisions: EvaluatedNodeChecks | { problem: string },
): NodePage | undefined {
  const node = itemsOf(overview.nodes).find(({ metadata }) => metadata.name === name);
  const targets = itemsOf(overview.targets).filter(
    ({ spec }) => spec.nodeName === name && spec.clusterRef === undefined,
  );
  const remediations = itemsOf(overview.remediations).filter((remediation) => isOf(remediation, name));
  const explained = "problem" in decisions ? undefined : explainNode(decisions, name);
  if (node === undefined && targets.length === 0 && remediations.length === 0 && explained === undefined)
    return undefined;
  const ready = readyCondition(node);
  const checks = explained ?? [];
  const { readiness, steps } = fenceExplainer(overview)(name, checks);
  const isHere = (fence: { node: string; isLocal: boolean }): boolean => fence.isLocal && fence.node === name;
  return {
    node: name,
    nowMs: overview.nowMs,
    ready: ready === undefined ? undefined : { status: ready.status, since: ready.lastTransitionTime },
    readiness,
    plug: disconnectionJudge(overview)(name),
    fence: fencesOf(overview).find(isHere),
    steps: steps.map((step) =>
      "problem" in decisions && step.step === "health check" && step.state === "ok"
        ? { step: step.step, state: "unknown", found: decisions.problem }
        : step,
    ),
    healthChecks: checks,
    undecided: "problem" in decisions ? decisions.problem : undefined,
    timelines: remediations
      .map((remediation) => timelineOf(remediation, overview.nowMs))
      .toSorted((a, b) => b.startMs - a.startMs),
    evidence: targets.map(evidenceOf),
    ended: endedOf(overview).filter(isHere),
  };
}

function isOf(remediation: BareMetalRemediation, name: string): boolean {
  const { nodeName, cluster } = subjectOf(remediation);
  return nodeName === name && clusterKey(cluster) === "";
}

function timelineOf(remediation: BareMetalRemediation, nowMs: number): Timeline {
  const { metadata, status } = remediation;
  const entries = (status?.timeline ?? []).flatMap(({ step, time, message = "" }): TimelineEntry[] => {
    const atMs = parseTimeMs(time);
    return atMs === undefined ? [] : [{ step, atMs, message }];
  });
  const startMs = Math.min(parseTimeMs(metadata.creationTimestamp) ?? nowMs, ...entries.map(({ atMs }) => atMs));
  const isRunning = !isFinal(status?.phase);
  const lastMs = Math.max(startMs, ...entries.map(({ atMs }) => atMs));
  const condition = reportedCondition(remediation);
  return {
    remediation: `${metadata.namespace ?? ""}/${metadata.name}`,
    title: `${status?.phase ?? "new"}${condition === undefined ? "" : `: ${condition.reason}: ${condition.message}`}`,
    startMs,
    endMs: isRunning ? Math.max(nowMs, lastMs) : lastMs,
    isRunning,
    entries,
  };
}

function evidenceOf({ metadata, spec, status }: FencingTarget): TargetEvidence {
  const facts = [
    ["power, as read last", status?.powerState],
    ["probed", status?.lastProbeTime],
    [
      "identity by spec",
      [spec.identity.systemUUID, spec.identity.serialNumber].filter((id) => id !== undefined).join(", "),
    ],
    ["identity pinned from the node", status?.identity?.systemUUID],
    ["verification of the identity", spec.identity.verification],
    ["maintenance", spec.maintenance ? "yes: no power order is sent" : "no"],
    [
      "owned by",
      status?.owner === undefined
        ? undefined
        : `${status.owner.kind} ${status.owner.namespace}/${status.owner.name} since ${status.owner.since}`,
    ],
    ["proven off while not Ready", status?.offProof?.time],
    ["last reboot, proven off", status?.lastReboot?.offConfirmedAt],
  ] as const;
  return {
    target: `${metadata.namespace ?? ""}/${metadata.name}`,
    devices: spec.devices.map(({ address, level }) => `${withoutUser(address)} (level ${level})`),
    facts: facts.flatMap(([what, found]) => (found === undefined || found === "" ? [] : [{ what, found }])),
    conditions: ["Ready", "Reachable", "IdentityVerified"].flatMap((type) => {
      const condition = conditionOf(status?.conditions, type);
      if (condition === undefined) return [];
      const { reason, message, lastTransitionTime } = condition;
      return [{ type, status: condition.status, reason, message, since: lastTransitionTime }];
    }),
  };
}

/** Removes a user and password from an address. It should have none. */
function withoutUser(address: string): string {
  return address.replace(/\/\/[^/]*@/, "//");
}
