import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { BareMetalHost } from "../../../api/metal3/metal3.ts";
import { readBareMetalHost } from "../../../api/metal3/metal3.ts";
import { localNode } from "../../../nodes/subject.ts";
import { HostIndex } from "../../../remediator/hosts/bare-metal-host/lookup/host-index.ts";
import {
  hostText,
  maintenanceOf,
  powerOffRefusal,
} from "../../../remediator/hosts/bare-metal-host/store/power-path.ts";
import { probeOldMs } from "../../../remediator/probes/schedule/probe-intervals.ts";
import { itemsOf } from "../objects/object-problems.ts";
import type { Overview } from "../objects/read.ts";
import type { Precondition } from "./precondition.ts";
import { blocks, ok, unknown } from "./precondition.ts";
import { judgeTarget } from "./target-readiness.ts";

/** What powers the host of a node: its FencingTargets, or else its BareMetalHost. */
export type NodeHost =
  | { by: "target"; targets: readonly [FencingTarget, ...FencingTarget[]] }
  | { by: "host"; host: BareMetalHost }
  /** There is a BareMetalHost, and the leader does not serve its family. */
  | { by: "unserved"; host: BareMetalHost }
  | { by: "none" };

/**
 * Finds the hosts of nodes of the agent's own cluster, as the agent does. For a node that was deleted, only its targets
 * are found.
 */
export function hostFinder({
  targets,
  bareMetalHosts,
  agent,
}: Overview): (name: string, node: Node | undefined) => NodeHost {
  const own = Map.groupBy(
    itemsOf(targets).filter(({ spec }) => spec.clusterRef === undefined),
    ({ spec }) => spec.nodeName,
  );
  const isServed = "families" in agent && agent.families.includes("bare-metal-host");
  const hosts = new HostIndex();
  for (const raw of itemsOf(bareMetalHosts)) hosts.applyHost({ type: "added", object: readBareMetalHost(raw) });
  return (name, node) => {
    const [first, ...others] = own.get(name) ?? [];
    if (first !== undefined) return { by: "target", targets: [first, ...others] };
    const located = hosts.locate(localNode(name), node);
    if (!located.found) return { by: "none" };
    return { by: isServed ? "host" : "unserved", host: located.host };
  };
}

/** The age from which a probe may be out of date, in this cluster. */
export function probeAgeMax({ targets }: Pick<Overview, "targets">): number {
  return probeOldMs(itemsOf(targets).reduce((count, { spec }) => count + spec.devices.length, 0));
}

/** Judges whether the host of a node could be powered off: the steps `target` and `maintenance`. */
export function hostJudge(
  overview: Overview,
): (name: string, node: Node | undefined, isWatched: boolean) => [target: Precondition, maintenance: Precondition] {
  const { targets, bareMetalHosts, agent, nowMs } = overview;
  const clock = { nowMs, oldMs: probeAgeMax(overview) };
  const findHost = hostFinder(overview);
  const isServed = "families" in agent && agent.families.includes("bare-metal-host");
  const noMaintenance = ok("maintenance", "none");
  return (name, node, isWatched) => {
    if (targets !== undefined && !Array.isArray(targets)) {
      return [unknown("target", "TargetsUnread", targets.problem), noMaintenance];
    }
    const found = findHost(name, node);
    if (found.by === "target") return judgeTargets(found.targets, clock);
    if (found.by === "host") return judgeHost(found.host);
    if (bareMetalHosts !== undefined && "problem" in bareMetalHosts && isServed) {
      return [unknown("target", "HostsUnread", bareMetalHosts.problem), noMaintenance];
    }
    // A node that no health check covers is probably not meant to be fenced.
    return [
      blocks("target", "NoTarget", noTargetText(overview, name, found), { isIntended: !isWatched }),
      noMaintenance,
    ];
  };
}

function judgeTargets(
  targets: readonly FencingTarget[],
  clock: { nowMs: number; oldMs: number },
): [target: Precondition, maintenance: Precondition] {
  let target: Precondition | undefined;
  let maintenance = ok("maintenance", "none");
  for (const each of targets) {
    const { answer, reason, message } = judgeTarget(each, clock);
    const what = `FencingTarget ${each.metadata.namespace ?? ""}/${each.metadata.name}`;
    const found = `${what}: ${reason}: ${message}`;
    if (each.spec.maintenance) maintenance = blocks("maintenance", reason, message, { isIntended: true });
    else if (answer === "yes") target ??= ok("target", found);
    else if (target === undefined || target.state === "ok") {
      target = (answer === "no" ? blocks : unknown)("target", reason, message, { found });
    }
  }
  return [target ?? ok("target", "its host is in maintenance, and is not probed"), maintenance];
}

function judgeHost(host: BareMetalHost): [target: Precondition, maintenance: Precondition] {
  const refusal = powerOffRefusal(host);
  const maintenance = maintenanceOf(host);
  return [
    refusal === undefined ? ok("target", hostText(host)) : blocks("target", refusal.reason, refusal.message),
    maintenance === undefined
      ? ok("maintenance", "none")
      : blocks("maintenance", "Maintenance", maintenance, { isIntended: true }),
  ];
}

function noTargetText({ strayTargets, namespace }: Overview, name: string, found: NodeHost): string {
  if (found.by === "unserved") {
    return `no FencingTarget in namespace ${namespace} names the node, and the leader does not serve the family bare-metal-host, so it does not use ${hostText(found.host)}: create one, or add the family to --families`;
  }
  const stray = strayTargets.find(({ spec }) => spec.nodeName === name);
  const elsewhere = stray === undefined ? "" : `; the one in namespace ${stray.metadata.namespace ?? ""} is not used`;
  return `no FencingTarget in namespace ${namespace} names the node${elsewhere}: create one`;
}
