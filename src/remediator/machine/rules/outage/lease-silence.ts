import type { Lease } from "../../../../api/kubernetes/core.ts";
import type { Contact } from "../../../../kube/contact.ts";
import { isLaterVersion } from "../../../../kube/watch/resource-version.ts";
import { parseTimeMs } from "../../../../runtime/time.ts";
import { isReported } from "../../node-patches/marks.ts";
import type { ObservedLease } from "../../model/facts/observations.ts";
import type { AttemptSnapshot } from "../../model/facts/snapshot.ts";
import type { LeaseVersion } from "../../model/decision/strategy.ts";
import { unchangedSilentAtMs } from "./early.ts";
import {
  LEASE_DURATION_COUNTED_MAX_MS,
  RENEWAL_SLACK_MS,
  RENEWAL_TIMEOUT_MS,
  RENEWAL_WAIT_MIN_MS,
} from "../../model/decision/timings.ts";

// What the renewals of a node's lease say of whether its kubelet lives, although the host that was powered off is off.

/** A kubelet's lease without a duration of its own: its default. */
const LEASE_DURATION_SECONDS = 40;
/**
 * The part of its lease's duration after which a kubelet renews it, and by how much more that is spread out at most.
 */
const RENEWAL_FRACTION = 0.25;
const RENEWAL_JITTER = 0.04;
/** The API server stamps writes with whole seconds, rounded down. */
const STAMP_RESOLUTION_MS = 1_000;

/**
 * Pure: the next view of a lease. A watch event that is older than a live read changes nothing. A renewal need not
 * bring a later time: the node's clock may have been set back.
 *
 * @param readAtMs when it was read live; undefined for a watch event.
 * @param proven the version that was silent when the host was proven off before the duration of its node: a process
 *   that sees another one first has missed a renewal.
 */
export function observeNodeLease(
  known: ObservedLease | undefined,
  lease: Lease | undefined,
  nowMs: number,
  readAtMs: number | undefined,
  contact: Contact,
  proven?: LeaseVersion,
): ObservedLease {
  const renewTimeMs = parseTimeMs(lease?.spec.renewTime);
  const uid = lease?.metadata.uid ?? "none";
  const resourceVersion = lease?.metadata.resourceVersion ?? "";
  const durationMs = (lease?.spec.leaseDurationSeconds ?? LEASE_DURATION_SECONDS) * 1_000;
  const writtenAtMs = writtenAt(lease, nowMs, contact);
  const read = { writtenAtMs, readAtMs: readAtMs ?? known?.readAtMs ?? -Infinity, answeringSinceMs: contact.sinceMs };
  if (known === undefined) {
    const first = { uid, resourceVersion, renewTimeMs, durationMs, renewedAtMs: undefined, ...read };
    if (proven === undefined) return first;
    const isOther = uid !== proven.uid || isLaterVersion(resourceVersion, proven.resourceVersion);
    if (lease === undefined || !isOther) return { ...first, ...proven };
    return { ...first, renewedAtMs: nowMs, firstRenewedAtMs: nowMs };
  }
  const isNewer = isLaterVersion(resourceVersion, known.resourceVersion);
  if (lease === undefined || renewTimeMs === undefined || (!isNewer && resourceVersion !== known.resourceVersion)) {
    return { ...known, ...read, writtenAtMs: known.writtenAtMs };
  }
  if (uid !== known.uid || (isNewer && renewTimeMs !== known.renewTimeMs)) {
    const firstRenewedAtMs = known.firstRenewedAtMs ?? nowMs;
    return { uid, resourceVersion, renewTimeMs, durationMs, renewedAtMs: nowMs, firstRenewedAtMs, ...read };
  }
  // If the clocks of several API servers differ, the later time counts.
  const latestMs = Math.max(known.writtenAtMs ?? -Infinity, writtenAtMs ?? -Infinity);
  return { ...known, ...read, writtenAtMs: latestMs === -Infinity ? undefined : latestMs };
}

