import type { PowerReading } from "../../../../bmc/interface/driver.ts";
import type { WholeReading } from "../../../../bmc/topology/whole-power.ts";
import type { ObservedPower } from "../../model/facts/observations.ts";
import { POWER_PROOF_AGE_MAX_MS } from "../../model/decision/timings.ts";

/** The power before any reading, and after every power order: readings before an order prove nothing about it. */
export const NOTHING_READ: ObservedPower = { last: undefined, offReads: 0, offAtMs: undefined, provenAtMs: undefined };

/**
 * If the last reading of Off is this old, the next one counts as the first of a new row. It is longer than the maximum
 * age of a proof, because a reading takes time.
 */
const ROW_GAP_MAX_MS = 2 * POWER_PROOF_AGE_MAX_MS;

/**
 * Adds a reading. Two readings of Off in a row prove a host off. Any other reading voids the proof, and so does a long
 * time without a reading.
 */
export function recordReading(power: ObservedPower, reading: PowerReading, atMs: number): ObservedPower {
  const last = { ...reading, atMs };
  if (reading.state !== "Off") return { last, offReads: 0, offAtMs: undefined, provenAtMs: undefined };
  const isOld = power.offAtMs !== undefined && atMs - power.offAtMs >= ROW_GAP_MAX_MS;
  if (isOld) return { last, offReads: 1, offAtMs: atMs, provenAtMs: undefined };
  const offReads = power.offReads + 1;
  return { last, offReads, offAtMs: atMs, provenAtMs: power.provenAtMs ?? (offReads >= 2 ? atMs : undefined) };
}

/** Adds a reading of all devices of a host that must be on. `Off` then means that one device is off: no proof. */
export function recordWhole(reading: WholeReading, atMs: number): ObservedPower {
  return { ...NOTHING_READ, last: { ...reading, atMs } };
}

/**
 * Adds a reading that failed. Without a proof, the row begins again, because the BMC may have restarted. A proof stays
 * until its last reading is older than POWER_PROOF_AGE_MAX_MS.
 */
export function recordFailedReading(power: ObservedPower, atMs: number): ObservedPower {
  if (power.offAtMs === undefined || power.provenAtMs === undefined) return NOTHING_READ;
  return atMs - power.offAtMs < POWER_PROOF_AGE_MAX_MS ? power : NOTHING_READ;
}
