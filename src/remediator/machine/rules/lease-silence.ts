import type { Lease } from "../../../api/core.ts";
import type { Contact } from "../../../kube/contact.ts";
import { isLaterVersion } from "../../../kube/resource-version.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { isReported } from "../node-patches/marks.ts";
import type { ObservedLease } from "../model/observations.ts";
import type { Walk } from "../model/snapshot.ts";
import {
  LEASE_DURATION_COUNTED_MAX_MS,
  RENEWAL_SLACK_MS,
  RENEWAL_TIMEOUT_MS,
  RENEWAL_WAIT_MIN_MS,
} from "../model/timings.ts";

// What the renewals of a node's lease say of whether its kubelet lives, although the host that was powered off is off.

/** A kubelet's lease without a duration of its own: its default. */
const LEASE_DURATION_SECONDS = 40;
/** The part of its lease's duration after which a kubelet renews it, and by how much more that is spread out at most. */
const RENEWAL_FRACTION = 0.25;
const RENEWAL_JITTER = 0.04;
/** The API server stamps writes with whole seconds, rounded down. */
const STAMP_RESOLUTION_MS = 1_000;

/**
 * Pure: the next view of a lease. A watch event that is older than a live read changes nothing. A renewal need not bring a
 * later time: the node's clock may have been set back.
 *
 * @param readAtMs when it was read live; undefined for a watch event.
 */
export function observeLease(
  known: ObservedLease | undefined,
  lease: Lease | undefined,
  nowMs: number,
  readAtMs: number | undefined,
  contact: Contact,
): ObservedLease {
  const renewTimeMs = parseTimeMs(lease?.spec.renewTime);
  const uid = lease?.metadata.uid ?? "none";
  const resourceVersion = lease?.metadata.resourceVersion ?? "";
  const durationMs = (lease?.spec.leaseDurationSeconds ?? LEASE_DURATION_SECONDS) * 1_000;
  const writtenAtMs = writtenAt(lease, nowMs, contact);
  const looked = { writtenAtMs, readAtMs: readAtMs ?? known?.readAtMs ?? -Infinity, answeringSinceMs: contact.sinceMs };
  if (known === undefined) return { uid, resourceVersion, renewTimeMs, durationMs, renewedAtMs: undefined, ...looked };
  const isNewer = isLaterVersion(resourceVersion, known.resourceVersion);
  if (lease === undefined || renewTimeMs === undefined || (!isNewer && resourceVersion !== known.resourceVersion)) {
    return { ...known, ...looked, writtenAtMs: known.writtenAtMs };
  }
  if (uid !== known.uid || (isNewer && renewTimeMs !== known.renewTimeMs)) {
    return { uid, resourceVersion, renewTimeMs, durationMs, renewedAtMs: nowMs, ...looked };
  }
  // Where the clocks of several API servers differ, the later time counts.
  const latestMs = Math.max(known.writtenAtMs ?? -Infinity, writtenAtMs ?? -Infinity);
  return { ...known, ...looked, writtenAtMs: latestMs === -Infinity ? undefined : latestMs };
}

/**
 * When a lease was last written, on our monotonic clock, at the latest: by the clock of the API server alone, which stamps each
 * write and dates each answer. Neither the node's clock nor our own wall clock counts. What was written before that clock was
 * set may have been written just then. Undefined where there is no stamp.
 */
function writtenAt(lease: Lease | undefined, nowMs: number, contact: Contact): number | undefined {
  const { serverTimeMs, clockSteadySinceMs } = contact;
  const stamps = (lease?.metadata.managedFields ?? []).flatMap(({ time }) => parseTimeMs(time) ?? []);
  if (stamps.length === 0 || serverTimeMs === undefined) return undefined;
  const ageMs = Math.min(serverTimeMs - Math.max(...stamps) - STAMP_RESOLUTION_MS, nowMs - clockSteadySinceMs);
  return nowMs - Math.max(ageMs, 0);
}

/**
 * When the lease has been silent for so long that no kubelet renews it which lives and reaches the API server (monotonic). The host
 * that answers is off: is it the node's host? A kubelet that runs on another one goes on renewing.
 *
 * - A node that may have been alive at the order is given a renewal's time, counted from the proof or from its last renewal since.
 * - One that Kubernetes holds for dead has been silent before, and that counts: by the API server's clock where it stamps writes.
 *   A single request that is lost takes a kubelet its time-out more.
 * - While the API server was away, or before this process had heard of it, silence said nothing.
 */
export function silentAtMs(walk: Walk, lease: ObservedLease, provenAtMs: number): number {
  const { attempt, seen, node } = walk;
  const renewedAtMs = lease.renewedAtMs ?? -Infinity;
  const silenceMs = silenceFor(lease.durationMs);
  const chanceAtMs = Math.max(provenAtMs, renewedAtMs) + renewalWait(lease.durationMs);
  const afterOutageMs = lease.answeringSinceMs + silenceMs;
  if ([seen.examined?.node, node].some((known) => known !== undefined && isReported(known))) {
    return Math.max(chanceAtMs, afterOutageMs);
  }
  if (lease.writtenAtMs !== undefined) {
    const lastMs = Math.max(lease.writtenAtMs, renewedAtMs);
    return Math.max(Math.min(chanceAtMs, lastMs + silenceMs), afterOutageMs);
  }
  // Without a stamp only the node's own clock is left, which is believed beyond the whole duration.
  const isRecent =
    provenAtMs - renewedAtMs < lease.durationMs ||
    (lease.renewTimeMs !== undefined && attempt.actionAtMs - lease.renewTimeMs < lease.durationMs);
  return isRecent ? Math.max(chanceAtMs, afterOutageMs) : afterOutageMs;
}

/** A kubelet that lives renews its lease within this time, and its renewal is seen by then. */
function renewalWait(durationMs: number): number {
  const countedMs = Math.min(durationMs, LEASE_DURATION_COUNTED_MAX_MS);
  return Math.max(countedMs * RENEWAL_FRACTION * (1 + RENEWAL_JITTER) + RENEWAL_SLACK_MS, RENEWAL_WAIT_MIN_MS);
}

/** The same where one of its requests is lost. A lease that has run out is silent in any case. */
function silenceFor(durationMs: number): number {
  return Math.min(renewalWait(durationMs) + RENEWAL_TIMEOUT_MS, durationMs);
}
