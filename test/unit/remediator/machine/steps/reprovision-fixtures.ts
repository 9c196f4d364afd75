import type { Observations } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import type { SnapshotChanges } from "../snapshots.ts";
import { NOW, PROVEN, snapshot, STALE_LEASE, VERIFIED } from "../snapshots.ts";

// Fixtures for both ways to reprovision in which another project reinstalls the host.

export const AT = NOW.monotonicMs - 100;

export const HOST = { kind: "BareMetalHost", namespace: "ns", name: "host", uid: "target-uid" };

export const OFF: Partial<Observations> = {
  power: PROVEN,
  identity: VERIFIED,
  lease: STALE_LEASE,
  nodeDeleted: true,
  taintCleared: true,
};

/** A reboot that belongs to the outage. */
export function proven(kind: string): SnapshotChanges["other"] {
  const { host } = snapshot({ state: "Verifying" });
  if (!host.found) throw new Error("a snapshot has a host");
  const lastReboot = { time: "2026-01-01T11:30:00Z", offConfirmedAt: "2026-01-01T11:29:00Z" };
  const isPoweredByMark = kind === "BareMetalHost";
  return { host: { found: true, facts: { ...host.facts, ref: { ...HOST, kind }, lastReboot, isPoweredByMark } } };
}
