import { stringAt } from "./json.ts";
import { pathOnOrigin } from "./reference.ts";
import type { Resource, Service } from "./service.ts";
import { besideChassis, parseChassis } from "./system.ts";
import type { System } from "./system.ts";
import type { OffObstacle, PowerReading, PowerState } from "../driver.ts";
import type { BmcErrorCode } from "../errors.ts";
import { BmcError } from "../errors.ts";
import { BMC_SETTLE_MS, RESTART_MS_MIN } from "../silences.ts";
import type { Clock } from "../../runtime/clock.ts";
import { parseTimeMs } from "../../runtime/time.ts";

/** No host goes on and off again within this time. */
const RESET_JITTER_MS = 1_000;
/** One read of the Chassis serves the readings of this time after it: the two that prove a host off share one. */
export const CHASSIS_LOOK_MS = 1_000;

/** Answers that another try does not change, unlike those of a BMC that is away or busy. */
const UNREADABLE: ReadonlySet<BmcErrorCode> = new Set(["PrivilegeTooLow", "BadResponse", "Unsupported", "Refused"]);
const CHASSIS_ADVICE =
  "name the Chassis whose power is the host's in devices[].redfish.powerChassis, or none ([]), give the account the right to read it, or update the firmware";

/**
 * Weighs the Offs that a System shows. After a restart OpenBMC can show a running host as Off (openbmc issue 2224), caches
 * show what was, and a host can come back between two readings: an Off in doubt is reported as `Unknown`.
 */
export class OffCheck {
  readonly #service: Service;
  readonly #clock: Clock;
  /** The chassis whose power counts, where a person has named them. */
  readonly #named: readonly string[] | undefined;
  /** The service's interruptions as of the last reading that shows a BMC in its right mind. */
  #soundAt: number | undefined;
  #readAtMs = -Infinity;
  /** `LastResetTime` of the last Off, while there was no other reading since. */
  #lastReset: { value: string | undefined } | undefined;
  /** The last read of the Chassis that did not contradict an Off. */
  #look: { atMs: number; interruptions: number } | undefined;
  /**
   * Chassis whose power is not this System's, each with the time until which it is not asked again. One that contains nothing may
   * not be filled in yet, of a BMC that starts; HGX has many that never are.
   */
  readonly #notOurs = new Map<string, { untilMs: number; interruptions: number }>();
  /** Since when each Manager has shown the start that it shows. */
  readonly #starts = new Map<string, { startedMs: number; atMs: number; interruptions: number }>();

  constructor(service: Service, clock: Clock, powerChassis: readonly string[] | undefined) {
    this.#service = service;
    this.#clock = clock;
    this.#named = powerChassis;
  }

  /** An order was sent: what was read before it proves nothing about the time after it. */
  forget(): void {
    this.#lastReset = undefined;
    this.#look = undefined;
  }

