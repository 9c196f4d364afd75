import type { Clock, Timer } from "../../src/runtime/clock.ts";
import type { SimulatedPower, OrderOutcome, PowerOrderType } from "./events.ts";
import type { LoggedEvent, LoggedKind } from "./event-log.ts";
import type { BootSetting, Host } from "./host.ts";
import { HEALTHY_SENSORS } from "./sensors.ts";
import type { SimulatedSensor } from "./sensors.ts";

/** Who a BMC says its host is. */
export interface BmcIdentity {
  systemUUID: string;
  serialNumber: string;
  manufacturer: string;
  model: string;
}

/** What a BMC may lie about itself. */
export interface IdentityLie {
  systemUUID?: string | undefined;
  serialNumber?: string | undefined;
}

/**
 * How a BMC answers the network. up: it does. refused: connections are reset at once. silent: they are taken, and no
 * byte ever comes back.
 */
export type Reachability = "up" | "refused" | "silent";

/** From the order of an AC cycle until the power goes, until it is back, and until the BMC answers again. */
const AC_CYCLE_AFTER_MS = 3_000;
const AC_CYCLE_DARK_MS = 10_000;
const AC_CYCLE_BOOT_MS = 40_000;

/** Entries that a log holds; the oldest are dropped. */
const LOG_MAX = 512;

/** A simulated BMC has been up for a month when the simulation starts. */
const UP_BEFORE_START_MS = 30 * 24 * 60 * 60_000;

/**
 * What a host's BMC says and does, apart from any protocol: the fronts (Redfish, IPMI) all speak through it. Left alone
 * it is honest; its faults are switched here, so that every front lies in the same way.
 */
export class Bmc {
  readonly #clock: Clock;
  readonly #onRestart: () => void;
  readonly #lateOrders = new Set<Timer>();
  #host: Host;
  #reachability: Reachability = "up";
  #restartingUntilMs = 0;
  #lastRestartMs: number;
  #falsePower: { read: () => SimulatedPower; untilMs: number } | undefined;
  #falseIdentity: IdentityLie | undefined;
  /** Until when it takes its host for one that is off, and has not read its power since it started. */
  #unreadUntilMs = -Infinity;
  #log: LoggedEvent[] = [];
  /** By how much its clock is ahead. */
  clockAheadMs = 0;
  /** What its sensors show. */
  sensors: readonly SimulatedSensor[] = HEALTHY_SENSORS;
  /** When AC cycles were ordered, on the wall clock. */
  readonly acCycles: number[] = [];
  /** Whether its log is never answered: everything else is. */
  isLogHung = false;
  /** Whether it has a supply besides that of its host. */
  hasOwnSupply = false;
  /** How long an order waits, already acknowledged, before the host receives it. */
  orderDelayMs = 0;

  constructor(deps: { clock: Clock; onRestart: () => void }, host: Host) {
    this.#clock = deps.clock;
    this.#onRestart = deps.onRestart;
    this.#host = host;
    this.#lastRestartMs = deps.clock.nowMs() - UP_BEFORE_START_MS;
  }

  /** The host that this BMC truly controls. */
  get host(): Host {
    return this.#host;
  }

