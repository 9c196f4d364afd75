import { isReady } from "../../../../nodes/ready.ts";
import { earlySilenceMs } from "../../../../nodes/leases/silence.ts";
import type { Decision } from "../../model/decision/decision.ts";
import type { ObservedLease } from "../../model/facts/observations.ts";
import type { AttemptSnapshot, Now, Snapshot } from "../../model/facts/snapshot.ts";
import { statusCondition, processing } from "../../model/status.ts";
import {
  EARLY_POLL_MS,
  EARLY_READING_AGE_MAX_MS,
  LEASE_REREAD_MS,
  OFF_CONFIRM_GAP_MS,
  POLL_SLOW_MS,
  POWER_REREAD_MS,
  SAME_BOOT_AFTER_MS,
} from "../../model/decision/timings.ts";
import { endIfReturned, isRebooted } from "./outage-over.ts";
import { fail } from "../attempts.ts";
import { ensureDeviceUsable } from "../preconditions.ts";
import { run, transition } from "../transitions.ts";

// A remediation that began before the duration of its node was over, because its host was proven off. Until the
// duration is over, the host may come back by itself, as it could without ironfence: then it is not powered off again.
// See docs/explanation/early-release.md.

/** Whether the duration of the node is not over yet. */
export function isEarly({ earlyForMs }: Pick<Snapshot, "earlyForMs">): boolean {
  return earlyForMs > 0;
}

/** The condition that stores that the host came back by itself before the duration was over. */
const RETURNED = { type: "PowerOffConfirmed", reason: "HostReturned" } as const;

/** Whether the status says that the host came back by itself. Then nothing is released before the duration is over. */
export function hasReturned({ status }: Pick<Snapshot, "status">): boolean {
  return statusCondition(status, RETURNED.type)?.reason === RETURNED.reason;
}

/** Whether this process has seen the lease of the node renewed since it began to work on the remediation. */
export function isRenewed({ observations }: Pick<Snapshot, "observations">): boolean {
  return observations.lease?.renewedAtMs !== undefined;
}

/** Why nothing may be released before the duration is over; undefined if workloads may be released. */
function whyReturned(snapshot: Snapshot): string | undefined {
  if (isRenewed(snapshot)) return `node ${snapshot.nodeName} has renewed its lease`;
  // Without the proven version, the agent does not know whether the lease was renewed since the proof.
  if (snapshot.strategy.provenLease === undefined) return "spec.earlyProof is missing";
  return undefined;
}

/**
 * What has to be done before an early power-off order. The order needs a fresh reading of Off and a lease that is still
 * silent. A host that comes back is not powered off. Undefined if the order may be sent.
 */
export function ensureStillOff(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  if (!isEarly(snapshot)) return undefined;
  if (whyReturned(snapshot) !== undefined) return awaitReturn(snapshot, now);
  const { last } = snapshot.observations.power;
  if (last === undefined || now.monotonicMs - last.atMs > EARLY_READING_AGE_MAX_MS) return run({ do: "readPower" });
  return last.state === "Off" ? undefined : awaitReturn(snapshot, now);
}

/**
 * In PoweringOff before the duration is over: does not force a host off again that has come back or is coming back.
 * Undefined if nothing shows that.
 */
export function keepReturned(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  if (!isEarly(snapshot)) return undefined;
  const { attempt, observations } = snapshot;
  const { last, provenAtMs } = observations.power;
  if (hasReturned(snapshot)) {
    if (!observations.taintCleared) return run({ do: "untaint" });
    return awaitReturn(snapshot, now);
  }
  const why = whyReturned(snapshot);
  if (why !== undefined) return storeReturn(snapshot, now, why);
  if (attempt.sent && provenAtMs !== undefined) return undefined;
  // If the order was rejected, or the agent does not know whether it was sent, a further one needs a reading of Off.
  if (last === undefined) return ensureDeviceUsable(snapshot, now) ?? run({ do: "readPower" });
  return last.state === "Off" ? undefined : awaitReturn(snapshot, now);
}

/** In Releasing before the duration is over: ends the release at the first sign that the host comes back. */
export function endEarlyRelease(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const why = isEarly(snapshot) ? whyReturned(snapshot) : undefined;
  return why === undefined ? undefined : storeReturn(snapshot, now, why);
}

/**
 * In Releasing before the duration is over: reads the lease live as often as the power, because the watch may lag while
 * the BMC still says Off. Undefined while the last read is recent.
 */
export function rereadLease({ earlyForMs, observations }: AttemptSnapshot, now: Now): Decision | undefined {
  const ageMs = now.monotonicMs - (observations.lease?.readAtMs ?? -Infinity);
  if (!isEarly({ earlyForMs }) || ageMs < POWER_REREAD_MS) return undefined;
  return run({ do: "readLease", withinMs: LEASE_REREAD_MS });
}

