import type { Node, Pod } from "../../../src/api/kubernetes/core.ts";
import { OUT_OF_SERVICE, sameTaint } from "../../../src/api/kubernetes/taints.ts";
import { mustLeave } from "../../../src/remediator/machine/node-patches/pods.ts";
import { ORDERS_MAX } from "../../../src/remediator/machine/rules/orders/power-orders.ts";
import { parseDurationMs } from "../../../src/runtime/duration.ts";
import { parseTimeMs } from "../../../src/runtime/time.ts";
import type { Facts, HostTruth, Invariant, OrderRecord } from "./facts.ts";
import { agentWrite, conditionOf, signerOf } from "./facts.ts";

/**
 * How long our taint may stay on a host that has left Off while nothing hampers the agent. The power is read every 1.5
 * s, failed reads count as a lost proof when the last Off is 5 s old, and one request removes the taint. The rest is
 * slack for calls that reach their deadline.
 */
export const TAINT_GRACE_MS = 10_000;

/**
 * How long a host that another client powers on may still count as off. Its power is read at least every 5 s, and a
 * request may still be in transit.
 */
const READ_GRACE_MS = 6_000;

/**
 * S1. Writes that let Kubernetes move pods and volumes away (our out-of-service taint, a pod that we end, a Node that
 * we delete) happen only while the host is really off. No power-on is sent while our taint is on the node. If another
 * client has just powered the host on, there is an excuse as long as the proof of Off is valid, because no agent could
 * know earlier.
 */
export const onlyWhileOff: Invariant = {
  name: "S1",
  says: "our taint, pod deletions and node deletions happen only while the host is truly off",
  check: (facts, step) => {
    const node = agentWrite<Node>(step, "Node");
    if (node !== undefined) {
      const { name } = node.object.metadata;
      if (node.type === "DELETED") return mustBeOff(facts, name, `Node ${name} was deleted`);
      const signer = signerOf(node.object, "outOfService");
      const before = signerOf(node.previous, "outOfService");
      return signer !== undefined && signer !== before
        ? mustBeOff(facts, name, `the out-of-service taint was put on ${name}`)
        : undefined;
    }
    const pod = agentWrite<Pod>(step, "Pod");
    if (pod !== undefined) {
      const { name } = pod.object.metadata;
      return mustBeOff(facts, pod.object.spec.nodeName ?? "", `pod ${name} was ended`);
    }
    if (step.type !== "ordered" || step.record.order !== "On" || step.record.outcome !== "Started") return undefined;
    const { host } = step.record;
    return signerOf(facts.nodes.get(host), "outOfService") === undefined
      ? undefined
      : `${host} was ordered on with our out-of-service taint on`;
  },
};

function mustBeOff(facts: Facts, name: string, what: string): string | undefined {
  const host = facts.hosts.get(name);
  if (host === undefined || host.power === "Off" || wasJustTurnedOn(facts, host)) return undefined;
  return `${what} while ${name} is ${host.power}`;
}

/** Whether another client has powered a host on within the last `READ_GRACE_MS`. */
function wasJustTurnedOn(facts: Facts, { name, power }: HostTruth): boolean {
  const sinceMs = facts.notOffSinceMs.get(name) ?? -Infinity;
  const isOurs = facts.orders.some(({ host, order, atMs }) => host === name && order === "On" && atMs >= sinceMs - 1);
  return power !== "PoweringOff" && !isOurs && sinceMs > 0 && facts.atMs - sinceMs <= READ_GRACE_MS;
}

/** S1, the other half: if a host comes on while it is fenced, our taint is removed within `TAINT_GRACE_MS`. */
export const taintFollowsPower: Invariant = {
  name: "S1",
  says: `our taint does not outlast the proof by more than ${TAINT_GRACE_MS} ms`,
  check: (facts) => {
    for (const name of facts.fenced) {
      const notOffSinceMs = facts.notOffSinceMs.get(name);
      if (notOffSinceMs === undefined) continue;
      const forMs = facts.atMs - Math.max(notOffSinceMs, facts.calmSinceMs);
      if (forMs > TAINT_GRACE_MS)
        return `our out-of-service taint is on ${name}, which has not been off for ${forMs} ms`;
    }
    return undefined;
  },
};

/**
 * S2. A single-writer volume never has two writers: pods on different hosts that can write. Another client that puts
 * the out-of-service taint on the node of a running host is responsible for the consequences.
 */
export const oneWriter: Invariant = {
  name: "S2",
  says: "never two writers of one single-writer volume",
  check: (facts) => {
    const writers = new Map<string, string>();
    for (const host of facts.hosts.values()) {
      if (host.workloads.size === 0 || !host.canWrite || hasForeignTaint(facts.nodes.get(host.name))) continue;
      for (const { pod, claims } of host.workloads.values()) {
        for (const claim of claims) {
          const other = writers.get(claim);
          if (other !== undefined && other !== host.name)
            return `${claim} is written to on ${other} and on ${host.name} (${pod})`;
          writers.set(claim, host.name);
        }
      }
    }
    return undefined;
  },
};

function hasForeignTaint(node: Node | undefined): boolean {
  const isOn = (node?.spec.taints ?? []).some((taint) => sameTaint(taint, OUT_OF_SERVICE));
  return isOn && signerOf(node, "outOfService") === undefined;
}

