import { FENCED_BY, QUARANTINED_BY } from "../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import { CONTROL_PLANE_ROLES } from "../../../src/api/names/labels.ts";
import { FINALIZER } from "../../../src/remediator/effects/objects/finalizer.ts";
import type { Facts, Invariant, Step } from "./facts.ts";
import { agentWrite, conditionOf, isFinal, ownerOf } from "./facts.ts";
import { hostsWithoutQuorum } from "./quorum.ts";

/**
 * S3. A remediation that ends does not leave the host off that it turned off. Exceptions: its devices or its target
 * failed and its verdict says so; another remediation waits for the host and takes it over; or its Machine was deleted,
 * so that the host belongs to the controller that deprovisions it.
 */
export const notLeftOff: Invariant = {
  name: "S3",
  says: "a host that we turned off is never left off permanently by us",
  check: (facts, step) => {
    const ended = endedBy(step);
    if (ended === undefined || ended.status?.replacement?.deletedAt !== undefined) return undefined;
    const last = facts.orders.findLast(
      (order) => order.remediation === ended.metadata.uid && order.outcome === "Started",
    );
    if (last === undefined || last.order !== "ForceOff") return undefined;
    // Since then another client has powered the host on and off again.
    if ((facts.leftOffAtMs.get(last.host) ?? -Infinity) > last.atMs) return undefined;
    const isOff = ["Off", "PoweringOff"].includes(facts.hosts.get(last.host)?.power ?? "");
    if (!isOff || isInOtherHands(facts, ended) || facts.operated.has(last.host)) return undefined;
    const admits = /may still be OFF/.test(conditionOf(ended, "Succeeded")?.message ?? "");
    const isExcused = !facts.devicesWell && (admits || ended.metadata.deletionTimestamp !== undefined);
    return isExcused
      ? undefined
      : `${ended.metadata.name} has ended, and ${last.host}, which it turned off, is ${facts.hosts.get(last.host)?.power}`;
  },
};

/** Whether another remediation of the same node is in progress, or has powered the host since then. */
function isInOtherHands(facts: Facts, ended: BareMetalRemediation): boolean {
  const { uid } = ended.metadata;
  return [...facts.present].some((other) => {
    const remediation = facts.remediations.get(other);
    return other !== uid && remediation !== undefined && nodeOf(remediation) === nodeOf(ended) && !isFinal(remediation);
  });
}

function nodeOf({ metadata, status }: BareMetalRemediation): string {
  return status?.node?.name ?? metadata.annotations?.["remediation.medik8s.io/node-name"] ?? metadata.name;
}

/** The remediation that this write of an agent has ended, with a verdict or by removing the finalizer. */
function endedBy(step: Step): BareMetalRemediation | undefined {
  const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
  if (write === undefined) return undefined;
  if (write.type === "DELETED")
    return write.previous !== undefined && isFinal(write.previous) ? undefined : write.object;
  const isNew = isFinal(write.object) && (write.previous === undefined || !isFinal(write.previous));
  return isNew ? write.object : undefined;
}

/**
 * S6. Only a remediation that reprovisions sets a host to be reinstalled, never for a control plane node, and only
 * after reboots that really turned the host off: all of its own (Escalate), or those of an earlier remediation
 * (Reprovision).
 */
export const rebootBeforeReprovision: Invariant = {
  name: "S6",
  says: "reprovision only after reboots that each proved the host off; never a control plane host",
  check: (facts, step) => {
    if (step.type !== "bootSet" || step.enabled !== "Once") return undefined;
    const { host, remediation: owner } = step;
    const remediation = facts.remediations.get(owner ?? "");
    const { attempt, backup, retryCount = 0 } = remediation?.status ?? {};
    if (remediation === undefined || attempt?.kind !== "Reprovision" || !attempt.bootOverride)
      return `${host} was set to boot from the network without a stored intent`;
    const labels = { ...backup?.labels, ...facts.nodes.get(nodeOf(remediation))?.metadata.labels };
    if (CONTROL_PLANE_ROLES.some((role) => role in labels))
      return `control plane host ${host} was set to be reinstalled`;
    const { type, retryLimit, requireReboot } = remediation.spec.strategy;
    // An order to a host that was already off counts as well.
    const offs = facts.orders.filter(
      (order) => order.host === host && order.order === "ForceOff" && order.outcome !== "Refused",
    );
    if (type === "Escalate") {
      const cycles = new Set(
        offs.filter((order) => order.remediation === owner).map((order) => order.attempt?.retryCount),
      );
      // The last cycle is the power-off of the reprovision itself.
      return cycles.size > 1 + retryLimit || retryCount > 1 + retryLimit
        ? undefined
        : `${host} was set to be reinstalled after ${cycles.size - 1} reboots of ${1 + retryLimit}`;
    }
    if (!requireReboot || retryCount > 0 || offs.some((order) => order.remediation !== owner)) return undefined;
    return `${host} was set to be reinstalled without a reboot before`;
  },
};

