import { SECRETS } from "../../api/core-types.ts";
import type { Node } from "../../api/core.ts";
import type { FencingTarget, OffProof } from "../../api/fencing-target.ts";
import type { Outage } from "../../api/off-proof.ts";
import { isSameOutage, outageOf } from "../../api/off-proof.ts";
import type { openDevice } from "../../bmc/open-device.ts";
import { Controller } from "../../kube/controller.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import { keyOf, keyText, parseKey } from "../../kube/watched.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { didYouMean } from "../../runtime/did-you-mean.ts";
import { isReady } from "../machine/node-patches/marks.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { FencingTargetDirectory } from "../hosts/fencing-target.ts";
import { compareIdentity, expectedIdentity, meaningfulUuid } from "../hosts/identity.ts";
import { probeTarget } from "./probe.ts";
import type { LockedLogin, ProbeIntervals, ProbePlan, ProbeTrigger } from "./probe-schedule.ts";
import { DEFAULT_PROBE_INTERVALS, dueAtMs, firstDelayMs, lockedLogins, nextDelayMs } from "./probe-schedule.ts";
import type { ProofsWanted } from "./proofs-wanted.ts";
import { watchProofsWanted } from "./proofs-wanted.ts";
import type { ResetsSeen } from "./reset-history.ts";
import { foreignReset, resetsSeen } from "./reset-history.ts";
import type { Conflict } from "../hosts/target-index.ts";
import { uuidClaim } from "../hosts/target-index.ts";
import type { TargetFacts } from "./target-status.ts";
import { isHealthy, isOutdated, statusChange } from "./target-status.ts";
import { isLive, readyOf, updateTargetStatus } from "../hosts/target-store.ts";
import type { ProbeResult } from "./probe-result.ts";
import type { Managed } from "../hosts/composite-directory.ts";

export interface TargetControllerDeps {
  runtime: KubeRuntime;
  targets: Watched<FencingTarget>;
  clusters: NodeClusters;
  directory: FencingTargetDirectory;
  /** The agent's own namespace. */
  namespace: string;
  openDevice: typeof openDevice;
  /** Why somebody else powers the host of a target as well, as far as that is known; nobody does where absent. */
  whyManaged?: (target: FencingTarget) => Managed | undefined;
  /** Calls `listener` when that may be known of more targets, or of fewer; of single changes nothing is reported. */
  subscribeManaged?: (listener: () => void) => () => void;
  /** DEFAULT_PROBE_INTERVALS where absent. */
  intervals?: ProbeIntervals;
}

/** How soon a target is looked at again while it is not known whether somebody else powers its host. In memory: it costs no call. */
const UNREAD_RECHECK_MS = 5_000;
/** Targets probed at the same time. */
const PROBES_AT_ONCE = 8;
/** How long probing waits for the first list of Secrets; without the right to watch them it goes on, blind to rotations. */
const SECRETS_WAIT_MS = 30_000;

/**
 * Probes every FencingTarget in quiet times and writes what it finds into the target's status, so that a stale password is
 * found before the night it is needed. A probe reads who the host is and how its power stands; it orders nothing, and keeps
 * away from a host that a remediation owns. Settles, with nothing left running, once `signal` aborts.
 */
