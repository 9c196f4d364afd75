import { causeText } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { clusterKey, nodeKey, subjectOf } from "../../../nodes/subject.ts";
import { isBegun, isFinal, slotOf, statesBetween } from "../../../remediator/machine/model/decision/state.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import { itemsOf, reportedCondition } from "../../status/objects/object-problems.ts";
import type { Overview } from "../../status/objects/read.ts";
import { byName } from "../../status/could-fence/could-fence.ts";
import { judgeDisconnection } from "./disconnection.ts";
import type { DisconnectionAdvice } from "./disconnection.ts";

/** One step of a fence. */
export interface ProgressStep {
  name: string;
  state: "done" | "now" | "next" | "failed";
}

/** A fence that has begun and has no verdict. */
export interface Fence {
  /** The name of the node, with its cluster before it if that is not the agent's own. */
  node: string;
  /** Whether the node belongs to the agent's own cluster, and so has a page. */
  isLocal: boolean;
  remediation: string;
  phase: string;
  /** The status of the node's condition Ready, and since when; empty if that cannot be read. */
  ready: string;
  readySince: string | undefined;
  readyForSeconds: number | undefined;
  /** When the present step began. */
  stepSince: string | undefined;
  stepForSeconds: number | undefined;
  /**
   * How many pods and volume attachments have left (`gone`) of those that had to leave (`bound`). Undefined if
   * workloads are not being released, or were not counted.
   */
  drained: { gone: number; bound: number } | undefined;
  steps: ProgressStep[];
  reason: string;
  /** What the remediation does or waits for. */
  message: string;
  /** Why the host died; undefined if that was not read. */
  cause: string | undefined;
  startedAt: string | undefined;
  plug: DisconnectionAdvice;
}

/** A node that has to be fenced and still waits. */
export interface Held {
  node: string;
  isLocal: boolean;
  reason: string;
  message: string;
  since: string | undefined;
}

const ORDER: readonly string[] = statesBetween("Resolving", "Restoring");
/** Each step with the phase in which it happens. */
const STEPS: readonly (readonly [name: string, phase: string])[] = [
  ["identify", "Verifying"],
  ["order Off", "PoweringOff"],
  ["prove Off", "PoweringOff"],
  ["release", "Releasing"],
  ["install", "Provisioning"],
  ["On", "PoweringOn"],
  ["rejoin", "Rejoining"],
  ["Ready", "Restoring"],
];

/** The fences that are under way, the oldest first. Pure. */
export function fencesOf(overview: Overview): Fence[] {
  const nodes = new Map(itemsOf(overview.nodes).map((node) => [node.metadata.name, node]));
  const judge = disconnectionJudge(overview);
  return active(overview)
    .filter(({ status }) => isBegun(status))
    .map((remediation) => fenceOf(remediation, nodes, judge, overview.nowMs))
    .toSorted((a, b) => (a.startedAt ?? "").localeCompare(b.startedAt ?? "") || byName(a.node, b.node));
}

function active({ remediations }: Overview): BareMetalRemediation[] {
  return itemsOf(remediations).filter(({ status }) => !isFinal(status?.phase));
}

function fenceOf(
  remediation: BareMetalRemediation,
  nodes: ReadonlyMap<string, Node>,
  judge: (nodeName: string) => DisconnectionAdvice,
  nowMs: number,
): Fence {
  const { metadata, status } = remediation;
  const { nodeName, node, isLocal } = whereOf(remediation);
  const condition = reportedCondition(remediation);
  const ready = isLocal ? readyCondition(nodes.get(nodeName)) : undefined;
  const stepSince = status?.timeline?.at(-1)?.time;
  return {
    node,
    isLocal,
    remediation: `${metadata.namespace ?? ""}/${metadata.name}`,
    phase: status?.phase ?? "Resolving",
    ready: ready?.status ?? "",
    readySince: ready?.lastTransitionTime,
    readyForSeconds: secondsSince(ready?.lastTransitionTime, nowMs),
    stepSince,
    stepForSeconds: secondsSince(stepSince, nowMs),
    drained: drainedOf(remediation),
    steps: stepsOf(remediation),
    reason: condition?.reason ?? "",
    message: condition?.message ?? "",
    cause: status?.evidence && causeText(status.evidence),
    startedAt: metadata.creationTimestamp,
    plug: isLocal
      ? judge(nodeName)
      : { safe: false, why: `node ${node} is of another cluster, which is not read here` },
  };
}

/** Whole seconds; 0 for a time that the clock of this machine has not reached. */
function secondsSince(time: string | undefined, nowMs: number): number | undefined {
  const timeMs = parseTimeMs(time);
  return timeMs === undefined ? undefined : Math.max(0, Math.floor((nowMs - timeMs) / 1_000));
}

function drainedOf({ status }: BareMetalRemediation): Fence["drained"] {
  const { phase, attempt, drain } = status ?? {};
  if (phase !== "Releasing" || drain === undefined || drain.attemptID !== attempt?.id) return undefined;
  const bound = drain.pods + drain.attachments;
  return { gone: bound - drain.left, bound };
}

export function readyCondition(node: Node | undefined) {
  return node?.status.conditions?.find(({ type }) => type === "Ready");
}