/**
 * The latest time at which the lease may have been written, on our monotonic clock. It is computed from the clock of
 * the API server alone, which stamps each write and dates each answer. Neither the clock of the node nor our own wall
 * clock counts. A write from before that clock was set may have happened just then. Undefined if there is no stamp.
 */
function writtenAt(lease: Lease | undefined, nowMs: number, contact: Contact): number | undefined {
  const { serverTimeMs, clockSteadySinceMs, areClocksApart } = contact;
  const stamps = (lease?.metadata.managedFields ?? []).flatMap(({ time }) => parseTimeMs(time) ?? []);
  if (stamps.length === 0 || serverTimeMs === undefined) return undefined;
  // By the clock of another API server than the one that stamped it, it may look old although it was written just now.
  if (areClocksApart === true) return nowMs;
  const ageMs = Math.min(serverTimeMs - Math.max(...stamps) - STAMP_RESOLUTION_MS, nowMs - clockSteadySinceMs);
  return nowMs - Math.max(ageMs, 0);
}

/**
 * The monotonic time from which the silence of the lease shows that no live kubelet renews it. The host that answers
 * is off, but it may not be the host of the node: a kubelet on another host would continue to renew the lease.
 *
 * - A node that may have been alive at the order gets the time of one renewal, counted from the proof or from its last
 *   renewal since.
 * - If Kubernetes already considers the node dead, its silence before the order counts too, by the clock of the API
 *   server if it stamps writes. A single lost request costs a kubelet one more time-out.
 * - If the remediation began early, its node may say that it is Ready long after its host has lost its power. Then the
 *   all silence counts that this process has seen since the last change of the lease, before the order and after it.
 * - Silence does not count while the API server was unreachable, or before this process had contact with it.
 */
export function silentAtMs(snapshot: AttemptSnapshot, lease: ObservedLease, provenAtMs: number): number {
  const { attempt, observations, node } = snapshot;
  const renewedAtMs = lease.renewedAtMs ?? -Infinity;
  const silenceMs = silenceFor(lease.durationMs);
  const chanceAtMs = Math.max(provenAtMs, renewedAtMs) + renewalWait(lease.durationMs);
  const afterOutageMs = lease.answeringSinceMs + silenceMs;
  const unchangedMs = unchangedSilentAtMs(snapshot, lease);
  if ([observations.examined?.node, node].some((known) => known !== undefined && isReported(known))) {
    return Math.max(Math.min(chanceAtMs, unchangedMs), afterOutageMs);
  }
  if (lease.writtenAtMs !== undefined) {
    const lastMs = Math.max(lease.writtenAtMs, renewedAtMs);
    return Math.max(Math.min(chanceAtMs, lastMs + silenceMs), afterOutageMs);
  }
  // Only the node's own clock is left. It may be wrong, so only an age above the whole duration of the lease counts.
  const isRecent =
    provenAtMs - renewedAtMs < lease.durationMs ||
    (lease.renewTimeMs !== undefined && attempt.actionAtMs - lease.renewTimeMs < lease.durationMs);
  return isRecent ? Math.max(chanceAtMs, afterOutageMs) : afterOutageMs;
}

/** A live kubelet renews its lease within this time, and the renewal is observed within it. */
function renewalWait(durationMs: number): number {
  const countedMs = Math.min(durationMs, LEASE_DURATION_COUNTED_MAX_MS);
  return Math.max(countedMs * RENEWAL_FRACTION * (1 + RENEWAL_JITTER) + RENEWAL_SLACK_MS, RENEWAL_WAIT_MIN_MS);
}

/** The same, if one of its requests is lost. An expired lease is silent in any case. */
function silenceFor(durationMs: number): number {
  return Math.min(renewalWait(durationMs) + RENEWAL_TIMEOUT_MS, durationMs);
}

/**
 * Milliseconds from a proof within which a lease is known to be silent, unless the API server cannot be reached or its
 * kubelet lives.
 */
export function longestSilenceMs({ durationMs }: ObservedLease): number {
  return renewalWait(durationMs) + RENEWAL_TIMEOUT_MS;
}
