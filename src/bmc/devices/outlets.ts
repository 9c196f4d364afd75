import type { OutletIdentity, PowerDriver, PowerReading } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";

// Outlets of PDUs next to BMCs. An outlet that is off takes the power from its host; one that is on shows nothing about
// the host.

/** What one outlet of a level reports about itself. */
export interface OutletAnswer extends OutletIdentity {
  /** Its address in the target. */
  address: string;
}

/** Whether the level consists of outlets. A level with one outlet counts: its other devices are then refused. */
export function isOutletLevel(level: readonly PowerDriver[]): boolean {
  return level.some((driver) => driver.identifyOutlet !== undefined);
}

/** @throws BmcError, also for another device. */
export async function outletAnswer(driver: PowerDriver, signal: AbortSignal): Promise<OutletAnswer> {
  if (driver.identifyOutlet === undefined) {
    const why = "outlets must have a level of their own in spec.devices";
    throw new BmcError("Unsupported", `${driver.address} is not an outlet, but its level has outlets: ${why}`);
  }
  return { ...(await driver.identifyOutlet(signal)), address: driver.address };
}

/** @throws BmcError as `outletAnswer` does. One outlet after the other: they may belong to one PDU. */
export async function outletAnswers(outlets: readonly PowerDriver[], signal: AbortSignal): Promise<OutletAnswer[]> {
  const answers: OutletAnswer[] = [];
  for (const outlet of outlets) answers.push(await outletAnswer(outlet, signal));
  return answers;
}

/**
 * What the readings of all outlets of a host show about its power: Off if each of them is off, otherwise nothing.
 *
 * @param outlets how many outlets the host has: Off needs a reading of each.
 */
export function supplyPower(readings: readonly (PowerReading & { address: string })[], outlets: number): PowerReading {
  const others = readings.filter(({ state }) => state !== "Off");
  if (readings.length === outlets && others.length === 0 && outlets > 0) {
    return { state: "Off", raw: `all outlets are off (${listOf(readings)})`, bySupply: true };
  }
  if (others.length === 0) return { state: "Unknown", raw: "not all outlets answer" };
  return { state: "Unknown", raw: `outlets that are on show nothing about the host (${listOf(readings)})` };
}

function listOf(readings: readonly (PowerReading & { address: string })[]): string {
  return readings.map(({ address, raw }) => `${address}: ${raw}`).join(", ");
}
