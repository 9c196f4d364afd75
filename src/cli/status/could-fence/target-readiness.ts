import { parseTimeMs } from "../../../runtime/time.ts";

// Whether a fence can rely on one FencingTarget. The Headlamp plugin has a copy that a test compares with this.

/** The fields of a FencingTarget that `judgeTarget` needs. */
export interface JudgedTarget {
  metadata: { name: string; generation?: number | undefined };
  spec: { maintenance?: boolean | undefined; devices?: readonly unknown[] | undefined };
  status?:
    | {
        lastProbeTime?: string | undefined;
        owner?: unknown;
        conditions?: readonly ReadyCondition[] | undefined;
      }
    | undefined;
}

interface ReadyCondition {
  type: string;
  status: string;
  reason?: string | undefined;
  message?: string | undefined;
  observedGeneration?: number | undefined;
}

/** Whether the host of a target could be powered off, and why not. */
export interface TargetReadiness {
  answer: "yes" | "no" | "unknown";
  /** The reason of the condition Ready, or `Maintenance`, `NotProbed` or `ProbeOld`. */
  reason: string;
  message: string;
}

/**
 * Whether the host of a target could be powered off now, as far as its object shows. A probe that is old, or that was
 * made before the spec was changed, shows nothing. Pure.
 *
 * @param clock.oldMs the age of a probe from which its result may be out of date (`probeOldMs`).
 */
export function judgeTarget(
  { metadata, spec, status }: JudgedTarget,
  { nowMs, oldMs }: { nowMs: number; oldMs: number },
): TargetReadiness {
  if (spec.maintenance === true) {
    const message = `spec.maintenance of FencingTarget ${metadata.name} is true: set it to false when the work is done`;
    return { answer: "no", reason: "Maintenance", message };
  }
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (ready === undefined) return unknown("NotProbed", "the agent has not probed its FencingTarget yet");
  const { reason = "", message = "" } = ready;
  if (ready.status !== "True") return { answer: "no", reason, message };
  if (ready.observedGeneration !== metadata.generation) {
    return unknown("NotProbed", "the agent has not probed its FencingTarget since the spec was changed");
  }
  if (isProbeOld({ metadata, spec, status }, { nowMs, oldMs })) {
    return unknown(
      "ProbeOld",
      `the agent has probed its FencingTarget last at ${status?.lastProbeTime ?? "no known time"}`,
    );
  }
  return { answer: "yes", reason, message };
}

/**
 * Whether the last probe of a target is so old that its status may be out of date, or no probe has left a time. No
 * probe reads a host that has an owner: its remediation does. Pure.
 */
export function isProbeOld({ status }: JudgedTarget, { nowMs, oldMs }: { nowMs: number; oldMs: number }): boolean {
  return status?.owner === undefined && nowMs - (parseTimeMs(status?.lastProbeTime) ?? -Infinity) > oldMs;
}

function unknown(reason: string, message: string): TargetReadiness {
  return { answer: "unknown", reason, message };
}
