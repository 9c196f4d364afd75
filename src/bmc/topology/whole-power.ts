import { allowsOn } from "../identity/identity-check.ts";
import type { PowerDriver, PowerReading, PowerState } from "../interface/driver.ts";
import type { BmcError } from "../interface/errors.ts";
import { combineFailures } from "./level-calls.ts";
import type { LevelIdentities } from "./level-identities.ts";
import { levelPower, readAll } from "./level-readings.ts";
import { isOutletLevel, supplyPower } from "./outlets.ts";

/** The power of a host whose devices must all be on. */
export interface WholeReading extends PowerReading {
  /** Whether the first level with a result shows the host On: it may run although some of its devices are not on. */
  runs: boolean;
  /** All outlets of the host are off, whatever its other devices show. */
  bySupply?: true;
  /** All outlets of the host are on, and no other device shows the power of the host. */
  supplied?: true;
  /** Some outlet of the host is not on and no other device answers: its BMC may have no power either. */
  unsupplied?: true;
}

/** What the devices of one level show. */
export interface LevelReadings {
  isOutlets: boolean;
  readings: readonly (PowerReading & { address: string })[];
  /** What `readPower` returns for these readings. */
  power: PowerState;
  /** `On` if every device shows On, otherwise `Unknown`. For outlets, the result of `supplyPower`. */
  whole: PowerReading;
  failure: BmcError | undefined;
  /** The devices are outlets, and each shows On. */
  supplied: boolean;
}

/** Reads every device of one level; none if the level is not accepted. */
export async function readWholeLevel(
  level: readonly PowerDriver[],
  identities: LevelIdentities,
  signal: AbortSignal,
): Promise<LevelReadings> {
  const check = await identities.check(level, signal);
  const nothing = unread(level, check.message);
  if (!allowsOn(check)) return nothing;
  const { values, failure } = await readAll(level, signal);
  const isOn = values.length === level.length && values.every(({ state }) => state === "On");
  if (nothing.isOutlets) {
    const supply = supplyPower(values, level.length);
    return { ...nothing, readings: values, failure, power: supply.state, whole: supply, supplied: isOn };
  }
  const { state: power } = levelPower(values, level.length);
  const on = { state: "On", raw: values[0]?.raw ?? "" } as const;
  return { ...nothing, readings: values, failure, power, ...(isOn && { whole: on }) };
}

/** The readings of a level that could not be read because of `failure`. */
export function failedLevel(level: readonly PowerDriver[], failure: BmcError): LevelReadings {
  return { ...unread(level, failure.message), failure };
}

function unread(level: readonly PowerDriver[], why: string): LevelReadings {
  return {
    isOutlets: isOutletLevel(level),
    readings: [],
    failure: undefined,
    power: "Unknown",
    whole: { state: "Unknown", raw: why },
    supplied: false,
  };
}

/**
 * Combines what all levels of a host show, in ascending order. Pure.
 *
 * @throws BmcError if nothing is known, and some level failed.
 */
export function wholePower(levels: readonly LevelReadings[]): WholeReading {
  const readings = levels.flatMap((level) => level.readings);
  const runs = levels.find(({ power }) => power !== "Unknown")?.power === "On";
  const lacking = readings.find(({ state }) => state === "Off") ?? readings.find(({ state }) => state === "Changing");
  if (lacking !== undefined) {
    const { state, raw, address, bmcUpMs } = lacking;
    const isCut = levels.some(({ whole }) => whole.bySupply === true);
    const isUnsupplied = levels.every((level) => level.isOutlets || level.readings.length === 0);
    return {
      state,
      raw: runs ? `${address}: ${raw}` : raw,
      runs,
      ...(bmcUpMs !== undefined && { bmcUpMs }),
      ...(isCut && { bySupply: true }),
      ...(isUnsupplied && { unsupplied: true }),
    };
  }
  const on = levels.find(({ whole }) => whole.state === "On")?.whole;
  if (on !== undefined) return { ...on, runs };
  const failures = levels.flatMap(({ failure }) => failure ?? []);
  const supply = levels.find(({ supplied }) => supplied);
  if (supply !== undefined) {
    const why = failures[0]?.message ?? "no BMC shows the power of the host";
    return { state: "Unknown", raw: `${supply.whole.raw}; ${why}`, runs, supplied: true };
  }
  if (failures.length > 0 && !runs) throw combineFailures(failures);
  return { state: "Unknown", raw: failures[0]?.message ?? levels[0]?.whole.raw ?? "no power device", runs };
}
