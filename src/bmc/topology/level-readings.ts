import { callAll } from "./level-calls.ts";
import { isOutletLevel, supplyPower } from "./outlets.ts";
import type { PowerDriver, PowerReading } from "../interface/driver.ts";
import { hostnameOf, parseBmcAddress } from "../interface/address.ts";
import { BmcError } from "../interface/errors.ts";

type Readings = Awaited<ReturnType<typeof callAll<PowerReading & { address: string }>>>;

/** The readings of all devices of one level, with their addresses. */
export function readAll(level: readonly PowerDriver[], signal: AbortSignal): Promise<Readings> {
  return callAll(level, async (driver) => ({ ...(await driver.readPower(signal)), address: driver.address }), signal);
}

/** What the readings of one level show about the power of the host. */
export async function readLevelPower(
  level: readonly PowerDriver[],
  signal: AbortSignal,
): Promise<{ reading: PowerReading; failure: BmcError | undefined }> {
  if (isOutletLevel(level)) {
    const { values, failure } = await readAll(level, signal);
    return { reading: supplyPower(values, level.length), failure };
  }
  const { values, failure } = await callAll(level, (driver) => driver.readPower(signal), signal);
  return { reading: levelPower(values, level.length, countHostnames(level)), failure };
}

/**
 * How many hostnames the devices of a level have. Redfish and IPMI of one BMC share a hostname, and do not confirm each
 * other.
 */
function countHostnames(level: readonly PowerDriver[]): number {
  return new Set(level.map(({ address }) => hostnameOrNone(address))).size;
}

function hostnameOrNone(address: string): string {
  try {
    return hostnameOf(parseBmcAddress(address));
  } catch (error) {
    if (error instanceof BmcError) return "";
    throw error;
  }
}

/**
 * Combines the readings of one level. Pure.
 *
 * @param devices how many devices the level has: Off needs a reading of each. @param hostnames how many hostnames they
 * have.
 */
export function levelPower(readings: readonly PowerReading[], devices: number, hostnames = 1): PowerReading {
  const on = readings.find((reading) => reading.state === "On");
  if (on !== undefined) return on;
  const changing = readings.find((reading) => reading.state === "Changing");
  if (changing !== undefined) return changing;
  const off = readings.filter((reading) => reading.state === "Off");
  if (off[0] !== undefined && off.length === devices) {
    const upMs = off.flatMap(({ bmcUpMs }) => bmcUpMs ?? []);
    const shortest = upMs.length > 0 && { bmcUpMs: Math.min(...upMs) };
    const agrees = hostnames > 1 || off.some((reading) => reading.agrees === true);
    return { ...off[0], ...(agrees && { agrees }), ...shortest };
  }
  return readings.find((reading) => reading.state === "Unknown") ?? { state: "Unknown", raw: "not all devices answer" };
}