export async function startTargetController(deps: TargetControllerDeps, signal: AbortSignal): Promise<void> {
  const { runtime, targets, clusters, directory, namespace } = deps;
  const secrets = runtime.watch({ type: SECRETS, namespace, trim: trimSecret }, signal);
  const proofs = watchProofsWanted(runtime, () => enqueue([...targets.values()]), signal);
  const prober = new Prober(deps, secrets, proofs);
  const controller = new Controller(runtime, {
    name: "fencing-targets",
    concurrency: PROBES_AT_ONCE,
    reconcile: (key, signal) => prober.reconcile(key, signal),
    minBackoffMs: 1_000,
    maxBackoffMs: 60_000,
  });
  const enqueue = (concerned: readonly FencingTarget[]): void => {
    for (const target of concerned) controller.enqueue(keyText(keyOf(target)));
  };
  const subscriptions: (() => void)[] = [];
  try {
    await targets.whenSynced(signal);
    await waitForSecrets(runtime, secrets, signal);
    subscriptions.push(
      directory.subscribe((concerned) => {
        prober.forget(concerned);
        enqueue(concerned);
      }),
      secrets.subscribe((change) => enqueue(directory.index.bySecret(change.object.metadata.name))),
      deps.subscribeManaged?.(() => enqueue([...targets.values()])) ?? (() => undefined),
      clusters.subscribe({
        onNode: (cluster, change) => {
          if (!mattersToTargets(change)) return;
          const { name } = change.object.metadata;
          enqueue(directory.index.byNode({ cluster, name }));
          enqueue(directory.index.claiming(uuidClaimsOf(change)));
        },
        onConnection: (cluster) => enqueue(directory.index.byCluster(cluster)),
      }),
    );
    enqueue([...targets.values()]);
    await controller.run(signal);
  } catch (error) {
    // The waits above throw on abort, and that is the clean end.
    if (!signal.aborted) throw error;
  } finally {
    for (const unsubscribe of subscriptions) unsubscribe();
    prober.close();
    await proofs.settled();
  }
}

/** What is remembered of one target, by UID: it dies with the target, and with the process. */
interface Memory extends ProbePlan {
  failuresInARow: number;
  /** The last probe, until the spec that it was of has changed. */
  probe: { result: ProbeResult; atMs: number; generation: number | undefined } | undefined;
  locked: LockedLogin[];
  /** Of the last probe of the right host, unless somebody here has owned the host since. */
  resets: ResetsSeen | undefined;
  /** Probes in the present outage of its node, where its host is to be proven off; else 0. */
  inOutage: number;
}

class Prober {
  readonly #deps: TargetControllerDeps;
  readonly #secrets: Watched<KubeObject>;
  readonly #intervals: ProbeIntervals;
  readonly #memories = new Map<string, Memory>();
  readonly #proofs: ProofsWanted;
  /** Keeps the clusters of targets' nodes connected, by the target's UID. */
  readonly #holds = new Map<string, { key: string; release: () => void }>();
  #failingTargets = 0;
  #outages = 0;

  constructor(deps: TargetControllerDeps, secrets: Watched<KubeObject>, proofs: ProofsWanted) {
    this.#deps = deps;
    this.#secrets = secrets;
    this.#proofs = proofs;
    this.#intervals = deps.intervals ?? DEFAULT_PROBE_INTERVALS;
  }

