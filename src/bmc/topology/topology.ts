import type { BmcEvidence } from "../evidence/model.ts";
import type { IdentityCheck, IdentityJudge } from "../identity/identity-check.ts";
import { allowsOn } from "../identity/identity-check.ts";
import type { BootOverride, PowerDriver, PowerReading } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { HostBootOverride } from "./boot-override.ts";
import { callAll, combineFailures, levelFailure } from "./level-calls.ts";
import { LevelDeadlines, STARTING_BMC_MS } from "./level-deadlines.ts";
import type { OutletJudge } from "./level-identities.ts";
import { LevelIdentities, WrongHostError } from "./level-identities.ts";
import { readLevelPower } from "./level-readings.ts";
import { OnceOrders } from "./once-orders.ts";
import { HeldError, PartlyTakenError } from "./order-errors.ts";
import { isOutletLevel } from "./outlets.ts";
import type { Obstacle, OnceAnswer } from "./send-once.ts";
import type { LevelReadings, WholeReading } from "./whole-power.ts";
import { failedLevel, readWholeLevel, wholePower } from "./whole-power.ts";

/** What an order to power on depends on. */
export interface OnOptions {
  /** No other device is ordered on. */
  outletsOnly?: boolean | undefined;
  /** Returns what holds the order. It is called before each level, because switching outlets on may take long. */
  obstacle?: Obstacle;
}

/** What is needed to use outlets of PDUs. */
export interface OutletRules {
  clock: Clock;
  judge: OutletJudge;
}

/** One power device of a host, on its level. */
export interface LevelledDevice {
  level: number;
  driver: PowerDriver;
}

/**
 * Combines the power devices of one host, like the fencing topology of Pacemaker. Levels are tried in ascending order,
 * and all devices of a level must succeed. A level counts for Off only after its identity was accepted, so that no
 * order goes to another host and no Off of another host counts. Failures are `BmcError`s. Make no concurrent calls,
 * except `readEvidence`.
 */
export class Topology {
  readonly #levels: readonly (readonly PowerDriver[])[];
  readonly #identities: LevelIdentities;
  /**
   * The level at which the next power-off starts: the one after the level that got the last order, until an Off is
   * read.
   */
  #firstLevel = 0;
  readonly #hasOutletRules: boolean;
  readonly #deadlines: LevelDeadlines;
  readonly #bootOverride: HostBootOverride;
  readonly #onceOrders: OnceOrders;
  /** Levels whose identity or power could not be read at some time since the host was opened. */
  readonly #failed = new Set<readonly PowerDriver[]>();

