import type { PowerReading } from "../../../../bmc/interface/driver.ts";
import type { WholeReading } from "../../../../bmc/devices/topology.ts";
import type { ObservedPower } from "../../model/facts/observations.ts";
import { POWER_PROOF_AGE_MAX_MS } from "../../model/decision/timings.ts";

/** Before any reading, and after every power-off order: what was read before an order proves nothing about it. */
export const NOTHING_READ: ObservedPower = { last: undefined, offReads: 0, offAtMs: undefined, provenAtMs: undefined };

/**
 * After so long without a reading an Off one begins a new row. Longer than a proof may go unread, since a reading takes
 * time.
 */
const ROW_GAP_MAX_MS = 2 * POWER_PROOF_AGE_MAX_MS;

/**
 * Two Off readings in a row prove a host off. Any other reading voids the proof, and so does a long time without one.
 */
export function recordReading(power: ObservedPower, reading: PowerReading, atMs: number): ObservedPower {
  const last = { ...reading, atMs };
  if (reading.state !== "Off") return { last, offReads: 0, offAtMs: undefined, provenAtMs: undefined };
  const isOld = power.offAtMs !== undefined && atMs - power.offAtMs >= ROW_GAP_MAX_MS;
  if (isOld) return { last, offReads: 1, offAtMs: atMs, provenAtMs: undefined };
  const offReads = power.offReads + 1;
  return { last, offReads, offAtMs: atMs, provenAtMs: power.provenAtMs ?? (offReads >= 2 ? atMs : undefined) };
}

/** A reading for a host that is to be on: its `Off` is of one device, and never a step towards a proof. */
export function recordWhole(reading: WholeReading, atMs: number): ObservedPower {
  return { ...NOTHING_READ, last: { ...reading, atMs } };
}

/**
 * A reading that failed ends the row that was to become a proof, since the BMC may have restarted meanwhile. A proof
 * that stands holds until it could not be renewed in time.
 */
export function recordFailedReading(power: ObservedPower, atMs: number): ObservedPower {
  if (power.offAtMs === undefined || power.provenAtMs === undefined) return NOTHING_READ;
  return atMs - power.offAtMs < POWER_PROOF_AGE_MAX_MS ? power : NOTHING_READ;
}
