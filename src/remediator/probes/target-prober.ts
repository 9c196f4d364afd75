import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget, OffProof } from "../../api/ironfence/fencing-target.ts";
import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { parseKey } from "../../kube/watched.ts";
import { isReady } from "../../nodes/ready.ts";
import type { EarlyProverDeps } from "../early/early-prover.ts";
import { updateTargetStatus } from "../hosts/fencing-target/target-store.ts";
import { isActiveOwner } from "../hosts/model/active-owner.ts";
import { compareIdentity, expectedIdentity, meaningfulUuid } from "../hosts/model/identity.ts";
import type { ProofsWanted } from "./proofs-wanted.ts";
import { probeTarget } from "./reading/probe.ts";
import { reportForeignReset, reportReady } from "./report/report-target.ts";
import type { ObservedResets } from "./report/reset-history.ts";
import { foreignReset, observedResets } from "./report/reset-history.ts";
import type { TargetStatusFacts } from "./report/status-facts.ts";
import { isHealthy } from "./report/target-conditions.ts";
import { isOutdated, statusChange } from "./report/target-status.ts";
import { whyNodeMissing } from "./report/why-node-missing.ts";
import type { ProbeIntervals } from "./schedule/probe-intervals.ts";
import { DEFAULT_PROBE_INTERVALS } from "./schedule/probe-intervals.ts";
import type { ProbeRecords } from "./schedule/probe-records.ts";
import type { ProbeResult } from "./schedule/probe-result.ts";
import type { ProbeTrigger } from "./schedule/probe-schedule.ts";
import { dueAtMs, firstDelayMs, lockedLogins, nextDelayMs } from "./schedule/probe-schedule.ts";
import type { TargetMemory } from "./target-memories.ts";
import { TargetMemories } from "./target-memories.ts";
import type { TargetSurroundingsDeps } from "./target-surroundings.ts";
import { TargetSurroundings } from "./target-surroundings.ts";

/**
 * The time until a target is checked again while it is not known whether another operator powers its host. The check
 * makes no calls.
 */
const UNREAD_RECHECK_MS = 5_000;

export interface TargetControllerDeps extends TargetSurroundingsDeps {
  runtime: KubeRuntime;
  targets: Watched<FencingTarget>;
  openDevice: OpenDevice;
  /** Calls `listener` when `whyManaged` may have changed for many targets, but not for changes of single targets. */
  subscribeManaged?: (listener: () => void) => () => void;
  /** Receives the result of each probe, for the metrics. */
  records: ProbeRecords;
  /** What early off proofs need. Without it there are none. */
  early?: Pick<EarlyProverDeps, "nodes" | "leases" | "isStopped" | "remediations">;
  /** DEFAULT_PROBE_INTERVALS by default. */
  intervals?: ProbeIntervals;
}

/** Probes targets when it is due, and writes what the probes show to their status. */
export class TargetProber {
  readonly #deps: TargetControllerDeps;
  readonly #intervals: ProbeIntervals;
  readonly #memories = new TargetMemories();
  readonly #surroundings: TargetSurroundings;

  constructor(deps: TargetControllerDeps, secrets: Watched<KubeObject>, proofs: ProofsWanted) {
    this.#deps = deps;
    this.#surroundings = new TargetSurroundings(deps, secrets, proofs);
    this.#intervals = deps.intervals ?? DEFAULT_PROBE_INTERVALS;
  }

  /** Drops what is known of targets that were deleted. */
  forget(concerned: readonly FencingTarget[]): void {
    for (const { metadata } of concerned) {
      if (this.#deps.directory.index.byUid(metadata.uid) !== undefined) continue;
      this.#surroundings.forget(metadata.uid);
      this.#memories.forget(metadata.uid);
      this.#deps.records.forget(metadata.uid);
    }
  }

  close(): void {
    this.#surroundings.close();
  }

  /** Probes the target if a probe is due, and updates its status. */
  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number }> {
    const { runtime, targets, directory } = this.#deps;
    const { clock } = runtime;
    const target = targets.get(parseKey(key));
    // The index has only the targets of the agent's own namespace. Others are ignored.
    if (target === undefined || directory.index.byUid(target.metadata.uid) === undefined) return {};
    const trigger = this.#surroundings.triggerOf(target);
    const memory = this.#memoryOf(target, trigger);
    const conflict = this.#surroundings.conflictOf(target);
    const trusted = conflict === undefined || conflict.unread === true;
    if (target.status?.owner !== undefined) memory.resets = undefined;
    memory.dueAtMs = dueAtMs(memory, trigger, this.#intervals);
    if (isOutdated(this.#factsOf(target, memory))) memory.dueAtMs = Math.min(memory.dueAtMs, clock.monotonicMs());
    if (trigger.outage !== memory.trigger.outage) this.#memories.setInOutage(memory, 0);
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
    const { nodeRuntime, node } = this.#surroundings.nodeOf(target);
    const toProve = this.#surroundings.outageOf(target) !== undefined;
    const result = await probeTarget(this.#deps, target, node, { nodeRuntime, refused, toProve }, signal);
    this.#memories.setInOutage(memory, toProve ? memory.inOutage + 1 : 0);
    const nowMs = clock.monotonicMs();
    const readyBoot = this.#surroundings.readyBootOf(target, node);
    memory.probe = { result, atMs: clock.nowMs(), generation: target.metadata.generation, readyBoot };
    this.#deps.records.note(target.metadata.uid, result.devices, clock.nowMs());
    memory.probedAtMs = nowMs;
    memory.locked = lockedLogins(refused, result.refused, this.#intervals, nowMs);
    directory.report(target, reportedUuids(target, node, result));
    const healthy = isHealthy(this.#factsOf(target, memory));
    if (healthy) this.#compareResets(target, memory, observedResets(target, result.devices));
    this.#memories.setFailures(memory, healthy ? 0 : memory.failuresInARow + 1);
    const delayMs = nextDelayMs(
      {
        healthy,
        loginRefused: memory.locked.length > 0,
        failuresInARow: memory.failuresInARow,
        inOutage: memory.inOutage,
        nodeDown: node !== undefined && !isReady(node),
      },
      {
        devices: directory.index.deviceCount,
        failingTargets: this.#memories.failingTargets,
        outages: this.#memories.outages,
      },
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
    const { node } = this.#surroundings.nodeOf(target);
    const { probe } = memory;
    return {
      target,
      conflict: this.#surroundings.conflictOf(target),
      nodeMissing: whyNodeMissing(this.#deps, target),
      nodeSystemUUID: node?.status.nodeInfo?.systemUUID,
      probe: probe?.generation === target.metadata.generation ? probe : undefined,
      outage: this.#surroundings.outageOf(target),
    };
  }

  #memoryOf(target: FencingTarget, trigger: ProbeTrigger): TargetMemory {
    const known = this.#memories.get(target.metadata.uid);
    if (known !== undefined) return known;
    const { clock, random } = this.#deps.runtime;
    const { deviceCount } = this.#deps.directory.index;
    const inOutage = trigger.outage !== "";
    const delayMs = firstDelayMs(target, { deviceCount, inOutage }, this.#intervals, random);
    return this.#memories.begin(target.metadata.uid, trigger, clock.monotonicMs() + delayMs);
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
