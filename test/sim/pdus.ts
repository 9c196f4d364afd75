import type { Rack } from "../../hack/rack/rack.ts";
import type { DeviceDeps, OutletIdentity, PowerDriver } from "../../src/bmc/interface/driver.ts";
import { BmcError, orderNotAllowed } from "../../src/bmc/interface/errors.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { sleep } from "../../src/runtime/clock.ts";
import type { CallFault, CallName, DeviceEvent, DeviceUser } from "./rack-driver.ts";

/** Duration of a call to a simulated PDU. */
const CALL_MS = 20;
/** How long a BMC does not answer after its power is back. */
const BMC_BOOT_MS = 20_000;
const NEVER = new AbortController().signal;
/** The load of a host, in equal parts through its outlets that are on. */
const HOST_W = 360;

/** The states of an outlet: its faults, or none. */
export type OutletState = "welded" | "silent" | "chained" | "well";

/** One outlet, and what is really plugged into it. */
export interface Outlet extends OutletIdentity {
  isOn: boolean;
  /** The hosts that it feeds. If none of its outlets is on, a host and its BMC are off. */
  feeds: readonly string[];
  /** Its relay never opens again. */
  isWelded?: boolean;
  /** Called when its relay has switched, to simulate other devices that it feeds. */
  onSwitch?: (isOn: boolean) => void;
  /** Its PDU does not answer. */
  isSilent?: boolean;
  /** Another unit is chained to its PDU, and the MIB does not show which unit has an outlet. */
  isChained?: boolean;
  /** The value of its meter instead of the load of its hosts. */
  load?: number;
}