/** Takes the taint off, then stores that the host has come back. Nothing is released before the duration is over. */
export function storeReturn(snapshot: AttemptSnapshot, now: Now, why: string): Decision {
  const { attempt, observations, strategy, earlyForMs } = snapshot;
  if (!observations.taintCleared) return run({ do: "untaint" });
  const message = `${why}: releases stop, and the host is not powered off again before the duration of its node is over`;
  return transition(snapshot, now, {
    to: "PoweringOff",
    step: "HostReturned",
    message,
    warning: true,
    attempt: { ...attempt, done: true, deadlineMs: now.epochMs + earlyForMs + strategy.powerOffTimeoutMs },
    conditions: [...processing("PoweringOff", message), { ...RETURNED, status: "False", message }],
  });
}

/**
 * Waits for the node of a host that is coming back. The node is back when it is Ready in another boot. If the node
 * still renews its lease in the old boot, its host was never off: the devices of the target belong to another host or
 * report a wrong state.
 */
function awaitReturn(snapshot: AttemptSnapshot, now: Now): Decision {
  const alive = failIfSameBoot(snapshot, now);
  if (alive !== undefined) return alive;
  const { node, observations, earlyForMs } = snapshot;
  const seemsBack = node !== undefined && isReady(node) && isRenewed(snapshot) && isRebooted(snapshot, node);
  const back = seemsBack ? endIfReturned(snapshot, now) : undefined;
  if (back !== undefined) return back;
  const extended = extendDeadline(snapshot, now);
  if (extended !== undefined) return extended;
  const { last, offReads } = observations.power;
  const gapMs = last?.state === "Off" && offReads === 1 ? OFF_CONFIRM_GAP_MS : POLL_SLOW_MS;
  const inMs = last === undefined ? 0 : last.atMs + gapMs - now.monotonicMs;
  if (inMs <= 0) return ensureDeviceUsable(snapshot, now) ?? run({ do: "readPower" });
  return { notes: [], effects: [], nextCheckMs: Math.min(inMs, earlyForMs) };
}

/** Extends the deadline, so that the time of the state begins when the duration is over: until then it only waits. */
function extendDeadline(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, earlyForMs, strategy, state } = snapshot;
  if (attempt.deadlineMs >= now.epochMs + earlyForMs) return undefined;
  const message = "the host is left alone until the duration of its node is over";
  return transition(snapshot, now, {
    to: state.name,
    step: "HostReturning",
    message,
    attempt: { ...attempt, deadlineMs: now.epochMs + earlyForMs + strategy.powerOffTimeoutMs },
    conditions: processing(state.name, message),
  });
}

/**
 * Fails permanently if the node has renewed its lease for SAME_BOOT_AFTER_MS without reporting another boot. A single
 * renewal does not show that the host is on: the host may have sent it before it lost its power.
 */
function failIfSameBoot(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { node, observations, nodeName } = snapshot;
  const { firstRenewedAtMs: sinceMs, renewedAtMs } = observations.lease ?? {};
  if (sinceMs === undefined || renewedAtMs === sinceMs) return undefined;
  if (node === undefined || !isReady(node) || isRebooted(snapshot, node)) return undefined;
  // A kubelet renews its lease before it reports its new boot.
  if (now.monotonicMs - sinceMs < SAME_BOOT_AFTER_MS) return undefined;
  const message = `node ${nodeName} renews its lease in the boot in which its host was read Off: the readings were wrong, or the target's devices power another host; correct the FencingTarget, or the BareMetalHost`;
  return fail(snapshot, now, "WrongHost", message, [
    { type: "IdentityVerified", status: "False", reason: "WrongHost", message },
    { type: "PowerOffConfirmed", status: "False", reason: "WrongHost", message },
  ]);
}

/**
 * Waits for the end of the duration before the host is powered on. Another client may power it on earlier. Undefined if
 * the host may be powered on now.
 *
 * @param readsOn whether the last reading of all devices shows the host on.
 */
export function ensurePowerOnDue(snapshot: AttemptSnapshot, readsOn: boolean, now: Now): Decision | undefined {
  if (!isEarly(snapshot) || readsOn) return undefined;
  const alive = failIfSameBoot(snapshot, now);
  if (alive !== undefined) return alive;
  const { last } = snapshot.observations.power;
  const { device } = snapshot.observations;
  const readInMs = last === undefined ? 0 : last.atMs + EARLY_POLL_MS - now.monotonicMs;
  const inMs = Math.max(readInMs, (device?.retryAtMs ?? -Infinity) - now.monotonicMs);
  if (inMs <= 0 && device?.final !== true) return run({ do: "readWhole" });
  return { notes: [], effects: [], nextCheckMs: Math.min(Math.max(inMs, 0) || EARLY_POLL_MS, snapshot.earlyForMs) };
}

/**
 * The monotonic time at which the agent has seen the lease unchanged for long enough for an early release; Infinity if
 * it has not seen this version of the lease, or has seen a renewal.
 */
export function unchangedSilentAtMs({ leaseUnchanged }: Snapshot, lease: ObservedLease): number {
  const isSame = leaseUnchanged?.uid === lease.uid && leaseUnchanged.resourceVersion === lease.resourceVersion;
  return isSame && lease.renewedAtMs === undefined ? leaseUnchanged.sinceMs + earlySilenceMs(leaseUnchanged) : Infinity;
}
