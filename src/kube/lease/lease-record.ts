import { toMicroTime } from "../../runtime/time.ts";
import type { KubeObject, ResourceType } from "../resource.ts";

export const LEASE: ResourceType = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  namespaced: true,
};

/** `coordination.k8s.io/v1` Lease, as leader election reads and writes it. */
export interface LeaderLease extends KubeObject {
  spec?: LeaseSpec;
}

export interface LeaseSpec {
  /** Empty or absent if the Lease has no holder. */
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

/** What this process knows about a lease: its record, and the monotonic time since which the record has not changed. */
export interface LeaderLeaseObservation {
  /** Undefined if there is no Lease. */
  lease: LeaderLease | undefined;
  sinceMs: number;
  /** The time at which the holder of a deleted Lease has certainly stopped; `-Infinity` if no Lease was deleted. */
  clearFromMs: number;
}

/**
 * Adds a new read to the observation. The times in the record come from clocks of other machines, so they prove
 * nothing. Only a change that this process observes proves that the lease was renewed. If the Lease is missing or has
 * another UID, it was deleted, and its holder may have renewed it until now.
 */
export function observeLeaderLease(
  before: LeaderLeaseObservation | undefined,
  lease: LeaderLease | undefined,
  leaseDurationMs: number,
  nowMs: number,
): LeaderLeaseObservation {
  const changed = before === undefined || recordText(before.lease) !== recordText(lease);
  const sinceMs = changed ? nowMs : before.sinceMs;
  if (before === undefined) {
    return { lease, sinceMs, clearFromMs: lease === undefined ? nowMs + leaseDurationMs : -Infinity };
  }
  const isDeleted = before.lease !== undefined && before.lease.metadata.uid !== lease?.metadata.uid;
  // A released Lease has a duration of 1 s. If another candidate took it before the deletion and this process did not
  // observe that, the lease is held for longer.
  const heldForMs = Math.max(durationOf(before.lease, leaseDurationMs), leaseDurationMs);
  const clearFromMs = isDeleted ? nowMs + heldForMs : before.clearFromMs;
  return { lease, sinceMs, clearFromMs };
}

export function holderOf(lease: LeaderLease | undefined): string | undefined {
  return lease?.spec?.holderIdentity || undefined;
}

/**
 * Whether a candidate may take or keep the lease. It may if it is the holder, or if this process observed that the
 * holder did not renew the lease for its duration. If there is no holder, it may if its own term still runs, or after
 * the holder of a deleted Lease has stopped.
 */
export function mayAcquire(
  observation: LeaderLeaseObservation,
  candidate: { identity: string; holds: boolean },
  leaseDurationMs: number,
  nowMs: number,
): boolean {
  const holder = holderOf(observation.lease);
  if (holder === candidate.identity) return true;
  if (holder !== undefined) return nowMs > observation.sinceMs + durationOf(observation.lease, leaseDurationMs);
  return candidate.holds || nowMs > observation.clearFromMs;
}

function durationOf(lease: LeaderLease | undefined, leaseDurationMs: number): number {
  const seconds = lease?.spec?.leaseDurationSeconds;
  return seconds === undefined ? leaseDurationMs : seconds * 1_000;
}

/** The record that makes or keeps `identity` the holder. */
export function heldRecord(
  before: LeaseSpec | undefined,
  identity: string,
  leaseDurationMs: number,
  epochMs: number,
): Required<LeaseSpec> {
  const now = toMicroTime(epochMs);
  const isRenewal = before?.holderIdentity === identity;
  const transitions = before?.leaseTransitions ?? 0;
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseDurationMs / 1_000),
    acquireTime: isRenewal ? (before.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: isRenewal || before === undefined ? transitions : transitions + 1,
  };
}

/** The record of a released lease, so that the next candidate need not wait. */
export function releasedRecord(before: LeaseSpec | undefined, epochMs: number): Required<LeaseSpec> {
  const now = toMicroTime(epochMs);
  return {
    holderIdentity: "",
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: before?.leaseTransitions ?? 0,
  };
}

function recordText(lease: LeaderLease | undefined): string {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } = lease?.spec ?? {};
  const record = [holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions];
  return JSON.stringify([lease?.metadata.uid, ...record]);
}