  /** Records every reading of the System, whatever it was made for. */
  noteState(state: PowerState): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#readAtMs > RESTART_MS_MIN) this.#soundAt = undefined;
    this.#readAtMs = nowMs;
    if (state !== "Off") this.forget();
    // A BMC that has lost its mind shows Off: one that shows On has looked.
    if (state === "On") this.#soundAt = this.#service.interruptions;
  }

  /** What the power of a System that shows Off is. */
  async weigh(system: System, signal: AbortSignal): Promise<PowerReading> {
    const doubt =
      (system.isStale ? "from a cache" : undefined) ??
      this.#resetDoubt(system) ??
      (await this.#restartDoubt(system, signal));
    return doubt === undefined ? this.#besideChassis(system, signal) : { state: "Unknown", raw: `Off, but ${doubt}` };
  }

  #resetDoubt({ lastReset }: System): string | undefined {
    const before = this.#lastReset;
    this.#lastReset = { value: lastReset };
    return before === undefined || isSameReset(before.value, lastReset)
      ? undefined
      : "it was reset since the last reading";
  }

  /** Asked where this driver has not seen the host On since the last thing that may have been a restart of the BMC. */
  async #restartDoubt({ managers }: System, signal: AbortSignal): Promise<string | undefined> {
    const { interruptions, mayHaveRestarted } = this.#service;
    if (this.#soundAt === interruptions) return undefined;
    const agesMs: number[] = [];
    for (const path of this.#managersOf(managers)) {
      const ageMs = this.#ageOf(path, await this.#findReadable(path, signal));
      if (ageMs !== undefined) agesMs.push(ageMs);
    }
    const youngMs = agesMs.find((ageMs) => Math.abs(ageMs) < BMC_SETTLE_MS);
    if (youngMs !== undefined) return `its BMC started ${Math.round(youngMs / 1_000)} s ago`;
    if (agesMs.length === 0 && mayHaveRestarted)
      return "its BMC was out of reach or has lost our session, and may have restarted";
    this.#soundAt = interruptions;
    return undefined;
  }

  async #besideChassis(system: System, signal: AbortSignal): Promise<PowerReading> {
    const { interruptions } = this.#service;
    const atMs = this.#clock.monotonicMs();
    const look = this.#look;
    if (look?.interruptions === interruptions && atMs - look.atMs < CHASSIS_LOOK_MS) return system.power;
    const readings: PowerReading[] = [];
    for (const path of this.#chassisOf(system)) {
      const power = await this.#chassisPower(path, system, signal);
      if (power !== undefined) readings.push(power);
    }
    const reading = besideChassis(system.power, readings);
    if (reading.state === "Off") this.#look = { atMs, interruptions };
    return reading;
  }

  /** What would keep an Off of this System from being proven, whatever its power is now. */
  async findObstacle(system: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    return (await this.#chassisObstacle(system, signal)) ?? (await this.#managerObstacle(system, signal));
  }

  async #managerObstacle({ managers }: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    for (const path of this.#managersOf(managers)) {
      try {
        await this.#findReadable(path, signal);
      } catch (error) {
        if (!(error instanceof BmcError) || !UNREADABLE.has(error.code)) throw error;
        const what = `manager ${path} cannot be read, so nothing says whether an Off is of a BMC that has just restarted`;
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
        const what = `${path} shows ${power.raw} although the System shows Off, which would never be believed`;
        return { reason: "ChassisDisagrees", message: `${what}: ${CHASSIS_ADVICE}` };
      } catch (error) {
        if (!(error instanceof BmcError) || !UNREADABLE.has(error.code)) throw error;
        const what = `the power of chassis ${path} cannot be read, so an Off of the System would not be believed`;
        return { reason: "ChassisUnreadable", message: `${what} (${error.message}): ${CHASSIS_ADVICE}` };
      }
    }
    return undefined;
  }

  #managersOf(links: readonly string[]): readonly string[] {
    return links.map((link) => pathOnOrigin(this.#service.origin, link, "the System's link to its Manager"));
  }

  /** The chassis whose power may count, as paths: those that a person has named, else those that the System links to. */
  #chassisOf(system: System): readonly string[] {
    const what = "the System's link to its Chassis";
    const paths = this.#named ?? system.chassis.map((link) => pathOnOrigin(this.#service.origin, link, what));
    const { interruptions } = this.#service;
    const nowMs = this.#clock.monotonicMs();
    return paths.filter((path) => {
      const known = this.#notOurs.get(path);
      return known === undefined || nowMs >= known.untilMs || interruptions !== known.interruptions;
    });
  }

  /** The power of a chassis; undefined where it does not count, or shows none. */
  async #chassisPower(path: string, system: System, signal: AbortSignal): Promise<PowerReading | undefined> {
    const resource = await this.#service.find(path, signal);
    if (resource === undefined) return this.#named && { state: "Unknown", raw: "(not there)" };
    const chassis = parseChassis(this.#service.origin, resource.body, system.paths);
    if (this.#named !== undefined) return chassis.power ?? { state: "Unknown", raw: "(no PowerState)" };
    if (chassis.whose === "System") return chassis.power;
    const untilMs = chassis.whose === "Other" ? Infinity : this.#clock.monotonicMs() + BMC_SETTLE_MS;
    this.#notOurs.set(path, { untilMs, interruptions: this.#service.interruptions });
    return undefined;
  }

  /** How long the BMC has been up, if it says so (`LastResetTime` of the Manager): by its own clock, or by ours if that stands still. */
  #ageOf(path: string, manager: Resource | undefined): number | undefined {
    if (manager === undefined) return undefined;
    const startedMs = parseTimeMs(stringAt(manager.body, "LastResetTime"));
    const nowMs = parseTimeMs(stringAt(manager.body, "DateTime") ?? manager.date);
    if (startedMs === undefined || nowMs === undefined) return undefined;
    const atMs = this.#clock.monotonicMs();
    const { interruptions } = this.#service;
    const known = this.#starts.get(path);
    // A BMC without a battery may show the same start after each restart: one that nothing has interrupted has not restarted.
    const isSame = known?.startedMs === startedMs && known.interruptions === interruptions;
    const seen = isSame ? known : { startedMs, atMs, interruptions };
    this.#starts.set(path, seen);
    const ageMs = nowMs - startedMs;
    return Math.abs(ageMs) < BMC_SETTLE_MS ? Math.max(ageMs, atMs - seen.atMs) : ageMs;
  }

  /** An account may be kept from the managers, which then tell it nothing. */
  async #findReadable(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    try {
      return await this.#service.find(path, signal);
    } catch (error) {
      if (error instanceof BmcError && error.code === "PrivilegeTooLow") return undefined;
      throw error;
    }
  }
}

/** Some compute the time from that since the reset, at each reading, and miss by a second. */
function isSameReset(before: string | undefined, now: string | undefined): boolean {
  const beforeMs = parseTimeMs(before);
  const nowMs = parseTimeMs(now);
  if (beforeMs === undefined || nowMs === undefined) return before === now;
  return Math.abs(nowMs - beforeMs) <= RESET_JITTER_MS;
}
