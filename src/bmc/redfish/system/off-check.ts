import { stringAt } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { Resource, Service } from "../session/service.ts";
import { combineWithChassis, parseChassis } from "./system.ts";
import type { System } from "./system.ts";
import type { OffObstacle, PowerReading, PowerState } from "../../interface/driver.ts";
import type { BmcErrorCode } from "../../interface/errors.ts";
import { BmcError } from "../../interface/errors.ts";
import { BMC_SETTLE_MS, RESTART_MS_MIN } from "../../gate/memory/possible-restarts.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { parseTimeMs } from "../../../runtime/time.ts";

/**
 * How much two reports of the same `LastResetTime` may differ. No host is powered on and off again within this time.
 */
const RESET_JITTER_MS = 1_000;
/** For how long a read of the Chassis is used again, so that the two readings of a proof share one. */
export const CHASSIS_VALID_MS = 1_000;

/** Redfish was published in August 2015. A BMC that reports an earlier start had not set its clock then. */
const CLOCK_SET_FROM_MS = 1_438_387_200_000;

/** Failures that another attempt does not change, unlike those of a BMC that is unreachable or busy. */
const UNREADABLE: ReadonlySet<BmcErrorCode> = new Set(["PrivilegeTooLow", "BadResponse", "Unsupported", "Refused"]);
const CHASSIS_ADVICE =
  "name the Chassis with the power of the host in devices[].redfish.powerChassis, or none ([]), give the account permission to read it, or update the firmware";

/** How long a BMC has been up. If the date of its start is not usable: how long this driver has known that start. */
interface BmcAge {
  ms: number;
  isDated: boolean;
}

/**
 * Checks each Off that a System shows. After a restart OpenBMC can show a running host as Off (openbmc issue 2224),
 * caches show an old state, and a host can be powered on between two readings. An Off in doubt is reported as
 * `Unknown`.
 */
export class OffCheck {
  readonly #service: Service;
  readonly #clock: Clock;
  /** The Chassis whose power counts, if the configuration names them. */
  readonly #named: readonly string[] | undefined;
  /** The number of interruptions of the service when the BMC last showed that it knows the state of its host. */
  #soundAt: number | undefined;
  #readAtMs = -Infinity;
  /** `LastResetTime` of the last Off, if no other state was read since. */
  #lastReset: { value: string | undefined } | undefined;
  /** The last read of the Chassis, if it did not contradict an Off. */
  #chassisOff: { atMs: number; interruptions: number; agrees: boolean } | undefined;
  /**
   * Chassis that do not have the power of this System, each with the time until which it is not read again. A Chassis
   * that names no System may be incomplete while the BMC starts, so it is read again later. HGX has many that never
   * name one.
   */
  readonly #ignoredChassis = new Map<string, { untilMs: number; interruptions: number }>();
  /** When the BMC started, on the monotonic clock, if it has reported that since its last possible restart. */
  #upSinceMs: number | undefined;
  /** When each Manager first showed its present start time. */
  readonly #starts = new Map<string, { startedMs: number; atMs: number; interruptions: number }>();

  constructor(service: Service, clock: Clock, powerChassis: readonly string[] | undefined) {
    this.#service = service;
    this.#clock = clock;
    this.#named = powerChassis;
  }

  /** Called when an order is sent: earlier reads prove nothing about the time after it. */
  forget(): void {
    this.#lastReset = undefined;
    this.#chassisOff = undefined;
  }

