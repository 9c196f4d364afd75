import type { Rack } from "../../hack/rack/rack.ts";
import type { DeviceDeps, OutletIdentity, PowerDriver } from "../../src/bmc/interface/driver.ts";
import { BmcError, orderNotAllowed } from "../../src/bmc/interface/errors.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { sleep } from "../../src/runtime/clock.ts";

/** What a call to a simulated PDU takes. */
const CALL_MS = 20;
/** How long a BMC does not answer after its power is back. */
const BMC_BOOT_MS = 20_000;
const NEVER = new AbortController().signal;

/** One outlet, and what is truly plugged into it. */
export interface Outlet extends OutletIdentity {
  isOn: boolean;
  /** The hosts that it feeds: each is off, with its BMC, if none of its outlets is on. */
  feeds: readonly string[];
  /** Its relay never opens again. */
  isWelded?: boolean;
  /** Called when its relay has moved: what else it feeds. */
  onSwitch?: (isOn: boolean) => void;
  /** Its PDU does not answer. */
  isSilent?: boolean;
}

/** The PDUs of a rack at the driver interface. A host that no outlet feeds has its own supply. */
export class Pdus {
  /** Orders that reached an outlet, as `address Off`. */
  readonly orders: string[] = [];
  readonly #outlets = new Map<string, Outlet>();
  readonly #rack: Rack;
  readonly #clock: Clock;

  constructor(rack: Rack, clock: Clock) {
    this.#rack = rack;
    this.#clock = clock;
  }

  /** Plugs the supplies of hosts into an outlet. */
  plug(address: string, feeds: readonly string[], identity: Partial<OutletIdentity> = {}): Outlet {
    const outlet = { pdu: "SN-PDU-1", outlet: address.slice(address.lastIndexOf("/") + 1), ...identity };
    const plugged: Outlet = { ...outlet, isOn: true, feeds };
    this.#outlets.set(address, plugged);
    return plugged;
  }

  outlet(address: string): Outlet {
    const outlet = this.#outlets.get(address);
    if (outlet === undefined) throw new Error(`no outlet ${address}`);
    return outlet;
  }

  switch(address: string, isOn: boolean): void {
    const outlet = this.outlet(address);
    if (isOn || outlet.isWelded !== true) outlet.isOn = isOn;
    outlet.onSwitch?.(outlet.isOn);
    for (const host of outlet.feeds) {
      const supplied = [...this.#outlets.values()].some(({ feeds, isOn }) => isOn && feeds.includes(host));
      if (supplied) this.#restore(host);
      else this.#rack.host(host).cutMains();
    }
  }

  #restore(name: string): void {
    const host = this.#rack.host(name);
    if (host.mains) return;
    host.restoreMains();
    const bmc = this.#rack.bmc(name);
    if (!bmc.hasOwnSupply) bmc.restart(BMC_BOOT_MS);
  }

  open(address: string, { isOrderAllowed = () => true }: Pick<DeviceDeps, "isOrderAllowed">, onClose: () => void) {
    const call = async <T>(signal: AbortSignal, work: (outlet: Outlet) => T): Promise<T> => {
      await sleep(this.#clock, CALL_MS, signal);
      const outlet = this.outlet(address);
      if (outlet.isSilent === true) throw new BmcError("Unreachable", `${address}: no answer`);
      return work(outlet);
    };
    const order = async (isOn: boolean): Promise<void> => {
      if (!isOrderAllowed()) throw orderNotAllowed(`${address}: ${isOn ? "On" : "Off"}`);
      await call(NEVER, () => {
        this.orders.push(`${address} ${isOn ? "On" : "Off"}`);
        this.switch(address, isOn);
      });
    };
    const unsupported = (): Promise<never> => Promise.reject(new BmcError("Unsupported", `${address}: an outlet`));
    let isClosed = false;
    const driver: PowerDriver = {
      address,
      identify: (signal) => call(signal, () => ({ device: address })),
      identifyOutlet: (signal) =>
        call(signal, ({ pdu, outlet, label, metered }) => ({
          pdu,
          outlet,
          ...(label !== undefined && { label }),
          ...(metered !== undefined && { metered }),
        })),
      readPower: (signal) =>
        call(signal, ({ isOn }) => (isOn ? { state: "On", raw: "on" } : { state: "Off", raw: "off" })),
      forceOff: () => order(false),
      on: () => order(true),
      setBootOverride: unsupported,
      readBootOverride: unsupported,
      close: async () => {
        if (!isClosed) onClose();
        isClosed = true;
      },
    };
    return driver;
  }
}
