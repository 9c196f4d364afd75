import type { OutletIdentity, PowerDriver, PowerReading } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";

// Outlets of PDUs next to BMCs. An outlet that is off cuts the power of its host. An outlet that is on shows nothing
// about the host.

/** What one outlet of a level reports about itself. */
export interface OutletAnswer extends OutletIdentity {
  /** Its address in the target. */
  address: string;
}

/** Whether the level is for outlets: one outlet is enough. `outletAnswer` then refuses other devices of the level. */
export function isOutletLevel(level: readonly PowerDriver[]): boolean {
  return level.some((driver) => driver.identifyOutlet !== undefined);
}

/**
 * Identifies one outlet. @throws BmcError Unsupported if the device is not an outlet, otherwise as `identifyOutlet`.
 */
export async function outletAnswer(driver: PowerDriver, signal: AbortSignal): Promise<OutletAnswer> {
  if (driver.identifyOutlet === undefined) {
    const why = "outlets must have a level of their own in spec.devices";
    throw new BmcError("Unsupported", `${driver.address} is not an outlet, but its level has outlets: ${why}`);
  }
  return { ...(await driver.identifyOutlet(signal)), address: driver.address };
}

/**
 * Identifies the outlets one after the other, because they may belong to one PDU. @throws BmcError as `outletAnswer`.
 */
export async function outletAnswers(outlets: readonly PowerDriver[], signal: AbortSignal): Promise<OutletAnswer[]> {
  const answers: OutletAnswer[] = [];
  for (const outlet of outlets) answers.push(await outletAnswer(outlet, signal));
  return answers;
}

/**
 * What the readings of all outlets of a host show about its power: Off if each of them is off, otherwise Unknown.
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
