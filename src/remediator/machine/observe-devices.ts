import { backoffMs } from "../../runtime/random.ts";
import { DEVICE_FINAL_RETRY_MS, DEVICE_RETRY_MAX_MS, DEVICE_RETRY_MIN_MS } from "./model/decision/timings.ts";
import type { RemediationEvent } from "./model/facts/event.ts";
import type { Observations } from "./model/facts/observations.ts";
import { NOTHING_READ } from "./rules/proof/off-proof.ts";

/** Discards what the devices of an edited target have shown: its devices may now belong to another host. */
export function targetChanged(
  observations: Observations,
  { targetUid, isEdited }: Extract<RemediationEvent, { type: "TargetChanged" }>,
): Observations {
  // The claim is on a target that has since been deleted and created again.
  const isOther = observations.claim?.owned === true && observations.claim.targetUid !== targetUid;
  const next = isOther ? { ...observations, claim: undefined } : observations;
  if (!isEdited) return next;
  return { ...next, identity: undefined, power: NOTHING_READ, device: undefined, override: undefined };
}

/** Records that the BMC does not answer during the AC cycle, if one was ordered. */
export function cycleAway({ acCycle }: Observations): Partial<Observations> {
  return acCycle === undefined ? {} : { acCycle: { ...acCycle, isAway: true } };
}

/** Adds a failure of the devices, with the time of the next try. */
export function deviceFailed(
  observations: Observations,
  event: Extract<RemediationEvent, { type: "DeviceFailed" }>,
): Observations {
  const { wasOpen, jitter, atMs } = event;
  // The password may have changed since the device was opened, so it is read again before the refusal counts as final.
  const isStale = wasOpen && event.problem.reason === "BMCAuthenticationFailed";
  const problem = isStale ? { ...event.problem, final: false } : event.problem;
  const failures = observations.device?.final === problem.final ? observations.device.failures + 1 : 1;
  const random = { next: () => jitter };
  const inMs = problem.final
    ? DEVICE_FINAL_RETRY_MS
    : backoffMs(random, DEVICE_RETRY_MIN_MS, DEVICE_RETRY_MAX_MS, failures - 1);
  const isSilent = problem.reason === "BMCUnreachable" || problem.reason === "BMCTimeout";
  return {
    ...observations,
    device: { ...problem, failures, retryAtMs: atMs + inMs },
    ...(isSilent && cycleAway(observations)),
  };
}