  /** Records the state of every reading of the System, for whatever purpose it was read. */
  noteState(state: PowerState): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#readAtMs > RESTART_MS_MIN) this.#soundAt = undefined;
    this.#readAtMs = nowMs;
    if (state !== "Off") this.forget();
    // After a restart a BMC may show Off before it has read the state. A BMC that shows On has read it.
    if (state === "On") this.#soundAt = this.#service.interruptions;
  }

  /** The power of a System that shows Off: `Off`, or `Unknown` if the Off is in doubt. */
  async assess(system: System, signal: AbortSignal): Promise<PowerReading> {
    const doubt =
      (system.isStale ? "from a cache" : undefined) ??
      this.#resetDoubt(system) ??
      (await this.#restartDoubt(system, signal));
    if (doubt !== undefined) return { state: "Unknown", raw: `Off, but ${doubt}` };
    const reading = await this.#combineWithChassis(system, signal);
    if (reading.state !== "Off" || this.#upSinceMs === undefined) return reading;
    return { ...reading, bmcUpMs: Math.round(this.#clock.monotonicMs() - this.#upSinceMs) };
  }

  #resetDoubt({ lastReset }: System): string | undefined {
    const before = this.#lastReset;
    this.#lastReset = { value: lastReset };
    return before === undefined || isSameReset(before.value, lastReset)
      ? undefined
      : "it was reset since the last reading";
  }

  /** Checks for a restart of the BMC, unless this driver has read the host On since the last possible restart. */
  async #restartDoubt({ managers }: System, signal: AbortSignal): Promise<string | undefined> {
    const { interruptions, mayHaveRestarted } = this.#service;
    if (this.#soundAt === interruptions) return undefined;
    const ages: BmcAge[] = [];
    for (const path of this.#managersOf(managers)) {
      const age = this.#ageOf(path, await this.#findReadable(path, signal));
      if (age !== undefined) ages.push(age);
    }
    const young = ages.find(({ ms, isDated }) => isDated && Math.abs(ms) < BMC_SETTLE_MS);
    if (young !== undefined) return `its BMC started ${Math.round(young.ms / 1_000)} s ago`;
    const isDated = ages.length > 0 && ages.every((age) => age.isDated);
    if (!isDated && mayHaveRestarted) return "its BMC was unreachable or has lost our session, and may have restarted";
    this.#soundAt = interruptions;
    const agesMs = ages.map(({ ms }) => ms);
    this.#upSinceMs = agesMs.length === 0 ? undefined : this.#clock.monotonicMs() - Math.min(...agesMs);
    return undefined;
  }

  async #combineWithChassis(system: System, signal: AbortSignal): Promise<PowerReading> {
    const { interruptions } = this.#service;
    const atMs = this.#clock.monotonicMs();
    const last = this.#chassisOff;
    if (last?.interruptions === interruptions && atMs - last.atMs < CHASSIS_VALID_MS) {
      return last.agrees ? { ...system.power, agrees: true } : system.power;
    }
    const readings: PowerReading[] = [];
    for (const path of this.#chassisOf(system)) {
      const power = await this.#chassisPower(path, system, signal);
      if (power !== undefined) readings.push(power);
    }
    const reading = combineWithChassis(system.power, readings);
    if (reading.state !== "Off") return reading;
    const agrees = readings.length > 0;
    this.#chassisOff = { atMs, interruptions, agrees };
    return agrees ? { ...reading, agrees } : reading;
  }

  /**
   * How long the BMC has been up. If there are several Managers, the longest time. Undefined if the date of a start is
   * not usable.
   */
  async readUpMs({ managers }: System, signal: AbortSignal): Promise<number | undefined> {
    let longest: number | undefined;
    for (const path of this.#managersOf(managers)) {
      const age = this.#ageOf(path, await this.#findReadable(path, signal));
      if (age?.isDated !== true) return undefined;
      longest = Math.max(longest ?? age.ms, age.ms);
    }
    return longest;
  }

  /** Finds what would prevent a proof of Off for this System, whatever its power is now. */
  async findObstacle(system: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    return (await this.#chassisObstacle(system, signal)) ?? (await this.#managerObstacle(system, signal));
  }

  async #managerObstacle({ managers }: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    for (const path of this.#managersOf(managers)) {
      try {
        await this.#findReadable(path, signal);
      } catch (error) {
        if (!(error instanceof BmcError) || !UNREADABLE.has(error.code)) throw error;
        const what = `manager ${path} cannot be read, so an Off may come from a BMC that has just restarted`;
        return {
          reason: "ManagerUnreadable",
          message: `${what} (${error.message}): restart the BMC, or update its firmware`,
        };
      }
    }
    return undefined;
  }

  async #chassisObstacle(system: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    for (const path of this.#chassisOf(system)) {
      try {
        const power = await this.#chassisPower(path, system, signal);
        if (system.power.state !== "Off" || power === undefined || power.state === "Off") continue;
        const what = `${path} shows ${power.raw} although the System shows Off, so this Off would never count as proof`;
        return { reason: "ChassisDisagrees", message: `${what}: ${CHASSIS_ADVICE}` };
      } catch (error) {
        if (!(error instanceof BmcError) || !UNREADABLE.has(error.code)) throw error;
        const what = `the power of chassis ${path} cannot be read, so an Off of the System would not count as proof`;
        return { reason: "ChassisUnreadable", message: `${what} (${error.message}): ${CHASSIS_ADVICE}` };
      }
    }
    return undefined;
  }

  #managersOf(links: readonly string[]): readonly string[] {
    return links.map((link) => pathOnOrigin(this.#service.origin, link, "the System's link to its Manager"));
  }

  /**
   * The paths of the Chassis whose power may count: those in the configuration, otherwise those to which the System
   * links.
   */
  #chassisOf(system: System): readonly string[] {
    const what = "the System's link to its Chassis";
    const paths = this.#named ?? system.chassis.map((link) => pathOnOrigin(this.#service.origin, link, what));
    const { interruptions } = this.#service;
    const nowMs = this.#clock.monotonicMs();
    return paths.filter((path) => {
      const known = this.#ignoredChassis.get(path);
      return known === undefined || nowMs >= known.untilMs || interruptions !== known.interruptions;
    });
  }

  /**
   * The power of a Chassis; undefined if it does not count, or shows none. A Chassis in the configuration always
   * counts.
   */
  async #chassisPower(path: string, system: System, signal: AbortSignal): Promise<PowerReading | undefined> {
    const resource = await this.#service.find(path, signal);
    if (resource === undefined) return this.#named && { state: "Unknown", raw: "(not found)" };
    const chassis = parseChassis(this.#service.origin, resource.body, system.paths);
    if (this.#named !== undefined) return chassis.power ?? { state: "Unknown", raw: "(no PowerState)" };
    if (chassis.whose === "System") return chassis.power;
    const untilMs = chassis.whose === "Other" ? Infinity : this.#clock.monotonicMs() + BMC_SETTLE_MS;
    this.#ignoredChassis.set(path, { untilMs, interruptions: this.#service.interruptions });
    return undefined;
  }

  /**
   * How long the BMC has been up by the `LastResetTime` of its Manager, if it reports that: by its own clock, or by the
   * agent's if the clock of the BMC does not advance. A BMC without a battery starts in 1970, and may stamp its start
   * before its clock is set.
   */
  #ageOf(path: string, manager: Resource | undefined): BmcAge | undefined {
    if (manager === undefined) return undefined;
    const startedMs = parseTimeMs(stringAt(manager.body, "LastResetTime"));
    const nowMs = parseTimeMs(stringAt(manager.body, "DateTime") ?? manager.date);
    if (startedMs === undefined || nowMs === undefined) return undefined;
    const atMs = this.#clock.monotonicMs();
    const { interruptions } = this.#service;
    const known = this.#starts.get(path);
    // A BMC without a battery may show the same start time after each restart. Without an interruption it has not
    // restarted.
    const isSame = known?.startedMs === startedMs && known.interruptions === interruptions;
    const start = isSame ? known : { startedMs, atMs, interruptions };
    this.#starts.set(path, start);
    // The clock was set since the start, at an unknown time: the BMC may have started a moment ago.
    if (startedMs < CLOCK_SET_FROM_MS && nowMs >= CLOCK_SET_FROM_MS) return { ms: atMs - start.atMs, isDated: false };
    const ageMs = nowMs - startedMs;
    return { ms: Math.abs(ageMs) < BMC_SETTLE_MS ? Math.max(ageMs, atMs - start.atMs) : ageMs, isDated: true };
  }

  /** Reads a Manager. A Manager that the account has no permission to read is ignored. */
  async #findReadable(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    try {
      return await this.#service.find(path, signal);
    } catch (error) {
      if (error instanceof BmcError && error.code === "PrivilegeTooLow") return undefined;
      throw error;
    }
  }
}

/** Whether two times mean the same reset. Some BMCs compute the time at each reading, and it can differ by a second. */
function isSameReset(before: string | undefined, now: string | undefined): boolean {
  const beforeMs = parseTimeMs(before);
  const nowMs = parseTimeMs(now);
  if (beforeMs === undefined || nowMs === undefined) return before === now;
  return Math.abs(nowMs - beforeMs) <= RESET_JITTER_MS;
}