/**
 * S3. Only a remediation that has stored the intent orders On: after its workloads have left, after the drain timeout,
 * or to undo a power-off after an abort or failure.
 */
export const onOnlyAfterRelease: Invariant = {
  name: "S3",
  says: "power on only after drained, drain timeout, or an explicit abort",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.order !== "On" || step.record.outcome === "Refused") return undefined;
    const { host } = step.record;
    const remediation = facts.remediations.get(step.record.remediation ?? "");
    if (remediation === undefined) return `${host} was ordered on by no remediation`;
    const { phase, outcome, attempt } = remediation.status ?? {};
    if (phase === "Undoing" && outcome !== undefined) return undefined;
    if (phase !== "PoweringOn" || attempt?.action !== "On")
      return `${host} was ordered on in ${phase ?? "no state"} without a stored intent`;
    const released = conditionOf(remediation, "WorkloadsReleased");
    if (released?.status === "True") return undefined;
    if (released?.reason !== "DrainTimeout")
      return `${host} was ordered on although nothing says that its workloads have left`;
    const drainMs = parseDurationMs(remediation.spec.strategy.drainTimeout) ?? 0;
    const offMs = parseTimeMs(attempt.offConfirmedAt) ?? 0;
    const sinceMs = (parseTimeMs(attempt.actionAt) ?? 0) - offMs;
    return !facts.clocksAgree || sinceMs >= drainMs
      ? undefined
      : `${host} was ordered on ${sinceMs} ms after the proof: the drain timeout is ${drainMs} ms`;
  },
};

/**
 * S3. A node that is reported as drained really is: no pod that must leave is bound to it, and no volume of such a pod
 * is attached.
 */
export const drainedIsTrue: Invariant = {
  name: "S3",
  says: "WorkloadsReleased=True is written only when nothing is bound to the node any more",
  check: (facts, step) => {
    const write = agentWrite<Parameters<typeof conditionOf>[0]>(step, "BareMetalRemediation");
    if (write === undefined || write.type === "DELETED") return undefined;
    const isDrained = conditionOf(write.object, "WorkloadsReleased")?.status === "True";
    const wasDrained =
      write.previous !== undefined && conditionOf(write.previous, "WorkloadsReleased")?.status === "True";
    const name = write.object.status?.node?.name;
    if (!isDrained || wasDrained || name === undefined) return undefined;
    const staying = new Set<string>();
    for (const pod of facts.pods.values()) {
      if (pod.spec.nodeName !== name) continue;
      if (mustLeave(pod)) return `${name} is reported as drained, but pod ${pod.metadata.name} is bound to it`;
      staying.add(pod.metadata.name);
    }
    const attached = [...facts.attachments.values()].filter(({ spec }) => spec.nodeName === name);
    return attached.length > staying.size
      ? `${name} is reported as drained, but ${attached.length} volumes are attached`
      : undefined;
  },
};

/** S4. At most one power-off takes effect per attempt id, and each was stored as an intent before. */
export const onePowerOffAnId: Invariant = {
  name: "S4",
  says: "at most one power-off order takes effect per attempt id, each with its intent stored before",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.order !== "ForceOff") return undefined;
    const { host, attempt, outcome, remediation } = step.record;
    const { acCycle } = facts.remediations.get(remediation ?? "")?.status ?? {};
    // For an AC cycle, outlets interrupt the mains power of a host that is off.
    if (outcome === "NoChange" && acCycle !== undefined && acCycle.attemptID === attempt?.id) return undefined;
    if (attempt?.action !== "ForceOff") return `${host} was ordered off without a stored intent`;
    if (outcome !== "Started") return undefined;
    const same = facts.orders.filter((other) => isPowerOff(other) && other.attempt?.id === attempt.id);
    return same.length > 1 ? `${same.length} power-offs of ${host} took effect under attempt ${attempt.id}` : undefined;
  },
};

function isPowerOff({ order, outcome }: OrderRecord): boolean {
  return order === "ForceOff" && outcome === "Started";
}

/** S4. A remediation power-cycles a host at most 1 + retryLimit times, with at most `ORDERS_MAX` power-offs in each. */
export const boundedCycles: Invariant = {
  name: "S4",
  says: "power cycles never exceed 1 + retryLimit, and the orders in each are bounded",
  check: (facts, step) => {
    if (step.type !== "ordered" || !isPowerOff(step.record)) return undefined;
    const { remediation: uid, host } = step.record;
    const remediation = facts.remediations.get(uid ?? "");
    if (remediation === undefined) return `${host} was ordered off by no remediation`;
    const { retryLimit, type } = remediation.spec.strategy;
    const cycles = 1 + retryLimit + (type === "Escalate" ? 1 : 0);
    const offs = facts.orders.filter((other) => other.remediation === uid && isPowerOff(other));
    const retries = Math.max(...offs.map(({ attempt }) => attempt?.retryCount ?? 0));
    if (retries >= cycles) return `${host} is in power cycle ${retries + 1} of ${cycles}`;
    const inCycle = offs.filter(({ attempt }) => attempt?.retryCount === step.record.attempt?.retryCount);
    return inCycle.length > ORDERS_MAX ? `${host} was cut off ${inCycle.length} times in one power cycle` : undefined;
  },
};