  get reachability(): Reachability {
    if ((!this.#host.mains && !this.hasOwnSupply) || this.#clock.monotonicMs() < this.#restartingUntilMs)
      return "silent";
    return this.#reachability;
  }

  setReachability(reachability: Reachability): void {
    this.#reachability = reachability;
  }

  /** The power state as reported: the truth, unless it lies. */
  readPower(): SimulatedPower {
    if (this.#clock.monotonicMs() < this.#unreadUntilMs) return "Off";
    const lie = this.#falsePower;
    if (lie !== undefined && this.#clock.monotonicMs() < lie.untilMs) return lie.read();
    return this.#host.power;
  }

  /** The identity as reported: the truth, unless it lies. */
  identity(): BmcIdentity {
    const { systemUUID, serialNumber, manufacturer, model } = this.#host.spec;
    return {
      systemUUID: this.#falseIdentity?.systemUUID ?? systemUUID,
      serialNumber: this.#falseIdentity?.serialNumber ?? serialNumber,
      manufacturer,
      model,
    };
  }

  /** Passes an order on to the host. A late one is acknowledged as started, whatever follows. */
  order(type: PowerOrderType): OrderOutcome {
    // By what it believes there is nothing to be done.
    if (type === "ForceOff" && this.#clock.monotonicMs() < this.#unreadUntilMs) return "NoChange";
    if (type === "ForceOff") this.logEvent("poweredOff");
    if (this.orderDelayMs === 0) return this.#host.order(type);
    const host = this.#host;
    const timer = this.#clock.schedule(this.orderDelayMs, () => {
      this.#lateOrders.delete(timer);
      host.order(type);
    });
    this.#lateOrders.add(timer);
    return "Started";
  }

  /** Its event log, the oldest entry first. */
  get log(): readonly LoggedEvent[] {
    return this.#log;
  }

  /** The time by its own clock, in milliseconds since the epoch. */
  nowMs(): number {
    return this.#clock.nowMs() + this.clockAheadMs;
  }

  /** Writes an entry into its log. @param agoMs how long ago that happened. */
  logEvent(kind: LoggedKind, agoMs = 0): void {
    const id = (this.#log.at(-1)?.id ?? 0) + 1;
    this.#log = [...this.#log, { id, bmcTimeMs: this.nowMs() - agoMs, kind }].slice(-LOG_MAX);
  }

  /**
   * An AC cycle, some seconds after it was ordered: the host and its BMC lose their power, and get it back. The BMC
   * then starts, or never comes back.
   */
  acCycle(effect: "done" | "ignored" | "dead" = "done"): void {
    this.acCycles.push(this.#clock.nowMs());
    if (effect === "ignored") return;
    const host = this.#host;
    const after = (delayMs: number, step: () => void): void => {
      const timer = this.#clock.schedule(delayMs, () => {
        this.#lateOrders.delete(timer);
        step();
      });
      this.#lateOrders.add(timer);
    };
    after(AC_CYCLE_AFTER_MS, () => {
      host.cutMains();
      after(AC_CYCLE_DARK_MS, () => {
        host.restoreMains();
        if (effect === "dead") this.#reachability = "silent";
        else this.restart(AC_CYCLE_BOOT_MS);
      });
    });
  }

  get bootSetting(): BootSetting {
    return this.#host.bootSetting;
  }

  setBoot(setting: BootSetting): void {
    this.#host.setBoot(setting);
  }

  /** Lie: reports `power` for `forMs`, whatever is true. */
  pretendPower(power: SimulatedPower, forMs: number): void {
    this.#falsePower = { read: () => power, untilMs: this.#clock.monotonicMs() + forMs };
  }

  /** Lie: every other reading of the next `forMs`, beginning with the first, is Off, whatever is true. */
  flapPower(forMs: number): void {
    let saysOff = false;
    const read = (): SimulatedPower => {
      saysOff = !saysOff;
      return saysOff ? "Off" : this.#host.power;
    };
    this.#falsePower = { read, untilMs: this.#clock.monotonicMs() + forMs };
  }

  /** Lie: goes on reporting for `forMs` what is true now. */
  freezePower(forMs: number): void {
    this.pretendPower(this.readPower(), forMs);
  }

  /** Lie: reports these parts of an identity; undefined ends it. */
  pretendIdentity(identity: IdentityLie | undefined): void {
    this.#falseIdentity = identity;
  }

  /** Mistake of cabling or addressing: from now on this BMC's answers and orders are those of another host. */
  rewire(host: Host): void {
    this.#host = host;
  }

  /** Wall-clock time at which the BMC itself last started, milliseconds since the epoch. */
  get lastRestartMs(): number {
    return this.#lastRestartMs;
  }

  /**
   * Restarts the BMC itself: it is silent for `downMs`, and every session is gone. The host goes on. For `unreadMs`
   * after that it reports Off without having read the power, and carries no power-off out.
   */
  restart(downMs: number, unreadMs = 0): void {
    this.#restartingUntilMs = this.#clock.monotonicMs() + downMs;
    this.#unreadUntilMs = unreadMs > 0 ? this.#restartingUntilMs + unreadMs : -Infinity;
    this.#lastRestartMs = this.#clock.nowMs();
    this.#onRestart();
  }

  /** Drops the orders that have not reached the host yet: the simulation is over. */
  stop(): void {
    for (const timer of this.#lateOrders) timer.cancel();
    this.#lateOrders.clear();
  }
}
