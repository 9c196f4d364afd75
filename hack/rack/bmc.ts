import type { Clock, Timer } from "../../src/runtime/clock.ts";
import type { SimulatedPower, OrderOutcome, PowerOrderType } from "./events.ts";
import type { LoggedEvent, LoggedKind } from "./event-log.ts";
import type { BootSetting, Host } from "./host.ts";
import { HEALTHY_SENSORS } from "./sensors.ts";
import type { SimulatedSensor } from "./sensors.ts";

/** The identity that a BMC reports for its host. */
export interface BmcIdentity {
  systemUUID: string;
  serialNumber: string;
  manufacturer: string;
  model: string;
}

/** The parts of an identity that a BMC can report wrongly. */
export interface IdentityLie {
  systemUUID?: string | undefined;
  serialNumber?: string | undefined;
}

/**
 * How a BMC reacts on the network. up: it answers. refused: it resets connections at once. silent: it accepts
 * connections and never answers.
 */
export type Reachability = "up" | "refused" | "silent";

/** Times of an AC cycle: from the order until the power is cut, until it is back, and until the BMC answers again. */
const AC_CYCLE_AFTER_MS = 3_000;
const AC_CYCLE_DARK_MS = 10_000;
const AC_CYCLE_BOOT_MS = 40_000;

/** The log keeps at most this many entries, and drops the oldest. */
const LOG_MAX = 512;

/** A simulated BMC has been up for a month when the simulation starts. */
const UP_BEFORE_START_MS = 30 * 24 * 60 * 60_000;

/**
 * The state and behavior of a host's BMC, independent of the protocol. The mocks of Redfish and IPMI use it. Without
 * faults it reports the truth. Faults are set here, so that every mock reports the same wrong state.
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
  /** Until this time after a restart, it reports Off because it has not read the power yet. */
  #unreadUntilMs = -Infinity;
  #log: LoggedEvent[] = [];
  /** By how many milliseconds its clock is ahead. */
  clockAheadMs = 0;
  /** Its sensors. */
  sensors: readonly SimulatedSensor[] = HEALTHY_SENSORS;
  /** Wall-clock times of ordered AC cycles. */
  readonly acCycles: number[] = [];
  /** Whether requests for its log get no answer, while all others do. */
  isLogHung = false;
  /** Whether it has its own power supply, separate from that of the host. */
  hasOwnSupply = false;
  /** Delay between the acknowledgement of an order and its arrival at the host. */
  orderDelayMs = 0;

  constructor(deps: { clock: Clock; onRestart: () => void }, host: Host) {
    this.#clock = deps.clock;
    this.#onRestart = deps.onRestart;
    this.#host = host;
    this.#lastRestartMs = deps.clock.nowMs() - UP_BEFORE_START_MS;
  }

  /** The host that this BMC really controls. */
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

  /** The reported power state: the real one, unless a fault is set. */
  readPower(): SimulatedPower {
    if (this.#clock.monotonicMs() < this.#unreadUntilMs) return "Off";
    const lie = this.#falsePower;
    if (lie !== undefined && this.#clock.monotonicMs() < lie.untilMs) return lie.read();
    return this.#host.power;
  }

  /** The reported identity: the real one, unless a fault is set. */
  identity(): BmcIdentity {
    const { systemUUID, serialNumber, manufacturer, model } = this.#host.spec;
    return {
      systemUUID: this.#falseIdentity?.systemUUID ?? systemUUID,
      serialNumber: this.#falseIdentity?.serialNumber ?? serialNumber,
      manufacturer,
      model,
    };
  }

  /** Passes an order on to the host. A delayed order is acknowledged as started, whatever happens later. */
  order(type: PowerOrderType): OrderOutcome {
    // It reports Off, so it does nothing.
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

  /** The time of its own clock, in milliseconds since the epoch. */
  nowMs(): number {
    return this.#clock.nowMs() + this.clockAheadMs;
  }

  /** Writes an entry into its log. @param agoMs how long ago that happened. */
  logEvent(kind: LoggedKind, agoMs = 0): void {
    const id = (this.#log.at(-1)?.id ?? 0) + 1;
    this.#log = [...this.#log, { id, bmcTimeMs: this.nowMs() - agoMs, kind }].slice(-LOG_MAX);
  }

  /**
   * Starts an AC cycle after some seconds: the host and its BMC lose power and get it back. Then the BMC starts, or
   * stays dead.
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

  /** Fault: reports `power` for `forMs`, whatever the real state is. */
  pretendPower(power: SimulatedPower, forMs: number): void {
    this.#falsePower = { read: () => power, untilMs: this.#clock.monotonicMs() + forMs };
  }

  /** Fault: for `forMs`, every other reading is Off, beginning with the first, whatever the real state is. */
  flapPower(forMs: number): void {
    let saysOff = false;
    const read = (): SimulatedPower => {
      saysOff = !saysOff;
      return saysOff ? "Off" : this.#host.power;
    };
    this.#falsePower = { read, untilMs: this.#clock.monotonicMs() + forMs };
  }

  /** Fault: keeps reporting the present state for `forMs`. */
  freezePower(forMs: number): void {
    this.pretendPower(this.readPower(), forMs);
  }

  /** Fault: reports these parts of an identity; undefined ends the fault. */
  pretendIdentity(identity: IdentityLie | undefined): void {
    this.#falseIdentity = identity;
  }

  /** A mistake in cabling or addressing: from now on, this BMC reports and controls another host. */
  rewire(host: Host): void {
    this.#host = host;
  }

  /** Wall-clock time at which the BMC itself last started, milliseconds since the epoch. */
  get lastRestartMs(): number {
    return this.#lastRestartMs;
  }

  /**
   * Restarts the BMC itself. It does not answer for `downMs`, and all sessions are gone. The host keeps running. For
   * `unreadMs` after that, the BMC reports Off without having read the power, and executes no power-off.
   */
  restart(downMs: number, unreadMs = 0): void {
    this.#restartingUntilMs = this.#clock.monotonicMs() + downMs;
    this.#unreadUntilMs = unreadMs > 0 ? this.#restartingUntilMs + unreadMs : -Infinity;
    this.#lastRestartMs = this.#clock.nowMs();
    this.#onRestart();
  }

  /** Ends the simulation: drops the orders that have not reached the host yet. */
  stop(): void {
    for (const timer of this.#lateOrders) timer.cancel();
    this.#lateOrders.clear();
  }
}
