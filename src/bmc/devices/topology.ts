import { callAll, combineFailures, levelFailure } from "./level-calls.ts";
import type { OutletJudge } from "./level-identities.ts";
import { LevelIdentities, WrongHostError } from "./level-identities.ts";
import type { LevelReadings } from "./level-readings.ts";
import { levelPower, readAll, readLevelPower } from "./level-readings.ts";
import { AC_CYCLE, NMI, sendOnce } from "./send-once.ts";
import type { Obstacle, OnceAnswer, OnceOrder, OnceSender } from "./send-once.ts";
import type { BootOverride, PowerDriver, PowerReading } from "../interface/driver.ts";
import type { IdentityCheck, IdentityJudge } from "../identity/identity-check.ts";
import { allowsOn } from "../identity/identity-check.ts";
import type { BmcEvidence } from "../evidence/model.ts";
import { BmcError } from "../interface/errors.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { isOutletLevel, supplyPower } from "./outlets.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The power of a host that is to be on with all its devices. */
export interface WholeReading extends PowerReading {
  /** Whether `readPower` shows the host On: it may run although some of its devices are not on. */
  runs: boolean;
  /** All outlets of the host are off, whatever its other devices show. */
  bySupply?: true;
  /** All outlets of the host are on, and no other device shows whether the host is. */
  supplied?: true;
}

/** What a host needs whose devices may be outlets of PDUs. */
export interface OutletRules {
  clock: Clock;
  judge: OutletJudge;
}

/**
 * How long a BMC that did not answer the last reading may take for the next one, if the host has outlets as well. It
 * has lost its power together with the host, as a rule, and the proof that the host is off lasts only for 5 s.
 */
const SILENT_BMC_MS = 2_000;

