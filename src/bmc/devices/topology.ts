import { callAll, combineFailures, levelFailure } from "./level-calls.ts";
import type { BootOverride, PowerDriver, PowerReading, PowerState } from "../interface/driver.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import { BmcError } from "../interface/errors.ts";

/** The result of an identity check. */
export type IdentityVerdict =
  | { verified: true; message: string }
  /**
   * Mismatch: another host answers. Unknown: there is nothing to compare with, the device reports no identity, or other
   * hosts report the same one. In this last case `enoughForOn` is set: a host that was verified before its power-off
   * may be powered on.
   */
  | { verified: false; reason: "Mismatch" | "Unknown"; message: string; enoughForOn?: true };

/** Whether a host that was verified before its power-off may be read and powered on. */
export function allowsOn(verdict: IdentityVerdict): boolean {
  return verdict.verified || verdict.enoughForOn === true;
}

/** The power of a host that is to be on with all its devices. */
export interface WholeReading extends PowerReading {
  /** Whether `readPower` shows the host On: it may run although some of its devices are not on. */
  runs: boolean;
}

/** Decides whether the devices of one level power the expected host, from the identities that they report. */
export type IdentityJudge = (answers: readonly HostIdentity[]) => IdentityVerdict;

/** One power device of a host, on its level. */
export interface LevelledDevice {
  level: number;
  driver: PowerDriver;
}

/**
 * The power devices of one host as one (the fencing topology of Pacemaker). Levels are tried in ascending order, and
 * all devices of a level must succeed. A level counts for Off only after its identity was accepted, so that no order
 * goes to another host and no Off of another host counts. Failures are `BmcError`s. Not for concurrent calls.
 */
export class Topology {
  readonly #levels: readonly (readonly PowerDriver[])[];
  #judge: IdentityJudge;
  /** Verdicts by level since the last `verify`. Levels that were not used yet have none. */
  readonly #verdicts = new Map<readonly PowerDriver[], IdentityVerdict>();
  /** The level at which the next power-off starts: after the one whose last order has not led to an Off. */
  #firstLevel = 0;

  constructor(devices: readonly LevelledDevice[], judge: IdentityJudge) {
    const byLevel = Map.groupBy(devices, (device) => device.level);
    this.#levels = [...byLevel]
      .toSorted(([a], [b]) => a - b)
      .map(([, members]) => members.map((member) => member.driver));
    this.#judge = judge;
  }

  /** Reads the identities again, level by level, until one is accepted or another host answers. */
  async verify(judge: IdentityJudge, signal: AbortSignal): Promise<IdentityVerdict> {
    this.#judge = judge;
    this.#verdicts.clear();
    const failures: BmcError[] = [];
    let unknown: IdentityVerdict | undefined;
    for (const level of this.#levels) {
      try {
        const verdict = await this.#verdictOf(level, signal);
        if (verdict.verified || verdict.reason === "Mismatch") return verdict;
        unknown ??= verdict;
      } catch (error) {
        failures.push(levelFailure(error, signal));
      }
    }
    // A level that failed may be accepted at the next try. One without a usable identity will not.
    if (failures.length > 0 || unknown === undefined) throw combineFailures(failures);
    return unknown;
  }

  /**
   * Reads the power: the first level with a result decides. `On` if any of its devices shows On, `Off` if all of them
   * show Off. `Unknown` while another host answers.
   */
  async readPower(signal: AbortSignal): Promise<PowerReading> {
    const failures: BmcError[] = [];
    let unknown: PowerReading | undefined;
    for (const level of this.#levels) {
      try {
        const verdict = await this.#verdictOf(level, signal);
        if (!verdict.verified) {
          unknown ??= { state: "Unknown", raw: verdict.message };
          if (verdict.reason === "Mismatch") return { state: "Unknown", raw: verdict.message };
          continue;
        }
        const { values, failure } = await callAll(level, (driver) => driver.readPower(signal), signal);
        const reading = levelPower(values, level.length);
        if (reading.state === "Off") this.#firstLevel = 0;
        if (reading.state !== "Unknown") return reading;
        if (failure !== undefined) throw failure;
        unknown ??= reading;
      } catch (error) {
        failures.push(levelFailure(error, signal));
      }
    }
    if (failures.length > 0 || unknown === undefined) throw combineFailures(failures);
    return unknown;
  }

