import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget, OffProof } from "../../api/ironfence/fencing-target.ts";
import type { Outage } from "../../api/kubernetes/outage.ts";
import { outageOf } from "../../api/kubernetes/outage.ts";
import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { parseKey } from "../../kube/watched.ts";
import { isReady } from "../../nodes/ready.ts";
import type { NodeClusters } from "../clusters/node-clusters.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { FencingTargetDirectory } from "../hosts/fencing-target/directory.ts";
import { compareIdentity, expectedIdentity, meaningfulUuid } from "../hosts/model/identity.ts";
import type { EarlyProverDeps } from "../early/early-prover.ts";
import { probeTarget } from "./reading/probe.ts";
import type { ProbeRecords } from "./schedule/probe-records.ts";
import type { ProbeIntervals } from "./schedule/probe-intervals.ts";
import { DEFAULT_PROBE_INTERVALS } from "./schedule/probe-intervals.ts";
import type { LockedLogin, ProbeSchedule, ProbeTrigger } from "./schedule/probe-schedule.ts";
import { dueAtMs, firstDelayMs, lockedLogins, nextDelayMs } from "./schedule/probe-schedule.ts";
import type { ProofsWanted } from "./proofs-wanted.ts";
import type { ObservedResets } from "./report/reset-history.ts";
import { foreignReset, observedResets } from "./report/reset-history.ts";
import type { Conflict } from "../hosts/fencing-target/target-index.ts";
import type { TargetStatusFacts } from "./report/status-facts.ts";
import { isOutdated, statusChange } from "./report/target-status.ts";
import { isHealthy } from "./report/target-conditions.ts";
import { reportForeignReset, reportReady } from "./report/report-target.ts";
import { whyNodeMissing } from "./report/why-node-missing.ts";
import { isActiveOwner } from "../hosts/model/active-owner.ts";
import { updateTargetStatus } from "../hosts/fencing-target/target-store.ts";
import type { ProbeResult } from "./schedule/probe-result.ts";
import type { Managed } from "../hosts/composite-directory.ts";

export interface TargetControllerDeps {
  runtime: KubeRuntime;
  targets: Watched<FencingTarget>;
  clusters: NodeClusters;
  directory: FencingTargetDirectory;
  /** The agent's own namespace. */
  namespace: string;
  openDevice: OpenDevice;
  /** Why another operator powers the host of a target as well; undefined if none is known. */
  whyManaged?: (target: FencingTarget) => Managed | undefined;
  /** Calls `listener` when this may have changed for many targets. Changes of single targets are not reported. */
  subscribeManaged?: (listener: () => void) => () => void;
  /** Receives the result of each probe, for the metrics. */
  records: ProbeRecords;
  /** What early off proofs need. Without it there are none. */
  early?: Pick<EarlyProverDeps, "nodes" | "leases" | "isStopped" | "remediations">;
  /** DEFAULT_PROBE_INTERVALS by default. */
  intervals?: ProbeIntervals;
}

/**
 * The time until a target is checked again while it is not known whether another operator powers its host. The check
 * makes no calls.
 */
const UNREAD_RECHECK_MS = 5_000;

/** What this process knows of one target, by UID, until the target is deleted. */
interface TargetMemory extends ProbeSchedule {
  failuresInARow: number;
  /** The last probe, until the spec changes. */
  probe:
    | { result: ProbeResult; atMs: number; generation: number | undefined; readyBoot: string | undefined }
    | undefined;
  locked: LockedLogin[];
  /** From the last probe of the right host, unless a remediation has owned the host since then. */
  resets: ObservedResets | undefined;
  /** The number of probes in the present outage of its node, if its host is to be proven off; otherwise 0. */
  inOutage: number;
}

export class TargetProber {
  readonly #deps: TargetControllerDeps;
  readonly #secrets: Watched<KubeObject>;
  readonly #intervals: ProbeIntervals;
  readonly #memories = new Map<string, TargetMemory>();
  readonly #proofs: ProofsWanted;
  /** Keeps the clusters of targets' nodes connected, by the target's UID. */
  readonly #connections = new Map<string, { key: string; release: () => void }>();
  #failingTargets = 0;
  #outages = 0;