  /** @param outlets If it is absent, no outlet is used. */
  constructor(devices: readonly LevelledDevice[], judge: IdentityJudge, outlets?: OutletRules) {
    const byLevel = Map.groupBy(devices, (device) => device.level);
    this.#levels = [...byLevel]
      .toSorted(([a], [b]) => a - b)
      .map(([, members]) => members.map((member) => member.driver));
    this.#identities = new LevelIdentities(judge, outlets?.judge);
    this.#hasOutletRules = outlets !== undefined;
    this.#deadlines = new LevelDeadlines(this.#levels.some(isOutletLevel) ? outlets?.clock : undefined);
    this.#bootOverride = new HostBootOverride(this.#levels, this.#identities);
    this.#onceOrders = new OnceOrders({
      levels: this.#levels,
      identities: this.#identities,
      readPower: (signal) => this.readPower(signal),
      clock: outlets?.clock,
    });
  }

  /** Forgets the identities, so that the next call reads them again. */
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
        const check = await this.#deadlines.call(level, signal, (bounded) => this.#identities.check(level, bounded));
        if (check.verified || check.reason === "Mismatch") return check;
        unknown ??= check;
      } catch (error) {
        failures.push(levelFailure(error, signal));
        this.#failed.add(level);
      }
    }
    const ended = await this.#outletsToSwitchOn(signal);
    if (ended !== undefined) return ended;
    // A level that failed may be accepted at the next attempt. A level without a usable identity will not.
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
        const { check, reading, failure } = await this.#deadlines.call(level, signal, async (bounded) => {
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
        if (reading.state === "Off") return { ...reading, ...this.#otherFailures(level) };
        if (reading.state !== "Unknown") return reading;
        if (failure !== undefined) {
          this.#deadlines.noteFailure(level, failure);
          throw failure;
        }
        unknown ??= reading;
      } catch (error) {
        failures.push(levelFailure(error, signal));
        this.#failed.add(level);
      }
    }
    if (failures.length === 0 && unknown !== undefined) return unknown;
    throw this.#withUnknown(failures, unknown?.raw);
  }

  /**
   * Combines failures and adds `unknown` to the message: the failure of a dead BMC alone would hide that an outlet
   * stays on or is not used.
   */
  #withUnknown(failures: readonly BmcError[], unknown: string | undefined): BmcError {
    const failure = combineFailures(failures);
    if (unknown === undefined || !this.#hasOutletRules) return failure;
    return new BmcError(failure.code, `${failure.message}; ${unknown}`, { cause: failure });
  }

  #otherFailures(level: readonly PowerDriver[]): Pick<PowerReading, "failed"> {
    if (this.#failed.size === 0) return {};
    return { failed: this.#failed.has(level) ? "Same" : "Other" };
  }

  /**
   * Reads the power of every device of every level, for a host that is to be on again: any of them may have been turned
   * off. `Off` if one device shows Off, which proves nothing about the host; `bySupply` if all its outlets are off.
   * `On` if all devices of the first level with a result show On. If only outlets answer, `unsupplied` is set if
   * one of them is not on. If all are on, the power is `Unknown`, and `supplied` is set.
   */
  async readWhole(signal: AbortSignal): Promise<WholeReading> {
    const levels = await Promise.all(this.#levels.map((level) => this.#readLevel(level, signal)));
    return wholePower(levels);
  }

  /**
   * Orders the devices of the first level that accepts a power-off. A second order without an Off in between starts at
   * the next level, because the previous one had no effect.
   *
   * @param obstacle Called right before each level is ordered off, because reading its identity may have taken long.
   * @throws PartlyTakenError if the order failed but some device accepted it; HeldError if `obstacle` held it before
   * any level failed.
   */
  async forceOff(signal: AbortSignal, obstacle: Obstacle = () => undefined): Promise<void> {
    const failures: BmcError[] = [];
    let isPartlyTaken = false;
    const start = this.#firstLevel;
    for (let step = 0; step < this.#levels.length; step++) {
      const index = (start + step) % this.#levels.length;
      const level = this.#levels[index] ?? [];
      try {
        // The enrolment has to be valid now, and the calls to earlier levels may have taken long.
        if (isOutletLevel(level)) this.#identities.forget(level);
        await this.#deadlines.call(level, signal, (bounded) => this.#identities.requireVerified(level, bounded));
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
   * are first, because a BMC may need their power, and only outlets that are known to feed this host are switched on.
   * Fails if any device fails; `readPower` shows whether the host is on nevertheless.
   *
   * @throws HeldError if `obstacle` held the order before all levels got it.
   */
  async on(signal: AbortSignal, { outletsOnly = false, obstacle = () => undefined }: OnOptions = {}): Promise<void> {
    const failures: BmcError[] = [];
    const [outlets, others] = [
      this.#levels.filter(isOutletLevel),
      this.#levels.filter((level) => !isOutletLevel(level)),
    ];
    for (const level of outletsOnly ? outlets : [...outlets, ...others]) {
      const found = obstacle();
      if (found !== undefined) throw new HeldError(found);
      try {
        if (outlets.includes(level) && !(await this.#maySwitchOn(level, others.length === 0, signal))) continue;
        const order = async (bounded: AbortSignal): ReturnType<typeof callAll<void>> => {
          await this.#identities.refuseWrongHost(level, bounded);
          return callAll(level, (driver) => driver.on(bounded), bounded);
        };
        const { failure } = await this.#deadlines.call(level, signal, order, STARTING_BMC_MS);
        if (failure !== undefined) failures.push(failure);
      } catch (error) {
        failures.push(levelFailure(error, signal));
      }
    }
    if (failures.length > 0) throw combineFailures(failures);
  }

  /**
   * Sets or clears the boot override on the first device that supports it. It is set only on an accepted host. If no
   * device has a boot override, there is nothing to clear.
   */
  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    return this.#bootOverride.set(override, signal);
  }

  /** Reads the boot override of the first device that supports it. */
  readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#bootOverride.read(signal);
  }

  /**
   * Reads the evidence of why the host failed from the first accepted device that has a log. Other calls may be made at
   * the same time.
   *
   * @returns undefined if no device has a log.
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
    return this.#onceOrders.sendNmi(signal, obstacle);
  }

  /**
   * Cuts the mains power of an accepted host by one device or by all its outlets, once, and only if the host reads Off.
   *
   * @throws BmcError Aborted
   */
  acCycle(signal: AbortSignal, obstacle: Obstacle): Promise<OnceAnswer> {
    return this.#onceOrders.acCycle(signal, obstacle);
  }

  /** Closes every device. */
  async close(): Promise<void> {
    await Promise.all(this.#levels.flat().map((driver) => driver.close()));
  }

  /**
   * The check of outlets that are off and may be switched on because of their enrolment. A BMC that they feed cannot
   * answer before that.
   */
  async #outletsToSwitchOn(signal: AbortSignal): Promise<IdentityCheck | undefined> {
    for (const level of this.#levels.filter(isOutletLevel)) {
      const check = this.#identities.known(level);
      if (check === undefined || !allowsOn(check)) continue;
      const { readings } = await this.#readLevel(level, signal);
      if (readings.some(({ state }) => state === "Off")) return check;
    }
    return undefined;
  }

  /**
   * Whether outlets may be switched on. An outlet that is not known to feed this host may be off because of another
   * host.
   */
  async #maySwitchOn(level: readonly PowerDriver[], isOnlyWay: boolean, signal: AbortSignal): Promise<boolean> {
    const check = await this.#identities.check(level, signal);
    if (allowsOn(check)) return true;
    if (isOnlyWay) throw new BmcError("Unsupported", `no order is sent: ${check.message}`);
    return false;
  }

  /** What the devices of one level report; no readings if the level is not accepted. */
  async #readLevel(level: readonly PowerDriver[], signal: AbortSignal): Promise<LevelReadings> {
    try {
      const readWhole = (bounded: AbortSignal): Promise<LevelReadings> =>
        readWholeLevel(level, this.#identities, bounded);
      const read = await this.#deadlines.call(level, signal, readWhole, STARTING_BMC_MS);
      if (read.failure !== undefined) this.#deadlines.noteFailure(level, read.failure);
      return read;
    } catch (error) {
      return failedLevel(level, levelFailure(error, signal));
    }
  }
}