  /**
   * Reads the power of every device of every level, for a host that is to be on again: any of them may have been turned
   * off. `Off` if one device shows Off, which proves nothing about the host. `On` if all devices of the first level
   * with a result show On.
   */
  async readWhole(signal: AbortSignal): Promise<WholeReading> {
    const levels = await Promise.all(this.#levels.map((level) => this.#readLevel(level, signal)));
    const readings = levels.flatMap((level) => level.readings);
    const runs = levels.find(({ power }) => power !== "Unknown")?.power === "On";
    const lacking = readings.find(({ state }) => state === "Off") ?? readings.find(({ state }) => state === "Changing");
    if (lacking !== undefined) {
      const { state, raw, address } = lacking;
      return { state, raw: runs ? `${address}: ${raw}` : raw, runs };
    }
    const on = levels.find(({ whole }) => whole.state === "On")?.whole;
    if (on !== undefined) return { ...on, runs };
    const failures = levels.flatMap(({ failure }) => failure ?? []);
    if (failures.length > 0 && !runs) throw combineFailures(failures);
    return { state: "Unknown", raw: failures[0]?.message ?? levels[0]?.whole.raw ?? "no power device", runs };
  }

  /**
   * Orders the devices of the first level that accepts a power-off. A second order without an Off in between starts at
   * the next level, because the previous one had no effect.
   *
   * @throws PartlyTakenError if it failed but some device has taken the order.
   */
  async forceOff(signal: AbortSignal): Promise<void> {
    const failures: BmcError[] = [];
    let isPartlyTaken = false;
    const start = this.#firstLevel;
    for (let step = 0; step < this.#levels.length; step++) {
      const index = (start + step) % this.#levels.length;
      const level = this.#levels[index] ?? [];
      try {
        await this.#requireVerified(level, signal);
        this.#firstLevel = (index + 1) % this.#levels.length;
        const { values, failure } = await callAll(level, (driver) => driver.forceOff(signal), signal);
        if (failure === undefined) return;
        failures.push(failure);
        isPartlyTaken ||= values.length > 0;
      } catch (error) {
        if (error instanceof WrongHostError) throw error;
        failures.push(levelFailure(error, signal));
      }
    }
    const failure = combineFailures(failures);
    throw isPartlyTaken ? new PartlyTakenError(failure) : failure;
  }

  /**
   * Orders every device of every level on, in ascending order, because any of them may have been turned off. Fails if
   * one of them fails: `readPower` shows whether the host is on nevertheless.
   */
  async on(signal: AbortSignal): Promise<void> {
    const failures: BmcError[] = [];
    for (const level of this.#levels) {
      try {
        await this.#refuseWrongHost(level, signal);
        const { failure } = await callAll(level, (driver) => driver.on(signal), signal);
        if (failure !== undefined) failures.push(failure);
      } catch (error) {
        failures.push(levelFailure(error, signal));
      }
    }
    if (failures.length > 0) throw combineFailures(failures);
  }

  /** Sets or clears the boot override on the first device that supports it. It is set only on an accepted host. */
  async setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    await this.#onFirstSupporting(async (level, driver) => {
      if (override === "None") await this.#refuseWrongHost(level, signal);
      else await this.#requireVerified(level, signal);
      await driver.setBootOverride(override, signal);
    });
  }

  /** Reads the boot override of the first device that supports it. */
  async readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#onFirstSupporting((_level, driver) => driver.readBootOverride(signal));
  }

  /** Closes every device. */
  async close(): Promise<void> {
    await Promise.all(this.#levels.flat().map((driver) => driver.close()));
  }

  /** What the devices of one level report; nothing if they are not accepted. */
  async #readLevel(level: readonly PowerDriver[], signal: AbortSignal): Promise<LevelReadings> {
    try {
      const verdict = await this.#verdictOf(level, signal);
      const whole = { state: "Unknown", raw: verdict.message } as const;
      if (!allowsOn(verdict)) return { readings: [], failure: undefined, power: "Unknown", whole };
      const read = async (driver: PowerDriver) => ({ ...(await driver.readPower(signal)), address: driver.address });
      const { values, failure } = await callAll(level, read, signal);
      const isOn = values.length === level.length && values.every(({ state }) => state === "On");
      const { state: power } = levelPower(values, level.length);
      return { readings: values, failure, power, whole: isOn ? { state: "On", raw: values[0]?.raw ?? "" } : whole };
    } catch (error) {
      const failure = levelFailure(error, signal);
      return { readings: [], failure, power: "Unknown", whole: { state: "Unknown", raw: failure.message } };
    }
  }

  async #verdictOf(level: readonly PowerDriver[], signal: AbortSignal): Promise<IdentityVerdict> {
    const known = this.#verdicts.get(level);
    if (known !== undefined) return known;
    const { values, failure } = await callAll(level, (driver) => driver.identify(signal), signal);
    const verdict = this.#judge(values);
    const mismatch = !verdict.verified && verdict.reason === "Mismatch";
    // If another host is among those that answered, the level is refused, whatever the other devices would report.
    if (failure !== undefined && !mismatch) throw failure;
    this.#verdicts.set(level, verdict);
    return verdict;
  }

  async #requireVerified(level: readonly PowerDriver[], signal: AbortSignal): Promise<void> {
    await this.#refuseWrongHost(level, signal);
    const verdict = await this.#verdictOf(level, signal);
    if (!verdict.verified) throw new BmcError("Unsupported", `no order is sent: ${verdict.message}`);
  }

  async #refuseWrongHost(level: readonly PowerDriver[], signal: AbortSignal): Promise<void> {
    const verdict = await this.#verdictOf(level, signal);
    if (!verdict.verified && verdict.reason === "Mismatch") throw new WrongHostError(verdict.message);
  }

  async #onFirstSupporting<T>(work: (level: readonly PowerDriver[], driver: PowerDriver) => Promise<T>): Promise<T> {
    let unsupported: BmcError | undefined;
    for (const level of this.#levels) {
      for (const driver of level) {
        try {
          return await work(level, driver);
        } catch (error) {
          if (!(error instanceof BmcError) || error.code !== "Unsupported") throw error;
          unsupported ??= error;
        }
      }
    }
    throw unsupported ?? combineFailures([]);
  }
}