/** The PDUs of a rack at the driver interface. A host without an outlet always has power. */
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
    const plugged: Outlet = { ...outlet, isOn: this.#outlets.get(address)?.isOn ?? true, feeds };
    this.#outlets.set(address, plugged);
    return plugged;
  }

  outlet(address: string): Outlet {
    const outlet = this.#outlets.get(address);
    if (outlet === undefined) throw new Error(`no outlet ${address}`);
    return outlet;
  }

  /** @returns the hosts that this has switched off or on. */
  switch(address: string, wanted: boolean): string[] {
    const outlet = this.outlet(address);
    const supplied = outlet.feeds.filter((host) => this.isSupplied(host));
    if (wanted || outlet.isWelded !== true) outlet.isOn = wanted;
    outlet.onSwitch?.(outlet.isOn);
    return outlet.feeds.filter((name) => {
      if (supplied.includes(name) === this.isSupplied(name)) return false;
      const host = this.#rack.host(name);
      const isOn = (): boolean => host.power === "On" || host.power === "PoweringOn";
      const before = isOn();
      if (this.isSupplied(name)) this.#restore(name);
      else host.cutMains();
      return isOn() !== before;
    });
  }

  /** Whether the host has power: an outlet that is on feeds it, or no outlet feeds it. */
  isSupplied(host: string): boolean {
    const feeding = this.#feeding(host);
    return feeding.length === 0 || feeding.some(([, { isOn }]) => isOn);
  }

  /** Repairs every outlet of the host and switches it on, as a technician does at the PDU. */
  supply(host: string): void {
    for (const [address, outlet] of this.#feeding(host)) {
      this.#disturb(outlet, "well");
      this.switch(address, true);
    }
  }

  /** Sets a fault of the outlets of a host. */
  disturb(host: string, is: OutletState): void {
    for (const [, outlet] of this.#feeding(host)) this.#disturb(outlet, is);
  }

  #disturb(outlet: Outlet, is: OutletState): void {
    outlet.isWelded = is === "welded";
    outlet.isSilent = is === "silent";
    outlet.isChained = is === "chained";
  }

  /** The value of the meter of an outlet. */
  #loadOf({ feeds, isOn, load }: Outlet): number {
    if (load !== undefined || !isOn) return load ?? 0;
    const parts = feeds.map((host) => HOST_W / this.#feeding(host).filter(([, outlet]) => outlet.isOn).length);
    return parts.reduce((sum, part) => sum + part, 0);
  }

  #feeding(host: string): [address: string, outlet: Outlet][] {
    return [...this.#outlets].filter(([, { feeds }]) => feeds.includes(host));
  }

  #restore(name: string): void {
    const host = this.#rack.host(name);
    if (host.mains) return;
    host.restoreMains();
    const bmc = this.#rack.bmc(name);
    if (!bmc.hasOwnSupply) bmc.restart(BMC_BOOT_MS);
  }

  /** @param tell receives what happens in each call; undefined for a user who switches outlets. */
  open(
    address: string,
    { isOrderAllowed = () => true }: Pick<DeviceDeps, "isOrderAllowed">,
    {
      user,
      tell,
      onClose,
    }: { user: DeviceUser; tell: ((event: DeviceEvent) => void) | undefined; onClose: () => void },
  ) {
    const trouble = (name: CallName): void => tell?.({ user: user.name, bmc: address, trouble: name });
    const exchange = async <T>(
      name: CallName,
      signal: AbortSignal,
      work: (outlet: Outlet, fault: CallFault | undefined) => T,
    ): Promise<T> => {
      const fault = user.fault(address, name);
      if (fault !== undefined) trouble(name);
      await sleep(this.#clock, CALL_MS, signal);
      const outlet = this.outlet(address);
      if (outlet.isSilent === true) throw new BmcError("Unreachable", `${address}: no answer`);
      if (outlet.isChained === true) throw new BmcError("Unsupported", `${address}: 2 chained units answer`);
      if (fault === undefined || "lie" in fault) return work(outlet, fault);
      if (fault.after === true) work(outlet, fault);
      throw new BmcError(fault.error, `${address}: ${name} failed: ${fault.error}`);
    };
    const call: typeof exchange = (name, signal, work) =>
      user.pass(address, name, signal, async () => {
        try {
          return await exchange(name, signal, work);
        } catch (error) {
          trouble(name);
          throw error;
        }
      });
    const order = async (name: "ForceOff" | "On"): Promise<void> => {
      if (!isOrderAllowed()) throw orderNotAllowed(`${address}: ${name}`);
      await call(name, NEVER, ({ feeds }, fault) => {
        if (fault !== undefined && "lie" in fault && fault.lie === "ignored") return;
        this.orders.push(`${address} ${name === "On" ? "On" : "Off"}`);
        const changed = this.switch(address, name === "On");
        // A host that was already off and has no power now counts as ordered off as well.
        const cut = name === "ForceOff" ? feeds.filter((host) => !this.isSupplied(host)) : [];
        for (const host of new Set([...changed, ...cut])) {
          const outcome = changed.includes(host) ? "Started" : "NoChange";
          tell?.({ user: user.name, bmc: host, host, order: name, outcome });
        }
      });
    };
    const unsupported = (): Promise<never> => Promise.reject(new BmcError("Unsupported", `${address}: an outlet`));
    let isClosed = false;
    const driver: PowerDriver = {
      address,
      identify: (signal) => call("identify", signal, () => ({ device: address })),
      identifyOutlet: (signal) =>
        call("identify", signal, ({ pdu, outlet, label, metered }, fault) => ({
          pdu: fault !== undefined && "lie" in fault && fault.lie === "otherHost" ? "SN-OTHER" : pdu,
          outlet,
          ...(label !== undefined && { label }),
          ...(metered !== undefined && { metered }),
        })),
      readPower: (signal) =>
        call("readPower", signal, (outlet) => ({
          ...(outlet.isOn ? { state: "On", raw: "on" } : { state: "Off", raw: "off" }),
          ...(outlet.metered === true && { load: this.#loadOf(outlet) }),
        })),
      forceOff: () => order("ForceOff"),
      on: () => order("On"),
      hasNoBootOverride: true,
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