/** Between readings of outlets that were ordered off for an AC cycle. */
const OUTLET_POLL_MS = 1_000;

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
  readonly #identities: LevelIdentities;
  /** The level at which the next power-off starts: after the one whose last order has not led to an Off. */
  #firstLevel = 0;
  readonly #outlets: OutletRules | undefined;
  /** Levels of BMCs whose last call failed. */
  readonly #silent = new Set<readonly PowerDriver[]>();
  /** Levels of which an identity or the power could not be read since the host was opened. */
  readonly #failed = new Set<readonly PowerDriver[]>();

  /** @param outlets without it no outlet is used. */
  constructor(devices: readonly LevelledDevice[], judge: IdentityJudge, outlets?: OutletRules) {
    const byLevel = Map.groupBy(devices, (device) => device.level);
    this.#levels = [...byLevel]
      .toSorted(([a], [b]) => a - b)
      .map(([, members]) => members.map((member) => member.driver));
    this.#identities = new LevelIdentities(judge, outlets?.judge);
    this.#outlets = outlets;
  }

  /** Forgets which identities were read: the next call reads them again. */
  forgetIdentities(): void {
    this.#identities.forgetAll();
  }

  /** Reads the identities again, level by level, until one is accepted or another host answers. */
  async verify(judge: IdentityJudge, signal: AbortSignal): Promise<IdentityCheck> {
    this.#identities.judgeBy(judge);
    const failures: BmcError[] = [];
    let unknown: IdentityCheck | undefined;
    for (const level of this.#levels) {
      try {
        const check = await this.#inTime(level, signal, (bounded) => this.#identities.check(level, bounded));
        if (check.verified || check.reason === "Mismatch") return check;
        unknown ??= check;
      } catch (error) {
        failures.push(levelFailure(error, signal));
        this.#failed.add(level);
      }
    }
    const ended = await this.#outletsToTurnOn(signal);
    if (ended !== undefined) return ended;
    // A level that failed may be accepted at the next try. One without a usable identity will not.
    if (failures.length > 0 || unknown === undefined) throw this.#withUnknown(failures, unknown?.message);
    return unknown;
  }

  /**
   * Reads the power: the first level with a result decides. `On` if any of its devices shows On, `Off` if all of them
   * show Off. `Unknown` while another host answers. Outlets that are on show nothing about the host.
   */
  async readPower(signal: AbortSignal): Promise<PowerReading> {
    const failures: BmcError[] = [];
    let unknown: PowerReading | undefined;
    for (const level of this.#levels) {
      try {
        const { check, reading, failure } = await this.#inTime(level, signal, async (bounded) => {
          const check = await this.#identities.check(level, bounded);
          const nothing = { reading: { state: "Unknown", raw: check.message }, failure: undefined } as const;
          return { check, ...(check.verified ? await readLevelPower(level, bounded) : nothing) };
        });
        if (!check.verified) {
          unknown ??= reading;
          if (check.reason === "Mismatch") return reading;
          continue;
        }
        if (reading.state === "Off") this.#firstLevel = 0;
        if (reading.state === "Off") return { ...reading, ...this.#failuresBeside(level) };
        if (reading.state !== "Unknown") return reading;
        if (failure !== undefined) throw failure;
        unknown ??= reading;
      } catch (error) {
        failures.push(levelFailure(error, signal));
        this.#failed.add(level);
      }
    }
    if (failures.length === 0 && unknown !== undefined) return unknown;
    throw this.#withUnknown(failures, unknown?.raw);
  }

  /** Without `unknown`, the message about a BMC that is dead would hide an outlet that stays on, or is not used. */
  #withUnknown(failures: readonly BmcError[], unknown: string | undefined): BmcError {
    const failure = combineFailures(failures);
    if (unknown === undefined || this.#outlets === undefined) return failure;
    return new BmcError(failure.code, `${failure.message}; ${unknown}`, { cause: failure });
  }

  #failuresBeside(level: readonly PowerDriver[]): Pick<PowerReading, "failed"> {
    if (this.#failed.size === 0) return {};
    return { failed: this.#failed.has(level) ? "Same" : "Other" };
  }

  /** Calls one level, for a shorter time if its last call failed and the host has outlets. */
  async #inTime<T>(
    level: readonly PowerDriver[],
    signal: AbortSignal,
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const clock = this.#levels.some(isOutletLevel) ? this.#outlets?.clock : undefined;
    if (clock === undefined || isOutletLevel(level)) return call(signal);
    const wasSilent = this.#silent.has(level);
    this.#silent.add(level);
    const what = `call of ${level[0]?.address ?? ""}, which did not answer before`;
    try {
      const result = await (wasSilent ? withDeadline(clock, what, SILENT_BMC_MS, signal, call) : call(signal));
      this.#silent.delete(level);
      return result;
    } catch (error) {
      throw error instanceof DeadlineError ? new BmcError("Timeout", error.message, { cause: error }) : error;
    }
  }

  /**
   * Reads the power of every device of every level, for a host that is to be on again: any of them may have been turned
   * off. `Off` if one device shows Off, which proves nothing about the host; `bySupply` if all its outlets are off.
   * `On` if all devices of the first level with a result show On. If only outlets answer and they are on, the power is
   * `Unknown`, and the host is `supplied`.
   */
  async readWhole(signal: AbortSignal): Promise<WholeReading> {
    const levels = await Promise.all(this.#levels.map((level) => this.#readLevel(level, signal)));
    const readings = levels.flatMap((level) => level.readings);
    const runs = levels.find(({ power }) => power !== "Unknown")?.power === "On";
    const lacking = readings.find(({ state }) => state === "Off") ?? readings.find(({ state }) => state === "Changing");
    if (lacking !== undefined) {
      const { state, raw, address, bmcUpMs } = lacking;
      const isCut = levels.some(({ whole }) => whole.bySupply === true);
      return {
        state,
        raw: runs ? `${address}: ${raw}` : raw,
        runs,
        ...(bmcUpMs !== undefined && { bmcUpMs }),
        ...(isCut && { bySupply: true }),
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

  /**
   * Orders the devices of the first level that accepts a power-off. A second order without an Off in between starts at
   * the next level, because the previous one had no effect.
   *
   * @param obstacle is asked right before each level is called: to identify it may have taken long.
   * @throws PartlyTakenError if it failed but some device has taken the order; HeldError if none was called.
   */
  async forceOff(signal: AbortSignal, obstacle: Obstacle = () => undefined): Promise<void> {
    const failures: BmcError[] = [];
    let isPartlyTaken = false;
    const start = this.#firstLevel;
    for (let step = 0; step < this.#levels.length; step++) {
      const index = (start + step) % this.#levels.length;
      const level = this.#levels[index] ?? [];
      try {
        // The enrolment has to hold now: the calls to the levels before may have taken long.
        if (isOutletLevel(level)) this.#identities.forget(level);
        await this.#inTime(level, signal, (bounded) => this.#identities.requireVerified(level, bounded));
        const found = obstacle();
        if (found !== undefined && failures.length === 0) throw new HeldError(found);
        if (found !== undefined) break;
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
   * Orders every device of every level on, in ascending order, because any of them may have been turned off. Outlets
   * come first, since a BMC may need them, and only if they are the host's. Fails if one of them fails: `readPower`
   * shows whether the host is on nevertheless.
   */
  async on(signal: AbortSignal): Promise<void> {
    const failures: BmcError[] = [];
    const [outlets, others] = [
      this.#levels.filter(isOutletLevel),
      this.#levels.filter((level) => !isOutletLevel(level)),
    ];
    for (const level of [...outlets, ...others]) {
      try {
        if (outlets.includes(level) && !(await this.#mayBeTurnedOn(level, others.length === 0, signal))) continue;
        const { failure } = await this.#inTime(level, signal, async (bounded) => {
          await this.#identities.refuseWrongHost(level, bounded);
          return callAll(level, (driver) => driver.on(bounded), bounded);
        });
        if (failure !== undefined) failures.push(failure);
      } catch (error) {
        failures.push(levelFailure(error, signal));
      }
    }
    if (failures.length > 0) throw combineFailures(failures);
  }

  /**
   * Sets or clears the boot override on the first device that supports it. It is set only on an accepted host. Where no
   * device has one, there is none to clear: an undo that waited for that would leave the host off.
   */
  async setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    if (override === "None" && this.#hasNoBootOverride) return;
    await this.#onFirstSupporting(async (level, driver) => {
      if (override === "None") await this.#identities.refuseWrongHost(level, signal);
      else await this.#identities.requireVerified(level, signal);
      await driver.setBootOverride(override, signal);
    });
  }

  /** Reads the boot override of the first device that supports it. */
  async readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    if (this.#hasNoBootOverride) return "None";
    return this.#onFirstSupporting((_level, driver) => driver.readBootOverride(signal));
  }

  /**
   * Reads what the first accepted device that has a log shows of why the host died. Other calls may be made at the same
   * time.
   *
   * @returns undefined if no device has one.
   */
  async readEvidence(signal: AbortSignal): Promise<BmcEvidence | undefined> {
    const accepted = this.#levels.filter((level) => this.#identities.known(level)?.verified === true);
    for (const driver of accepted.flat()) {
      const evidence = await driver.readEvidence?.(signal);
      if (evidence !== undefined) return evidence;
    }
    return undefined;
  }

  /**
   * Sends an NMI by one device of an accepted host, once, and only if the host reads On.
   *
   * @throws BmcError Aborted
   */
  sendNmi(signal: AbortSignal, obstacle: Obstacle): Promise<OnceAnswer> {
    return sendOnce(NMI, this.#sendersOf(NMI, this.#levels.flat()), obstacle, signal);
  }

  /**
   * Cuts the mains power of an accepted host by one device, once, and only if the host reads Off. A device that shares
   * its level with others is one of several supplies, which alone cuts nothing. If no device can, the outlets do.
   *
   * @throws BmcError Aborted
   */
  async acCycle(signal: AbortSignal, obstacle: Obstacle): Promise<OnceAnswer> {
    const devices = this.#levels.filter(({ length }) => length === 1).flat();
    const answer = await sendOnce(AC_CYCLE, this.#sendersOf(AC_CYCLE, devices), obstacle, signal);
    const supply = this.#supply();
    if (answer.outcome !== "NotSent" || supply === undefined) return answer;
    const { outcome, message } = await sendOnce(AC_CYCLE, [supply], obstacle, signal);
    return { outcome, message, ...(outcome === "Sent" && { bySupply: true }) };
  }

  #sendersOf(order: OnceOrder, devices: readonly PowerDriver[]): OnceSender[] {
    return devices.flatMap((device) => {
      const send = order.by(device);
      const level = this.#levels.find((known) => known.includes(device)) ?? [];
      if (send === undefined) return [];
      const { address } = device;
      const readPower: OnceSender["readPower"] = (signal) => device.readPower(signal);
      return [{ address, send, readPower, requireVerified: (signal) => this.#verifyAgain(level, signal) }];
    });
  }

  /** All outlets of the host together. */
  #supply(): OnceSender | undefined {
    const level = this.#levels.find(isOutletLevel);
    const { clock } = this.#outlets ?? {};
    if (level === undefined || clock === undefined) return undefined;
    return {
      address: level.map(({ address }) => address).join(", "),
      readPower: async (signal) => {
        const reading = await this.readPower(signal);
        if (reading.bySupply === true) throw new BmcError("Refused", "its outlets are off already");
        return reading;
      },
      requireVerified: (signal) => this.#verifyAgain(level, signal),
      send: (signal) => cutSupply(level, clock, signal),
    };
  }

  async #verifyAgain(level: readonly PowerDriver[], signal: AbortSignal): Promise<void> {
    this.#identities.forget(level);
    await this.#identities.requireVerified(level, signal);
  }

  get #hasNoBootOverride(): boolean {
    return this.#levels.flat().every((driver) => driver.hasNoBootOverride === true);
  }

  /** Closes every device. */
  async close(): Promise<void> {
    await Promise.all(this.#levels.flat().map((driver) => driver.close()));
  }

  /**
   * The check of outlets that are off, and whose enrolment is enough to put them on again: a BMC that has no power
   * without them will not answer before that.
   */
  async #outletsToTurnOn(signal: AbortSignal): Promise<IdentityCheck | undefined> {
    for (const level of this.#levels.filter(isOutletLevel)) {
      const check = this.#identities.known(level);
      if (check === undefined || !allowsOn(check)) continue;
      const { readings } = await this.#readLevel(level, signal);
      if (readings.some(({ state }) => state === "Off")) return check;
    }
    return undefined;
  }

  /** An outlet that is not known to feed the host may have been switched off for the sake of another one. */
  async #mayBeTurnedOn(level: readonly PowerDriver[], isOnlyWay: boolean, signal: AbortSignal): Promise<boolean> {
    const check = await this.#identities.check(level, signal);
    if (allowsOn(check)) return true;
    if (isOnlyWay) throw new BmcError("Unsupported", `no order is sent: ${check.message}`);
    return false;
  }

  /** What the devices of one level report; nothing if they are not accepted. */
  async #readLevel(level: readonly PowerDriver[], signal: AbortSignal): Promise<LevelReadings> {
    try {
      return await this.#inTime(level, signal, (bounded) => this.#readAccepted(level, bounded));
    } catch (error) {
      const failure = levelFailure(error, signal);
      const whole = { state: "Unknown", raw: failure.message } as const;
      return { readings: [], failure, power: "Unknown", whole, supplied: false };
    }
  }

  async #readAccepted(level: readonly PowerDriver[], signal: AbortSignal): Promise<LevelReadings> {
    const check = await this.#identities.check(level, signal);
    const whole = { state: "Unknown", raw: check.message } as const;
    const nothing = { readings: [], failure: undefined, power: "Unknown", whole, supplied: false } as const;
    if (!allowsOn(check)) return nothing;
    const { values, failure } = await readAll(level, signal);
    const isOn = values.length === level.length && values.every(({ state }) => state === "On");
    if (isOutletLevel(level)) {
      const supply = supplyPower(values, level.length);
      return { ...nothing, readings: values, failure, power: supply.state, whole: supply, supplied: isOn };
    }
    const { state: power } = levelPower(values, level.length);
    const on = { state: "On", raw: values[0]?.raw ?? "" } as const;
    return { ...nothing, readings: values, failure, power, whole: isOn ? on : whole };
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

/** Switches off all outlets of a host, and reads them until they are. */
async function cutSupply(level: readonly PowerDriver[], clock: Clock, signal: AbortSignal): Promise<void> {
  const { failure } = await callAll(level, (driver) => driver.forceOff(signal), signal);
  if (failure !== undefined) throw failure;
  for (;;) {
    const { values } = await readAll(level, signal);
    if (supplyPower(values, level.length).state === "Off") return;
    await sleep(clock, OUTLET_POLL_MS, signal);
  }
}

/** An order that no device got, because something began to hold it. It says nothing against the devices. */
export class HeldError extends Error {
  override readonly name = "HeldError";
}

/**
 * An order that failed as a whole although some device has taken it: that device may be off, whatever the others show.
 */
export class PartlyTakenError extends BmcError {
  constructor(failure: BmcError) {
    super(failure.code, `only some devices took the order: ${failure.message}`, { cause: failure });
  }
}