  /** Drops what is remembered of targets that are gone. */
  forget(concerned: readonly FencingTarget[]): void {
    for (const { metadata } of concerned) {
      if (this.#deps.directory.index.byUid(metadata.uid) !== undefined) continue;
      this.#holds.get(metadata.uid)?.release();
      this.#holds.delete(metadata.uid);
      const memory = this.#memories.get(metadata.uid);
      if (memory !== undefined) {
        this.#setFailures(memory, 0);
        this.#setInOutage(memory, 0);
      }
      this.#memories.delete(metadata.uid);
    }
  }

  close(): void {
    for (const { release } of this.#holds.values()) release();
  }

  /** Probes the target if that is due, and brings its status up to date. */
  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number }> {
    const { runtime, targets, directory } = this.#deps;
    const { clock } = runtime;
    const target = targets.get(parseKey(key));
    // The index holds the targets of the agent's own namespace: nothing is done for any other.
    if (target === undefined || directory.index.byUid(target.metadata.uid) === undefined) return {};
    const trigger = this.#triggerOf(target);
    const memory = this.#memoryOf(target, trigger);
    const conflict = this.#conflictOf(target);
    const trusted = conflict === undefined || conflict.unread === true;
    if (target.status?.owner !== undefined) memory.resets = undefined;
    memory.dueAtMs = dueAtMs(memory, trigger, this.#intervals);
    if (isOutdated(this.#factsOf(target, memory))) memory.dueAtMs = Math.min(memory.dueAtMs, clock.monotonicMs());
    if (trigger.outage !== memory.trigger.outage) this.#setInOutage(memory, 0);
    let proven: OffProof | undefined | "asBefore" = "asBefore";
    // A target that nobody trusts is not probed, unless a probe may find that the reason is over.
    const isProbed = trusted || conflict.byReport;
    if (isProbed && memory.dueAtMs <= clock.monotonicMs()) {
      proven = await this.#probe(target, memory, signal);
      memory.trigger = trigger;
    }
    await this.#writeStatus(target, memory, proven, signal);
    // The end of a conflict with another kind of host is not reported.
    if (!trusted) return { requeueAfterMs: this.#intervals.retryMinMs };
    const dueInMs = Math.max(0, memory.dueAtMs - clock.monotonicMs());
    const isUnread = this.#deps.whyManaged?.(target)?.state === "unread";
    return { requeueAfterMs: isUnread ? Math.min(dueInMs, UNREAD_RECHECK_MS) : dueInMs };
  }

  /** @returns the proof that the host is off, where it was to be made and was. */
  async #probe(target: FencingTarget, memory: Memory, signal: AbortSignal): Promise<OffProof | undefined> {
    const { runtime, directory } = this.#deps;
    const { clock, random } = runtime;
    const owner = target.status?.owner;
    if (owner !== undefined && (await isLive(runtime, owner, signal))) {
      // Its release changes the trigger; the interval is for an owner that goes without giving the host up.
      memory.dueAtMs = clock.monotonicMs() + this.#intervals.retryMaxMs;
      return undefined;
    }
    const startMs = clock.monotonicMs();
    const refused = memory.locked.filter((login) => login.untilMs > startMs);
    const { nodeRuntime, node } = this.#nodeOf(target);
    const toProve = this.#outageOf(target) !== undefined;
    const result = await probeTarget(this.#deps, target, node, { nodeRuntime, refused, toProve }, signal);
    this.#setInOutage(memory, toProve ? memory.inOutage + 1 : 0);
    const nowMs = clock.monotonicMs();
    memory.probe = { result, atMs: clock.nowMs(), generation: target.metadata.generation };
    memory.probedAtMs = nowMs;
    memory.locked = lockedLogins(refused, result.refused, this.#intervals, nowMs);
    directory.report(target, reportedUuids(target, node, result));
    const healthy = isHealthy(this.#factsOf(target, memory));
    if (healthy) this.#compareResets(target, memory, resetsSeen(target, result.devices));
    this.#setFailures(memory, healthy ? 0 : memory.failuresInARow + 1);
    const delayMs = nextDelayMs(
      {
        healthy,
        loginRefused: memory.locked.length > 0,
        failuresInARow: memory.failuresInARow,
        inOutage: memory.inOutage,
        nodeDown: node !== undefined && !isReady(node),
      },
      { devices: directory.index.deviceCount, failingTargets: this.#failingTargets, outages: this.#outages },
      this.#intervals,
      random,
    );
    memory.dueAtMs = nowMs + delayMs;
    return result.offProof;
  }

  /** Says so where the host was reset, and not by this agent: another one may reach its BMC. */
  #compareResets(target: FencingTarget, memory: Memory, seen: ResetsSeen): void {
    const found = foreignReset(memory.resets, seen);
    memory.resets = seen;
    if (found === undefined) return;
    const { runtime } = this.#deps;
    const { namespace, name } = target.metadata;
    const note = `the host was reset at ${found.time} (clock of ${found.address}), and not by this agent: its OS rebooted, or a person or another agent that reaches this BMC did it`;
    runtime.events.record({ regarding: target, type: "Warning", reason: "ResetByOthers", action: "Probe", note });
    const fields = { target: `${namespace}/${name}`, node: target.spec.nodeName, address: found.address };
    runtime.logger.warn({ ...fields, resetTime: found.time }, "the host was reset, and not by this agent");
  }

  async #writeStatus(
    target: FencingTarget,
    memory: Memory,
    proven: OffProof | undefined | "asBefore",
    signal: AbortSignal,
  ): Promise<void> {
    const { runtime, namespace } = this.#deps;
    const { uid, name, generation } = target.metadata;
    const ref = { kind: target.kind, namespace, name, uid };
    let before: FencingTarget = target;
    let change: ReturnType<typeof statusChange>;
    await updateTargetStatus(
      runtime,
      ref,
      (live) => {
        before = live;
        // A newer spec has its own turn; what was found is about this one.
        const isOther = live.metadata.generation !== generation;
        change = isOther ? undefined : statusChange(this.#factsOf(live, memory), proven, runtime.clock.nowMs());
        return change;
      },
      signal,
      target,
    );
    if (change !== undefined) this.#tell(before, change);
  }

  #tell(target: FencingTarget, change: NonNullable<ReturnType<typeof statusChange>>): void {
    const { runtime } = this.#deps;
    const { namespace, name } = target.metadata;
    const was = readyOf(target.status);
    const is = readyOf({ conditions: change.conditions ?? [] });
    if (is === undefined || (is.status === was?.status && is.reason === was.reason)) return;
    const type = is.status === "True" && is.reason === "Usable" ? "Normal" : "Warning";
    runtime.events.record({ regarding: target, type, reason: is.reason, action: "Probe", note: is.message });
    const fields = {
      target: `${namespace}/${name}`,
      node: target.spec.nodeName,
      reason: is.reason,
      detail: is.message,
    };
    if (type === "Normal") runtime.logger.info(fields, "fencing target is ready");
    else runtime.logger.warn(fields, "fencing target needs attention");
  }

  #factsOf(target: FencingTarget, memory: Memory): TargetFacts {
    const { node } = this.#nodeOf(target);
    const { probe } = memory;
    return {
      target,
      conflict: this.#conflictOf(target),
      nodeMissing: this.#whyNodeMissing(target),
      nodeSystemUUID: node?.status.nodeInfo?.systemUUID,
      probe: probe?.generation === target.metadata.generation ? probe : undefined,
      outage: this.#outageOf(target),
    };
  }

  #conflictOf(target: FencingTarget): Conflict | undefined {
    const { directory, whyManaged } = this.#deps;
    const conflict = directory.conflictOf(target.metadata.uid);
    if (conflict !== undefined) return conflict;
    const managed = whyManaged?.(target);
    if (managed?.why === undefined) return undefined;
    const found = { message: managed.why, byReport: false, holdsOn: true };
    return managed.state === "unread" ? { ...found, unread: true } : found;
  }

  /** Undefined where the node exists, or its cluster cannot be asked. */
  #whyNodeMissing(target: FencingTarget): string | undefined {
    const { clusters, directory } = this.#deps;
    const { nodeName, clusterRef } = target.spec;
    const { nodes, away } = clusters.of(clusterRef);
    if (away !== undefined || nodes.get({ name: nodeName }) !== undefined) return undefined;
    // One that another target names is not meant by this one.
    const free = [...nodes.values()].flatMap(({ metadata: { name } }) =>
      directory.index.byNode({ cluster: clusterRef, name }).length === 0 ? [name] : [],
    );
    const meant = didYouMean(nodeName, free);
    const cluster = clusterRef === undefined ? "the cluster" : `cluster ${clusterKey(clusterRef)}`;
    const next =
      meant === undefined
        ? "correct spec.nodeName, or wait until the node joins"
        : `did you mean ${meant}? Correct spec.nodeName`;
    return `${cluster} has no node ${nodeName}: ${next}`;
  }

  #outageOf(target: FencingTarget): Outage | undefined {
    // Health checks that ask for proofs are over nodes of the agent's own cluster.
    if (!this.#proofs.wanted || target.spec.clusterRef !== undefined) return undefined;
    return outageOf(this.#nodeOf(target).node);
  }

  /** The node that the target names, in its cluster; undefined also while that is away. */
  #nodeOf(target: FencingTarget): { nodeRuntime: KubeRuntime; node: Node | undefined } {
    const { clusters } = this.#deps;
    const { nodeName, clusterRef } = target.spec;
    const { uid } = target.metadata;
    const key = clusterKey(clusterRef);
    const held = this.#holds.get(uid);
    if (held?.key !== key) {
      this.#holds.set(uid, { key, release: clusters.hold(clusterRef) });
      held?.release();
    }
    const { runtime, nodes } = clusters.of(clusterRef);
    return { nodeRuntime: runtime, node: nodes.get({ name: nodeName }) };
  }

  #memoryOf(target: FencingTarget, trigger: ProbeTrigger): Memory {
    const known = this.#memories.get(target.metadata.uid);
    if (known !== undefined) return known;
    const { clock, random } = this.#deps.runtime;
    const { deviceCount } = this.#deps.directory.index;
    const inOutage = trigger.outage !== "";
    const delayMs = firstDelayMs(target, { deviceCount, inOutage }, this.#intervals, random);
    const memory: Memory = {
      trigger,
      probedAtMs: undefined,
      dueAtMs: clock.monotonicMs() + delayMs,
      failuresInARow: 0,
      probe: undefined,
      locked: [],
      resets: undefined,
      inOutage: 0,
    };
    this.#memories.set(target.metadata.uid, memory);
    return memory;
  }

  #triggerOf(target: FencingTarget): ProbeTrigger {
    const { namespace } = this.#deps;
    const names = target.spec.devices.flatMap((device) => [
      device.credentialsSecretRef.name,
      ...(device.tls?.caSecretRef === undefined ? [] : [device.tls.caSecretRef.name]),
    ]);
    const versions = names.map((name) => this.#secrets.get({ namespace, name })?.metadata.resourceVersion ?? "");
    const { node } = this.#nodeOf(target);
    const uuid = node !== undefined && isReady(node) ? meaningfulUuid(node.status.nodeInfo?.systemUUID) : undefined;
    const parts = [target.metadata.generation ?? 0, target.status?.owner?.uid ?? "", ...versions];
    const { nodeUID, bootID, notReadySince } = this.#outageOf(target) ?? {};
    const outage = nodeUID === undefined ? "" : `${nodeUID} ${bootID ?? ""} ${notReadySince}`;
    return { fingerprint: parts.join(" "), readyUuid: uuid ?? "", outage };
  }

  #setInOutage(memory: Memory, inOutage: number): void {
    this.#outages += Number(inOutage > 0) - Number(memory.inOutage > 0);
    memory.inOutage = inOutage;
  }

  #setFailures(memory: Memory, failuresInARow: number): void {
    this.#failingTargets += Number(failuresInARow > 0) - Number(memory.failuresInARow > 0);
    memory.failuresInARow = failuresInARow;
  }
}

/**
 * The system UUIDs that a target's host reports. A device that is known to be another host's, by a wrong address, tells nothing of
 * this one.
 */
function reportedUuids(target: FencingTarget, node: Node | undefined, { devices, pin }: ProbeResult): string[] {
  const known = [expectedIdentity(target) ?? {}, pin ?? {}, node?.status.nodeInfo ?? {}];
  return devices.flatMap((device) => {
    if (!device.ok || known.some((identity) => compareIdentity(identity, device.identity) === "mismatch")) return [];
    return meaningfulUuid(device.identity.systemUUID) ?? [];
  });
}

/** What the UUIDs of a node, before a change and after it, are filed under. */
function uuidClaimsOf(change: Change<Node>): string[] {
  const nodes = change.type === "updated" ? [change.object, change.previous] : [change.object];
  const uuids = nodes.flatMap((node) => meaningfulUuid(node.status.nodeInfo?.systemUUID) ?? []);
  return uuids.map(uuidClaim);
}

/** Whether a node's change may mean something to its target: most are heartbeats. */
function mattersToTargets(change: Change<Node>): boolean {
  if (change.type !== "updated") return true;
  const { object, previous } = change;
  const [before, now] = [outageOf(previous), outageOf(object)];
  return (
    isReady(object) !== isReady(previous) ||
    (before !== now && !isSameOutage(before, now)) ||
    object.status.nodeInfo?.systemUUID !== previous.status.nodeInfo?.systemUUID
  );
}

async function waitForSecrets(runtime: KubeRuntime, secrets: Watched<KubeObject>, signal: AbortSignal): Promise<void> {
  try {
    await withDeadline(runtime.clock, "first list of Secrets", SECRETS_WAIT_MS, signal, (signal) =>
      secrets.whenSynced(signal),
    );
  } catch (error) {
    if (signal.aborted) throw error;
    runtime.logger.warn(
      { problem: secrets.problem },
      "Secrets cannot be watched yet: a rotated password is found at the next probe",
    );
  }
}

/** Of a Secret no more than its version is ever held. */
function trimSecret({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { namespace, name, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) } };
}
