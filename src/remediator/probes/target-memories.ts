import type { ObservedResets } from "./report/reset-history.ts";
import type { ProbeResult } from "./schedule/probe-result.ts";
import type { LockedLogin, ProbeSchedule, ProbeTrigger } from "./schedule/probe-schedule.ts";

/** What the probes of one target have left behind. */
export interface TargetMemory extends ProbeSchedule {
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

/** What this process remembers of each target, by UID, until the target is deleted. */
export class TargetMemories {
  readonly #memories = new Map<string, TargetMemory>();
  #failingTargets = 0;
  #outages = 0;

  /** How many targets failed their last probe. */
  get failingTargets(): number {
    return this.#failingTargets;
  }

  /** How many targets are probed in an outage of their node. */
  get outages(): number {
    return this.#outages;
  }

  get(targetUid: string): TargetMemory | undefined {
    return this.#memories.get(targetUid);
  }

  begin(targetUid: string, trigger: ProbeTrigger, dueAtMs: number): TargetMemory {
    const memory: TargetMemory = {
      trigger,
      probedAtMs: undefined,
      dueAtMs,
      failuresInARow: 0,
      probe: undefined,
      locked: [],
      resets: undefined,
      inOutage: 0,
    };
    this.#memories.set(targetUid, memory);
    return memory;
  }

  forget(targetUid: string): void {
    const memory = this.#memories.get(targetUid);
    if (memory === undefined) return;
    this.setFailures(memory, 0);
    this.setInOutage(memory, 0);
    this.#memories.delete(targetUid);
  }

  setInOutage(memory: TargetMemory, inOutage: number): void {
    this.#outages += Number(inOutage > 0) - Number(memory.inOutage > 0);
    memory.inOutage = inOutage;
  }

  setFailures(memory: TargetMemory, failuresInARow: number): void {
    this.#failingTargets += Number(failuresInARow > 0) - Number(memory.failuresInARow > 0);
    memory.failuresInARow = failuresInARow;
  }
}
