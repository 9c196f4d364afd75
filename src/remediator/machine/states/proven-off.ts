import { fail, failAttempt } from "../rules/attempts.ts";
import { ensureDeviceUsable } from "../rules/preconditions.ts";
import { transition, run } from "../rules/transitions.ts";
import { longestSilenceMs, silentAtMs } from "../rules/outage/lease-silence.ts";
import type { ObservedLease, Observations } from "../model/facts/observations.ts";
import type { Now, AttemptSnapshot } from "../model/facts/snapshot.ts";
import { processing } from "../model/status.ts";
import {
  LEASE_REREAD_MS,
  POWER_PROOF_AGE_MAX_MS,
  POWER_REREAD_MS,
  RENEWAL_TIMEOUT_MS,
} from "../model/decision/timings.ts";
import type { Decision } from "../model/decision/decision.ts";

/** How long a reading may take if the proof has already ended. */
const LATE_READ_MS = 1_000;

/**
 * Decides when the host that answers is proven off. Nothing is released before the lease of the node is silent: a lease
 * that is renewed shows that the devices belong to another host.
 */
export function decideProven(snapshot: AttemptSnapshot, provenAtMs: number, now: Now): Decision {
  const { attempt, observations } = snapshot;
  const reread = rereadPower(snapshot, now);
  if (reread !== undefined) return reread;
  const late = unreleasable(snapshot, now);
  if (late !== undefined) return late;
  const { lease } = observations;
  if (lease === undefined) return run({ do: "readLease" });
  const wrong = wrongHost(snapshot, provenAtMs, now);
  if (wrong !== undefined) return wrong;
  // The lease is also silent if etcd refuses all writes. The agent may be the only client that would notice, so it
  // tries a write.
  const checkInMs = lease.readAtMs + LEASE_REREAD_MS - now.monotonicMs;
  if (checkInMs <= 0 && lease.answeringSinceMs === Infinity) return run({ do: "proveWritable" });
  const clearAtMs = silentAtMs(snapshot, lease, provenAtMs);
  const clearInMs = clearAtMs - now.monotonicMs;
  if (clearInMs > 0) {
    const endless = neverSilent(snapshot, lease, provenAtMs, now);
    if (endless !== undefined) return endless;
    // An unchanged lease proves nothing while the API server does not answer. A live read shows that it answers.
    if (checkInMs <= 0) return run({ do: "readLease" });
    return { notes: [], effects: [], nextCheckMs: Math.min(clearInMs, checkInMs, POWER_REREAD_MS) };
  }
  // The watch of the lease may lag or be broken, so the lease is read live after the proof.
  if (lease.readAtMs < Math.max(clearAtMs, provenAtMs)) return run({ do: "readLease" });
  if (snapshot.strategy.workloadRelease === "OutOfServiceTaint" && observations.taint?.attemptId !== attempt.id) {
    return run({ do: "taint", attemptId: attempt.id });
  }
  return release(snapshot, now);
}

/**
 * Fails the attempt at its deadline if API calls fail, so that the lease cannot be read or the taint cannot be put on:
 * the host must not stay off because of that.
 */
function unreleasable(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { observations, remainingMs, attempt } = snapshot;
  const why = observations.taintFailure ?? observations.kube?.message;
  if (remainingMs > 0 || why === undefined || observations.taint?.attemptId === attempt.id) return undefined;
  const what = observations.taintFailure === undefined ? "released" : "tainted";
  return endUnreleased(snapshot, now, `could not be ${what} in time: ${why}`);
}

/**
 * Fails the attempt if the lease is not silent at the deadline: each outage of the API server starts that wait again,
 * and the host must not stay off because of that. After a late proof there is still time for one whole wait.
 *
 * @returns undefined while there is time left.
 */
function neverSilent(
  snapshot: AttemptSnapshot,
  lease: ObservedLease,
  provenAtMs: number,
  now: Now,
): Decision | undefined {
  if (snapshot.remainingMs > 0 || now.monotonicMs - provenAtMs < longestSilenceMs(lease)) return undefined;
  const answeredForMs = Math.max(0, now.monotonicMs - lease.answeringSinceMs);
  const seconds = Math.round(answeredForMs / 1_000);
  const why = `the agent cannot tell whether its kubelet is silent: the API server has answered and accepted writes without an interruption for only ${seconds} s`;
  return endUnreleased(snapshot, now, `could not be released in time: ${why}`);
}

