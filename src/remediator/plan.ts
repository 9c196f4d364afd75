import type { BareMetalRemediationSpec } from "../api/bare-metal-remediation.ts";
import { parseDurationMs } from "../runtime/duration.ts";

/** A strategy with its durations read. */
export interface Plan {
  type: "Reboot" | "Reprovision" | "Escalate";
  /** Power cycles beyond the first. */
  retryLimit: number;
  powerOffTimeoutMs: number;
  drainTimeoutMs: number;
  powerOnTimeoutMs: number;
  /** From power-on until the node is Ready. */
  timeoutMs: number;
  workloadRelease: "OutOfServiceTaint" | "DeleteNode";
  podRelease: "Eager" | "GarbageCollector";
  requireReboot: boolean;
}

/** @throws Error where a duration cannot be read, which the CRD's schema rules out. */
export function planOf(spec: BareMetalRemediationSpec): Plan {
  const { strategy } = spec;
  return {
    type: strategy.type,
    retryLimit: strategy.retryLimit,
    powerOffTimeoutMs: durationMs("powerOffTimeout", strategy.powerOffTimeout),
    drainTimeoutMs: durationMs("drainTimeout", strategy.drainTimeout),
    powerOnTimeoutMs: durationMs("powerOnTimeout", strategy.powerOnTimeout),
    timeoutMs: durationMs("timeout", strategy.timeout),
    workloadRelease: strategy.workloadRelease,
    podRelease: strategy.podRelease,
    requireReboot: strategy.requireReboot,
  };
}

function durationMs(field: string, text: string): number {
  const parsedMs = parseDurationMs(text);
  if (parsedMs === undefined) throw new Error(`spec.strategy.${field}: "${text}" is not a duration`);
  return parsedMs;
}
