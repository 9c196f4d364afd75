import type { Rack } from "../rack/rack.ts";
import type { Clock, Timer } from "../../src/runtime/clock.ts";

/** What an outlet feeds, and its faults. */
export interface OutletSpec {
  /** The index in the table of the vendor. A test changes it when it changes a chain. */
  index: string;
  /** The unit of a chain, 1 by default, and the number of the outlet on it, by default the end of its index. */
  unit?: number;
  number?: number;
  label: string;
  /** A host of the rack, or nothing. */
  host?: string;
  isMetered: boolean;
}

/** The faults of an outlet. */
export interface OutletFaults {
  /** The relay is stuck: the state follows the orders, the power does not. */
  isWelded: boolean;
  /** Orders go to the outlet with this index. */
  switches?: string;
  /** The delay of an order. Until then the PDU reports it as pending. */
  delayMs: number;
  /** The reported state never changes again. */
  isFrozen: boolean;
  /** The meter is no longer in the table. */
  hasLostMeter: boolean;
  /** The meter at its index belongs to the outlet with this number, which draws no power. */
  meterOf?: number;
}

const IDLE_W = 180;

/** One outlet: its relay, its reported state, and its load. */
export class Outlet {
  readonly spec: OutletSpec;
  readonly faults: OutletFaults = { isWelded: false, delayMs: 0, isFrozen: false, hasLostMeter: false };
  readonly #strip: OutletStrip;
  #isOn = true;
  #shownOn = true;
  #pending: { wanted: boolean; timer: Timer } | undefined;

  constructor(strip: OutletStrip, spec: OutletSpec) {
    this.#strip = strip;
    this.spec = spec;
  }

  /** The reported state. */
  get state(): "on" | "off" | "pendingOn" | "pendingOff" {
    if (this.#pending !== undefined) return this.#pending.wanted ? "pendingOn" : "pendingOff";
    return this.#shownOn ? "on" : "off";
  }

  /** Whether the contacts are really closed. */
  get delivers(): boolean {
    return this.#isOn || this.faults.isWelded;
  }

  /** The value of the meter; undefined if there is none. */
  get watts(): number | undefined {
    if (!this.spec.isMetered || this.faults.hasLostMeter) return undefined;
    return this.delivers && this.#strip.draws(this.spec.host) ? IDLE_W : 0;
  }

  order(wanted: boolean): void {
    const target = this.#strip.find(this.faults.switches ?? this.spec.index);
    const { delayMs } = this.faults;
    this.#pending?.timer.cancel();
    this.#pending = undefined;
    const switchNow = (): void => {
      this.#pending = undefined;
      if (!this.faults.isFrozen) this.#shownOn = wanted;
      target?.switchRelay(wanted);
      this.#strip.settle();
    };
    if (delayMs === 0) switchNow();
    else this.#pending = { wanted, timer: this.#strip.clock.schedule(delayMs, switchNow) };
  }

  switchRelay(isOn: boolean): void {
    this.#isOn = isOn;
    if (this.faults.switches === undefined && !this.faults.isFrozen) this.#shownOn = isOn;
  }

  stop(): void {
    this.#pending?.timer.cancel();
  }
}

/** The outlets of one PDU. A host has mains power while any outlet of any PDU delivers to it. */
export class OutletStrip {
  readonly clock: Clock;
  readonly outlets: readonly Outlet[];
  readonly #rack: Rack;
  readonly #feeds: Map<string, Set<Outlet>>;

  /** @param feeds shared by the PDUs of one rack: the outlets that feed each host. */
  constructor(clock: Clock, rack: Rack, specs: readonly OutletSpec[], feeds: Map<string, Set<Outlet>>) {
    this.clock = clock;
    this.#rack = rack;
    this.#feeds = feeds;
    this.outlets = specs.map((spec) => new Outlet(this, spec));
    for (const outlet of this.outlets) {
      const { host } = outlet.spec;
      if (host !== undefined) feeds.set(host, (feeds.get(host) ?? new Set()).add(outlet));
    }
  }

  find(index: string): Outlet | undefined {
    return this.outlets.find(({ spec }) => spec.index === index);
  }

  /** A host with mains power draws power even while it is off, because its BMC runs. */
  draws(host: string | undefined): boolean {
    return host !== undefined && this.#rack.host(host).mains;
  }

  /** Restores or cuts the mains power of hosts by the state of the outlets. */
  settle(): void {
    for (const [name, outlets] of this.#feeds) {
      const host = this.#rack.host(name);
      const hasMains = [...outlets].some((outlet) => outlet.delivers);
      if (hasMains !== host.mains) {
        if (hasMains) host.restoreMains();
        else host.cutMains();
      }
    }
  }

  stop(): void {
    for (const outlet of this.outlets) outlet.stop();
  }
}
