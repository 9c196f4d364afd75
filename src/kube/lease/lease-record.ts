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
  /** Empty or absent: it has no holder. */
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

/** What we know of the lease: its record, and since when (monotonic) we have seen exactly this record. */
export interface LeaderLeaseObservation {
  /** Undefined: there is none. */
  lease: LeaderLease | undefined;
  sinceMs: number;
  /** The time by which an agent that held a deleted Lease has stopped; long ago if none was deleted. */
  clearFromMs: number;
}

/**
 * Takes a fresh read in. Times in the record are other machines' and prove nothing: only a change that we see does. A
 * Lease that is gone, or is another one by the same name, was deleted: up to just now its holder may have renewed it.
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
  // One that was given back names a second: who took it then, unseen by us, has it for longer.
  const heldForMs = Math.max(durationOf(before.lease, leaseDurationMs), leaseDurationMs);
  const clearFromMs = isDeleted ? nowMs + heldForMs : before.clearFromMs;
  return { lease, sinceMs, clearFromMs };
}

export function holderOf(lease: LeaderLease | undefined): string | undefined {
  return lease?.spec?.holderIdentity || undefined;
}

/**
 * Whether a candidate may take or keep the lease: it is its own, or its holder has let it run out before our eyes, or
 * it has no holder, and had none for long enough, unless the candidate holds it at this moment.
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

/** The record of a lease that was given back: the next candidate need not wait. */
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
