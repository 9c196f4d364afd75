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

// Whether the renewals of a node's lease show that its kubelet lives, although the host that was powered off is off.
// `src/nodes/leases/silence.ts` judges leases before a power-off.

/** The duration of a lease that names none: the default of the kubelet. */
const LEASE_DURATION_SECONDS = 40;
/** A kubelet renews its lease after this fraction of the lease duration, plus up to 4 % of that time as jitter. */
const RENEWAL_FRACTION = 0.25;
const RENEWAL_JITTER = 0.04;
/** The API server stamps writes with whole seconds, rounded down. */
const STAMP_RESOLUTION_MS = 1_000;

/**
 * The lease after one more read. A version that is older than the known one changes nothing. Any change of the renew
 * time counts as a renewal, even to an earlier time: the node's clock may have been set back. Pure.
 *
 * @param readAtMs when it was read live; undefined for a watch event.
 * @param proven the version that was silent when the remediation began early. A process whose first read shows a later
 *   version has missed a renewal.
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
 * The latest time at which the lease may have been written, on our monotonic clock. It is computed only from the clock
 * of the API server, which stamps each write and dates each answer. Neither the clock of the node nor our own wall
 * clock counts. If the clock of the API server was set, a write from before may have happened at the moment when it was
 * set. Undefined if there is no stamp.
 */
function writtenAt(lease: Lease | undefined, nowMs: number, contact: Contact): number | undefined {
  const { serverTimeMs, clockSteadySinceMs, areClocksApart } = contact;
  const stamps = (lease?.metadata.managedFields ?? []).flatMap(({ time }) => parseTimeMs(time) ?? []);
  if (stamps.length === 0 || serverTimeMs === undefined) return undefined;
  // By the clock of another API server than the one that stamped the write, a new write may look old.
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
 * - If the remediation began early, its node may say that it is Ready long after its host has lost power. Then the
 *   silence counts from the last change of the lease that this agent has seen, even if that was before the order.
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
  // Only the node's own clock shows the age of the lease. It may be wrong, so the lease must be expired by it.
  const isRecent =
    provenAtMs - renewedAtMs < lease.durationMs ||
    (lease.renewTimeMs !== undefined && attempt.actionAtMs - lease.renewTimeMs < lease.durationMs);
  return isRecent ? Math.max(chanceAtMs, afterOutageMs) : afterOutageMs;
}

/** Within this time, a live kubelet renews its lease and the agent sees the renewal. */
function renewalWait(durationMs: number): number {
  const countedMs = Math.min(durationMs, LEASE_DURATION_COUNTED_MAX_MS);
  return Math.max(countedMs * RENEWAL_FRACTION * (1 + RENEWAL_JITTER) + RENEWAL_SLACK_MS, RENEWAL_WAIT_MIN_MS);
}

/** The same time if one request of the kubelet is lost. An expired lease is silent in any case. */
function silenceFor(durationMs: number): number {
  return Math.min(renewalWait(durationMs) + RENEWAL_TIMEOUT_MS, durationMs);
}

/**
 * The longest wait for silence after a proof, in milliseconds, if the API server answers and no kubelet renews the
 * lease.
 */
export function longestSilenceMs({ durationMs }: ObservedLease): number {
  return renewalWait(durationMs) + RENEWAL_TIMEOUT_MS;
}