export function whereOf(remediation: BareMetalRemediation): { nodeName: string; node: string; isLocal: boolean } {
  const { nodeName, cluster } = subjectOf(remediation);
  const name = nodeName ?? remediation.metadata.name;
  return {
    nodeName: name,
    node: nodeKey({ cluster, name }),
    isLocal: nodeName !== undefined && clusterKey(cluster) === "",
  };
}

/** Judges for nodes of the agent's own cluster whether their power may be disconnected by hand. Pure. */
export function disconnectionJudge(overview: Overview): (nodeName: string) => DisconnectionAdvice {
  const { nodes, targets, remediations } = overview;
  const [unread] = [nodes, targets, remediations].flatMap((listed) =>
    Array.isArray(listed) ? [] : [whyUnread(listed)],
  );
  const byNode = new Map(itemsOf(nodes).map((node) => [node.metadata.name, node]));
  const ownTargets = Map.groupBy(
    itemsOf(targets).filter(({ spec }) => spec.clusterRef === undefined),
    ({ spec }) => spec.nodeName,
  );
  const ownRemediations = Map.groupBy(
    active(overview).filter((remediation) => whereOf(remediation).isLocal),
    (remediation) => whereOf(remediation).nodeName,
  );
  return (nodeName) =>
    judgeDisconnection({
      nodeName,
      node: byNode.get(nodeName),
      targets: ownTargets.get(nodeName) ?? [],
      remediations: ownRemediations.get(nodeName) ?? [],
      unread,
    });
}

function whyUnread(listed: { problem: string } | undefined): string {
  return listed?.problem ?? "the cluster does not serve the kinds of ironfence";
}

/** The steps of the present power cycle. In an undo, these are the steps that were done before it. */
function stepsOf(remediation: BareMetalRemediation): ProgressStep[] {
  const { status, spec } = remediation;
  const { phase = "Resolving", attempt, conditions } = status ?? {};
  const steps = STEPS.filter(
    ([name]) => name !== "install" || attempt?.kind === "Reprovision" || spec.strategy?.type === "Reprovision",
  );
  if (phase === "Undoing") {
    const proven = attempt?.offConfirmedAt !== undefined;
    const released = conditionOf(conditions, "WorkloadsReleased") !== undefined && proven;
    const done = released ? 4 : proven ? 3 : attempt?.sent === true ? 2 : 1;
    return [
      ...steps.slice(0, done).map(([name]): ProgressStep => ({ name, state: "done" })),
      { name: "undo", state: "now" },
    ];
  }
  const at = ORDER.indexOf(phase);
  return steps.map(([name, of]): ProgressStep => {
    const own = ORDER.indexOf(of);
    if (phase === "PoweringOff" && own === at) {
      const isSent = attempt?.action === "ForceOff" && attempt.sent;
      if (name === "order Off") return { name, state: isSent ? "done" : "now" };
      return { name, state: isSent ? "now" : "next" };
    }
    const drained = name === "release" ? drainedOf(remediation) : undefined;
    return {
      name: drained === undefined ? name : `drained ${drained.gone}/${drained.bound}`,
      state: own < at ? "done" : own === at ? "now" : "next",
    };
  });
}

/**
 * Nodes that wait for a fence: remediations that have not begun, and unhealthy nodes that a health check holds. Pure.
 */
export function heldOf(overview: Overview): Held[] {
  const waiting = active(overview).filter(({ status }) => !isBegun(status));
  const found = waiting.map((remediation): Held => {
    const { node, isLocal } = whereOf(remediation);
    const condition = reportedCondition(remediation);
    const { creationTimestamp } = remediation.metadata;
    const reason = condition?.reason ?? "New";
    return {
      node,
      isLocal,
      reason,
      message: condition?.message ?? "no agent has started it",
      since: creationTimestamp,
    };
  });
  const known = new Set(itemsOf(overview.remediations).map((remediation) => whereOf(remediation).node));
  const nodes = new Map(itemsOf(overview.nodes).map((node) => [node.metadata.name, node]));
  const unhealthy = itemsOf(overview.healthChecks).flatMap(({ metadata, status }): Held[] =>
    (status?.unhealthyNodes ?? []).flatMap(({ name, remediations = [] }) =>
      known.has(name) || remediations.some(({ timedOut }) => timedOut === undefined)
        ? []
        : [
            {
              node: name,
              isLocal: true,
              reason: "Unhealthy",
              message: `NodeHealthCheck ${metadata.name} has started nothing for it: ${status?.reason ?? "no reason is given"}`,
              since: readyCondition(nodes.get(name))?.lastTransitionTime,
            },
          ],
    ),
  );
  return [...found, ...unhealthy].toSorted((a, b) => byName(a.node, b.node));
}

/** How many slots are in use, in all and in each failure zone. Pure. */
export function slotsInUse(overview: Overview): { hosts: number; zones: { zone: string; hosts: number }[] } {
  const held = active(overview).filter(({ status }) => slotOf(status, overview.nowMs) !== "None");
  const zones = Map.groupBy(
    held.flatMap(({ status }) => status?.node?.zone ?? []),
    (zone) => zone,
  );
  const counted = [...zones].map(([zone, of]) => ({ zone, hosts: of.length }));
  return { hosts: held.length, zones: counted.toSorted((a, b) => byName(a.zone, b.zone)) };
}