  constructor(deps: TargetControllerDeps, secrets: Watched<KubeObject>, proofs: ProofsWanted) {
    this.#deps = deps;
    this.#secrets = secrets;
    this.#proofs = proofs;
    this.#intervals = deps.intervals ?? DEFAULT_PROBE_INTERVALS;
  }

  /** Drops what is known of targets that were deleted. */
  forget(concerned: readonly FencingTarget[]): void {
    for (const { metadata } of concerned) {
      if (this.#deps.directory.index.byUid(metadata.uid) !== undefined) continue;
      this.#connections.get(metadata.uid)?.release();
      this.#connections.delete(metadata.uid);
      const memory = this.#memories.get(metadata.uid);
      if (memory !== undefined) {
        this.#setFailures(memory, 0);
        this.#setInOutage(memory, 0);
      }
      this.#memories.delete(metadata.uid);
      this.#deps.records.forget(metadata.uid);
    }
  }

  close(): void {
    for (const { release } of this.#connections.values()) release();
  }

  /** Probes the target if a probe is due, and updates its status. */
  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number }> {
    const { runtime, targets, directory } = this.#deps;
    const { clock } = runtime;
    const target = targets.get(parseKey(key));
    // The index has only the targets of the agent's own namespace. Others are ignored.
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
    // A target with a conflict is not probed, unless a probe may show that the conflict is over.
    const isProbed = trusted || conflict.byReport;
    if (isProbed && memory.dueAtMs <= clock.monotonicMs()) {
      proven = await this.#probe(target, memory, signal);
      memory.trigger = trigger;
    }
    await this.#writeStatus(target, memory, proven, signal);
    // Nothing reports the end of a conflict with another kind of host, so it is checked at an interval.
    if (!trusted) return { requeueAfterMs: this.#intervals.retryMinMs };
    const dueInMs = Math.max(0, memory.dueAtMs - clock.monotonicMs());
    const isUnread = this.#deps.whyManaged?.(target)?.state === "unread";
    return { requeueAfterMs: isUnread ? Math.min(dueInMs, UNREAD_RECHECK_MS) : dueInMs };
  }

  /** @returns the proof that the host is off, if one was requested and succeeded. */
  async #probe(target: FencingTarget, memory: TargetMemory, signal: AbortSignal): Promise<OffProof | undefined> {
    const { runtime, directory } = this.#deps;
    const { clock, random } = runtime;
    const owner = target.status?.owner;
    if (owner !== undefined && (await isActiveOwner(runtime, owner, signal))) {
      // Its release changes the trigger. The interval is for an owner that disappears without releasing the host.
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
    const readyBoot = this.#readyBootOf(target, node);
    memory.probe = { result, atMs: clock.nowMs(), generation: target.metadata.generation, readyBoot };
    this.#deps.records.note(target.metadata.uid, result.devices, clock.nowMs());
    memory.probedAtMs = nowMs;
    memory.locked = lockedLogins(refused, result.refused, this.#intervals, nowMs);
    directory.report(target, reportedUuids(target, node, result));
    const healthy = isHealthy(this.#factsOf(target, memory));
    if (healthy) this.#compareResets(target, memory, observedResets(target, result.devices));
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

  /** Reports a reset of the host that this agent did not order: another agent may have access to its BMC. */
  #compareResets(target: FencingTarget, memory: TargetMemory, resets: ObservedResets): void {
    const found = foreignReset(memory.resets, resets);
    memory.resets = resets;
    if (found === undefined) return;
    reportForeignReset(this.#deps.runtime, target, found);
  }

  async #writeStatus(
    target: FencingTarget,
    memory: TargetMemory,
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
      (current) => {
        before = current;
        // A newer spec gets its own probe. This result is for the older one.
        const isOther = current.metadata.generation !== generation;
        change = isOther ? undefined : statusChange(this.#factsOf(current, memory), proven, runtime.clock.nowMs());
        return change;
      },
      signal,
      target,
    );
    if (change !== undefined) reportReady(this.#deps.runtime, before, change);
  }

  #factsOf(target: FencingTarget, memory: TargetMemory): TargetStatusFacts {
    const { node } = this.#nodeOf(target);
    const { probe } = memory;
    return {
      target,
      conflict: this.#conflictOf(target),
      nodeMissing: whyNodeMissing(this.#deps, target),
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

  #outageOf(target: FencingTarget): Outage | undefined {
    // Health checks that request proofs select nodes of the agent's own cluster.
    if (!this.#proofs.wanted || target.spec.clusterRef !== undefined) return undefined;
    return outageOf(this.#nodeOf(target).node);
  }

  /**
   * The boot of a Ready node whose host may be proven off before its duration begins; undefined if no health check
   * may remediate it then.
   */
  #readyBootOf(target: FencingTarget, node: Node | undefined): string | undefined {
    if (node === undefined || target.spec.clusterRef !== undefined || !isReady(node)) return undefined;
    return this.#proofs.isEarlyWantedFor(node) ? node.status.nodeInfo?.bootID : undefined;
  }

  /** The node that the target names, in its cluster; also undefined while the cluster has a problem. */
  #nodeOf(target: FencingTarget): { nodeRuntime: KubeRuntime; node: Node | undefined } {
    const { clusters } = this.#deps;
    const { nodeName, clusterRef } = target.spec;
    const { uid } = target.metadata;
    const key = clusterKey(clusterRef);
    const held = this.#connections.get(uid);
    // The agent's own cluster needs no hold.
    if ((held?.key ?? clusterKey(undefined)) !== key) {
      if (clusterRef === undefined) this.#connections.delete(uid);
      else this.#connections.set(uid, { key, release: clusters.hold(clusterRef) });
      held?.release();
    }
    const { runtime, nodes } = clusters.of(clusterRef);
    return { nodeRuntime: runtime, node: nodes.get({ name: nodeName }) };
  }

  #memoryOf(target: FencingTarget, trigger: ProbeTrigger): TargetMemory {
    const known = this.#memories.get(target.metadata.uid);
    if (known !== undefined) return known;
    const { clock, random } = this.#deps.runtime;
    const { deviceCount } = this.#deps.directory.index;
    const inOutage = trigger.outage !== "";
    const delayMs = firstDelayMs(target, { deviceCount, inOutage }, this.#intervals, random);
    const memory: TargetMemory = {
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
    const readyBoot = this.#readyBootOf(target, node);
    // A host is proven off early only if a probe has read it On in the present boot.
    const isUnread = readyBoot !== undefined && readyBoot !== target.status?.onInBoot;
    return { fingerprint: parts.join(" "), readyUuid: uuid ?? "", outage, unreadBoot: isUnread ? readyBoot : "" };
  }

  #setInOutage(memory: TargetMemory, inOutage: number): void {
    this.#outages += Number(inOutage > 0) - Number(memory.inOutage > 0);
    memory.inOutage = inOutage;
  }

  #setFailures(memory: TargetMemory, failuresInARow: number): void {
    this.#failingTargets += Number(failuresInARow > 0) - Number(memory.failuresInARow > 0);
    memory.failuresInARow = failuresInARow;
  }
}

/**
 * The system UUIDs that a target's host reports. A device with a wrong address that is known to belong to another host
 * reports nothing about this one.
 */
function reportedUuids(target: FencingTarget, node: Node | undefined, { devices, pin }: ProbeResult): string[] {
  const known = [expectedIdentity(target) ?? {}, pin ?? {}, node?.status.nodeInfo ?? {}];
  return devices.flatMap((device) => {
    if (!device.ok || known.some((identity) => compareIdentity(identity, device.identity) === "mismatch")) return [];
    return meaningfulUuid(device.identity.systemUUID) ?? [];
  });
}
