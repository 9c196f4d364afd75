import { toMicroTime } from "../runtime/time.ts";
import type { KubeObject, ResourceType } from "./resource.ts";

export const LEASE: ResourceType = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  namespaced: true,
};

/** `coordination.k8s.io/v1` Lease, as leader election reads and writes it. */
export interface Lease extends KubeObject {
  spec?: LeaseSpec;
}

export interface LeaseSpec {
  /** Empty or absent: nobody's. */
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

/** What we know of the lease: its record, and since when (monotonic) we have seen exactly this record. */
export interface Observation {
  lease: Lease;
  sinceMs: number;
}

/** Takes a fresh read in. Times in the record are other machines' and prove nothing: only a change that we see does. */
export function observe(before: Observation | undefined, lease: Lease, nowMs: number): Observation {
  const changed = before === undefined || recordText(before.lease) !== recordText(lease);
  return { lease, sinceMs: changed ? nowMs : before.sinceMs };
}

export function holderOf(lease: Lease | undefined): string | undefined {
  return lease?.spec?.holderIdentity || undefined;
}

/** Whether `identity` may take or keep the lease: it is its own, nobody's, or its holder has let it run out before our eyes. */
export function mayHold(seen: Observation, identity: string, leaseDurationMs: number, nowMs: number): boolean {
  const holder = holderOf(seen.lease);
  if (holder === undefined || holder === identity) return true;
  const seconds = seen.lease.spec?.leaseDurationSeconds;
  return nowMs > seen.sinceMs + (seconds === undefined ? leaseDurationMs : seconds * 1_000);
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

function recordText(lease: Lease): string {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } = lease.spec ?? {};
  const record = [holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions];
  return JSON.stringify([lease.metadata.uid, ...record]);
}
