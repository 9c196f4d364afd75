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

/**
 * The deadline for a call to a BMC whose last call failed, if the host also has outlets. Such a BMC has usually lost
 * its power together with the host, and a proof of Off lasts only 5 s.
 */
const SILENT_BMC_MS = 2_000;

/** The time between readings of outlets that were ordered off for an AC cycle. */
const OUTLET_POLL_MS = 1_000;

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
  /** Whether no device supported the boot override when it was to be set, so that there is none to clear. */
  #isOverrideUnset = false;
  readonly #outlets: OutletRules | undefined;
  /** Levels of BMCs whose last call failed. */
  readonly #silent = new Set<readonly PowerDriver[]>();
  /** Levels whose identity or power could not be read at some time since the host was opened. */
  readonly #failed = new Set<readonly PowerDriver[]>();

  /** @param outlets If it is absent, no outlet is used. */
  constructor(devices: readonly LevelledDevice[], judge: IdentityJudge, outlets?: OutletRules) {
    const byLevel = Map.groupBy(devices, (device) => device.level);
    this.#levels = [...byLevel]
      .toSorted(([a], [b]) => a - b)
      .map(([, members]) => members.map((member) => member.driver));
    this.#identities = new LevelIdentities(judge, outlets?.judge);
    this.#outlets = outlets;
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
        const check = await this.#inTime(level, signal, (bounded) => this.#identities.check(level, bounded));
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
        if (reading.state === "Off") return { ...reading, ...this.#otherFailures(level) };
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

  /**
   * Combines failures and adds `unknown` to the message: the failure of a dead BMC alone would hide that an outlet
   * stays on or is not used.
   */
  #withUnknown(failures: readonly BmcError[], unknown: string | undefined): BmcError {
    const failure = combineFailures(failures);
    if (unknown === undefined || this.#outlets === undefined) return failure;
    return new BmcError(failure.code, `${failure.message}; ${unknown}`, { cause: failure });
  }

  #otherFailures(level: readonly PowerDriver[]): Pick<PowerReading, "failed"> {
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
   * `On` if all devices of the first level with a result show On. If only outlets answer, `unsupplied` is set if
   * one of them is not on. If all are on, the power is `Unknown`, and `supplied` is set.
   */
  async readWhole(signal: AbortSignal): Promise<WholeReading> {
    const levels = await Promise.all(this.#levels.map((level) => this.#readLevel(level, signal)));
    const readings = levels.flatMap((level) => level.readings);
    const runs = levels.find(({ power }) => power !== "Unknown")?.power === "On";
    const lacking = readings.find(({ state }) => state === "Off") ?? readings.find(({ state }) => state === "Changing");
    if (lacking !== undefined) {
      const { state, raw, address, bmcUpMs } = lacking;
      const isCut = levels.some(({ whole }) => whole.bySupply === true);
      const isUnsupplied = this.#levels.every(
        (level, index) => isOutletLevel(level) || levels[index]?.readings.length === 0,
      );
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
   * Sets or clears the boot override on the first device that supports it. It is set only on an accepted host. If no
   * device has a boot override, there is nothing to clear: an undo that waited for it would leave the host off.
   */
  async setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    if (override === "None" && this.#hasNoBootOverride) return;
    const set = this.#onFirstSupporting(async (level, driver) => {
      if (override === "None") await this.#identities.refuseWrongHost(level, signal);
      else await this.#identities.requireVerified(level, signal);
      await driver.setBootOverride(override, signal);
    });
    try {
      await set;
      this.#isOverrideUnset = false;
    } catch (error) {
      if (override === "None") return this.#requireUnset(error);
      this.#isOverrideUnset = isUnsupported(error);
      throw error;
    }
  }

  /** Reads the boot override of the first device that supports it. */
  async readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    if (this.#hasNoBootOverride) return "None";
    try {
      return await this.#onFirstSupporting((_level, driver) => driver.readBootOverride(signal));
    } catch (error) {
      this.#requireUnset(error);
      return "None";
    }
  }

  /**
   * Ignores that no device supports a boot override if none supported it when it was to be set. Otherwise it may be
   * set, and the host would boot from the network: a BMC may leave the property out while it starts.
   */
  #requireUnset(error: unknown): void {
    if (!this.#isOverrideUnset || !isUnsupported(error)) throw error;
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
    return sendOnce(NMI, this.#sendersOf(NMI, this.#levels.flat()), obstacle, signal);
  }

  /**
   * Cuts the mains power of an accepted host by one device, once, and only if the host reads Off. A device that shares
   * its level with others is only one of several power supplies, so it is not used. If no device can, the outlets are
   * switched off.
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

  /** The sender that uses all outlets of the host together. */
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
    let unsupported: unknown;
    for (const level of this.#levels) {
      for (const driver of level) {
        try {
          return await work(level, driver);
        } catch (error) {
          if (!isUnsupported(error)) throw error;
          unsupported ??= error;
        }
      }
    }
    throw unsupported ?? combineFailures([]);
  }
}

function isUnsupported(error: unknown): boolean {
  return error instanceof BmcError && error.code === "Unsupported";
}

/** Switches off all outlets of a host, and reads them until all are off. */
async function cutSupply(level: readonly PowerDriver[], clock: Clock, signal: AbortSignal): Promise<void> {
  const { failure } = await callAll(level, (driver) => driver.forceOff(signal), signal);
  if (failure !== undefined) throw failure;
  for (;;) {
    const { values } = await readAll(level, signal);
    if (supplyPower(values, level.length).state === "Off") return;
    await sleep(clock, OUTLET_POLL_MS, signal);
  }
}

/**
 * An order that was stopped, because something began to hold it. It says nothing against the devices. No device got a
 * power-off, and some may have got a power-on.
 */
export class HeldError extends Error {
  override readonly name = "HeldError";
}

/** The order failed on its level, but some device accepted it. That device may be off, whatever the others show. */
export class PartlyTakenError extends BmcError {
  constructor(failure: BmcError) {
    super(failure.code, `only some devices took the order: ${failure.message}`, { cause: failure });
  }
}