/** S6. No boot override is left behind. If a device fails, it may stay, and the verdict says so. */
export const noOverrideLeft: Invariant = {
  name: "S6",
  says: "no boot override is left behind",
  check: (facts, step) => {
    const ended = endedBy(step);
    const host = ended === undefined ? undefined : facts.hosts.get(nodeOf(ended));
    if (ended === undefined || host?.bootSetting.enabled !== "Once" || isInOtherHands(facts, ended)) return undefined;
    if (facts.operated.has(host.name)) return undefined;
    const admits = /boot override by hand/.test(conditionOf(ended, "Succeeded")?.message ?? "");
    return admits && !facts.devicesWell
      ? undefined
      : `${ended.metadata.name} has ended, and ${host.name} will boot from the network`;
  },
};

/**
 * S10. An agent removes its finalizer from a remediation that is not being deleted only if the remediation has its
 * verdict and stores no labels of a deleted Node. `finalHasNothing` checks that it has no mark and owns no host then.
 */
export const finalizerKeptWhileOwing: Invariant = {
  name: "S10",
  says: "the finalizer is removed at the verdict, and not before everything has been undone",
  check: (_facts, step) => {
    const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
    if (write?.previous === undefined || write.type !== "MODIFIED") return undefined;
    const { object, previous } = write;
    const isLetGo = hasFinalizer(previous) && !hasFinalizer(object);
    if (!isLetGo || object.metadata.deletionTimestamp !== undefined) return undefined;
    const { name } = object.metadata;
    if (!isFinal(object)) return `${name} lost its finalizer in ${object.status?.phase}`;
    return owesLabels(object)
      ? `${name} lost its finalizer while it keeps the labels of a node that it deleted`
      : undefined;
  },
};

function hasFinalizer({ metadata }: BareMetalRemediation): boolean {
  return metadata.finalizers?.includes(FINALIZER) === true;
}

/** Whether the remediation has deleted a Node that has not joined again, and stores its labels. */
function owesLabels(remediation: BareMetalRemediation): boolean {
  const isAwaited = conditionOf(remediation, "PermanentNodeDeletionExpected")?.status === "True";
  const { backup, replacement } = remediation.status ?? {};
  return isAwaited && backup !== undefined && replacement?.deletedAt === undefined;
}

/**
 * L1. Some time after all faults have ended, every remediation has its verdict and, if nothing is left to restore, none
 * of our finalizers. No Ready node has our marks, and no host is owned. With a health check, every node is Ready or has
 * a remediation, unless etcd has lost its quorum. Called at the end of a run, not at each step.
 *
 * @returns a description of each thing that is not settled.
 */
export function unsettled(facts: Facts): string[] {
  const left: string[] = [];
  for (const uid of facts.present) {
    const remediation = facts.remediations.get(uid);
    if (remediation === undefined) continue;
    const { name, deletionTimestamp } = remediation.metadata;
    const succeeded = conditionOf(remediation, "Succeeded")?.status;
    if (deletionTimestamp !== undefined) left.push(`${name} is being deleted, in ${remediation.status?.phase}`);
    else if (succeeded !== "True" && succeeded !== "False")
      left.push(
        `${name} has no verdict, in ${remediation.status?.phase}: ${conditionOf(remediation, "Processing")?.reason}`,
      );
    else if (hasFinalizer(remediation) && !owesLabels(remediation))
      left.push(`${name} has its verdict, and keeps the finalizer`);
  }
  const ready = [...facts.nodes.values()].filter(isNodeReady).length;
  // With fewer healthy nodes than `minHealthy`, nothing may be started, and no node comes back by itself.
  const mayStart =
    facts.checks.size > 0 && [...facts.checks.values()].every(({ spec }) => ready >= Number(spec.minHealthy ?? 0));
  const held = hostsWithoutQuorum(facts);
  for (const [name, node] of facts.nodes) {
    const isReady = isNodeReady(node);
    const annotations = Object.keys(node.metadata.annotations ?? {});
    const taints = (node.spec.taints ?? []).map(({ key }) => key);
    const marks = [FENCED_BY, QUARANTINED_BY].filter((mark) => [...annotations, ...taints].includes(mark));
    const isDue = mayStart && !held.includes(name);
    if (!isReady && isDue && !isRemediated(facts, name)) left.push(`${name} is not Ready, and has no remediation`);
    if (isReady && marks.length > 0) left.push(`${name} is Ready and has ${marks.join(", ")}`);
  }
  for (const [name, target] of facts.targets) {
    const owner = ownerOf(facts, target);
    if (owner !== undefined) left.push(`target ${name} is owned by ${owner.metadata.name}`);
  }
  return left;
}

function isNodeReady({ status }: Node): boolean {
  return status.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true;
}

function isRemediated(facts: Facts, nodeName: string): boolean {
  return [...facts.present].some((uid) => {
    const remediation = facts.remediations.get(uid);
    return remediation !== undefined && nodeOf(remediation) === nodeName;
  });
}