interface LevelReadings {
  readings: readonly (PowerReading & { address: string })[];
  /** The result of these readings for `readPower`. */
  power: PowerState;
  /** `On` if every device shows On, otherwise `Unknown`. */
  whole: PowerReading;
  failure: BmcError | undefined;
}

/**
 * The combined result of the readings of one level; pure.
 *
 * @param devices how many devices the level has: Off needs a reading of each.
 */
export function levelPower(readings: readonly PowerReading[], devices: number): PowerReading {
  const on = readings.find((reading) => reading.state === "On");
  if (on !== undefined) return on;
  const changing = readings.find((reading) => reading.state === "Changing");
  if (changing !== undefined) return changing;
  const off = readings.filter((reading) => reading.state === "Off");
  if (off[0] !== undefined && off.length === devices) return devices > 1 ? { ...off[0], agrees: true } : off[0];
  return readings.find((reading) => reading.state === "Unknown") ?? { state: "Unknown", raw: "not all devices answer" };
}

/**
 * An order that failed as a whole although some device has taken it: that device may be off, whatever the others show.
 */
export class PartlyTakenError extends BmcError {
  constructor(failure: BmcError) {
    super(failure.code, `only some devices took the order: ${failure.message}`, { cause: failure });
  }
}

/** The host that answers is not the expected one: nothing else is tried. */
class WrongHostError extends BmcError {
  constructor(message: string) {
    super("SystemNotFound", `no order is sent: ${message}`);
  }
}