/** Takes the taint off, and then fails the attempt. The host is off. */
function endUnreleased(snapshot: AttemptSnapshot, now: Now, why: string): Decision {
  if (!snapshot.observations.taintCleared) return run({ do: "untaint" });
  return failAttempt(snapshot, now, "PowerOffTimeout", `the host is off, but node ${snapshot.nodeName} ${why}`);
}

/**
 * Reads the power again to renew the proof; undefined while the proof is fresh. A reading that is not Off voids the
 * proof, and so does a long time without a reading (`recordReading`, `recordFailedReading`).
 */
export function rereadPower(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { power, device } = snapshot.observations;
  const ageMs = power.offAtMs === undefined ? Infinity : now.monotonicMs - power.offAtMs;
  if (ageMs < POWER_REREAD_MS) return undefined;
  // A device that refuses permanently is not called again, because that may lock the account.
  if (device?.final === true) return ensureDeviceUsable(snapshot, now);
  const due = readingDue(snapshot.observations, now);
  return "inMs" in due
    ? { notes: [], effects: [], nextCheckMs: due.inMs }
    : run({ do: "readPower", withinMs: due.withinMs });
}

/** When to read the power of a host that is proven off: in `inMs`, or now and for at most `withinMs`. */
export function readingDue({ power, device }: Observations, now: Now): { inMs: number } | { withinMs: number } {
  const ageMs = power.offAtMs === undefined ? Infinity : now.monotonicMs - power.offAtMs;
  if (ageMs < POWER_REREAD_MS) return { inMs: POWER_REREAD_MS - ageMs };
  const retryInMs = device === undefined ? 0 : device.retryAtMs - now.monotonicMs;
  const leftMs = POWER_PROOF_AGE_MAX_MS - ageMs;
  return retryInMs > 0 && leftMs > 0
    ? { inMs: Math.min(retryInMs, leftMs) }
    : { withinMs: Math.max(leftMs, LATE_READ_MS) };
}

/** Fails permanently if the node's lease is renewed although the host is proven off. */
export function wrongHost(snapshot: AttemptSnapshot, provenAtMs: number, now: Now): Decision | undefined {
  if (!isRenewedAfter(snapshot.observations.lease, provenAtMs)) return undefined;
  const message = `node ${snapshot.nodeName} renewed its lease after the host was proven off: the target's devices power another host; correct the FencingTarget, or the BareMetalHost`;
  return fail(snapshot, now, "WrongHost", message, [
    { type: "IdentityVerified", status: "False", reason: "WrongHost", message },
    { type: "PowerOffConfirmed", status: "False", reason: "WrongHost", message },
  ]);
}

/** Whether the lease was renewed so late that the kubelet cannot run on the host that was proven off. */
export function isRenewedAfter(lease: ObservedLease | undefined, provenAtMs: number): boolean {
  return (lease?.renewedAtMs ?? -Infinity) > provenAtMs + RENEWAL_TIMEOUT_MS;
}

function release(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, strategy, status, observations } = snapshot;
  const provenAgoMs = now.monotonicMs - (observations.power.provenAtMs ?? now.monotonicMs);
  const first = attempt.offConfirmedAtMs === undefined;
  const offConfirmedAtMs = attempt.offConfirmedAtMs ?? Math.round(now.epochMs - provenAgoMs);
  // The release begins later than the proof, because the lease of the node must be silent first.
  const releasingSinceMs = attempt.releasingSinceMs ?? now.epochMs;
  const whose =
    observations.taint?.found === "Foreign" ? "; an out-of-service taint of another owner is left as it is" : "";
  const message = `the host was read Off twice after the order${whose}`;
  return transition(snapshot, now, {
    to: "Releasing",
    step: "PowerOffConfirmed",
    message,
    attempt: {
      ...attempt,
      done: true,
      offConfirmedAtMs,
      releasingSinceMs,
      deadlineMs: releasingSinceMs + strategy.drainTimeoutMs,
    },
    conditions: [
      ...processing("Releasing", message),
      { type: "PowerOffConfirmed", status: "True", reason: "ReadOff", message },
    ],
    fields: {
      provenReboots: (status.provenReboots ?? 0) + (first && attempt.kind === "Reboot" ? 1 : 0),
    },
  });
}
