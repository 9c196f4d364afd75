import type { Rack } from "../../hack/rack/rack.ts";
import type { PowerOrderType } from "../../hack/rack/events.ts";
import type { BootOverride, HostIdentity, PowerDriver, PowerReading } from "../../src/bmc/driver.ts";
import { BmcError } from "../../src/bmc/errors.ts";
import type { DeviceConfig, openDevice as OpenDevice } from "../../src/bmc/open-device.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { abortReason, sleep } from "../../src/runtime/clock.ts";

/** What a call to a simulated BMC takes. */
const CALL_MS = 20;

/** One call to a BMC, in the order in which they were made. */
export interface BmcCall {
  host: string;
  call: "identify" | "readPower" | "ForceOff" | "On" | "setBootOverride" | "readBootOverride";
  atMs: number;
}

/** How a BMC fails, beside what the rack itself can play. */
export interface BmcFaults {
  /** The password that BMCs take. */
  password: string;
  /** Calls whose answer is lost, although they take effect: `host call`. */
  readonly losesAnswer: Set<string>;
  /** Calls that are refused, by `host call`. */
  readonly refuses: Set<string>;
}

/** Serves the simulated BMCs at the driver interface: no socket, so all of it runs on a virtual clock. */
export function rackDevices(
  rack: Rack,
  clock: Clock,
  faults: BmcFaults,
): { openDevice: typeof OpenDevice; calls: BmcCall[]; open: () => number } {
  const calls: BmcCall[] = [];
  let opened = 0;
  const openDevice = (config: DeviceConfig): PowerDriver => {
    const host = config.address.replace("redfish://", "");
    const bmc = rack.bmc(host);
    opened += 1;
    let closed = false;
    const call = async <T>(name: BmcCall["call"], signal: AbortSignal, work: () => T): Promise<T> => {
      calls.push({ host, call: name, atMs: clock.nowMs() });
      await sleep(clock, CALL_MS, signal);
      if (bmc.reachability === "refused") throw new BmcError("Unreachable", `${config.address}: connection refused`);
      if (bmc.reachability === "silent") {
        await sleep(clock, config.timeouts.callTimeoutMs, signal);
        throw new BmcError("Timeout", `${config.address}: no answer to ${name}`);
      }
      if (config.password.reveal() !== faults.password) throw new BmcError("AuthFailed", `${config.address}: refused`);
      if (faults.refuses.has(`${host} ${name}`)) throw new BmcError("Refused", `${config.address}: will not ${name}`);
      const result = work();
      if (faults.losesAnswer.has(`${host} ${name}`)) {
        await sleep(clock, config.timeouts.callTimeoutMs, signal);
        throw new BmcError("Timeout", `${config.address}: the answer to ${name} was lost`);
      }
      if (signal.aborted) throw abortReason(signal);
      return result;
    };
    const order = (type: PowerOrderType & ("ForceOff" | "On"), signal: AbortSignal): Promise<void> =>
      call(type, signal, () => {
        if (bmc.order(type) === "Refused") throw new BmcError("Refused", `${config.address}: not in this state`);
      });
    return {
      address: config.address,
      identify: (signal) =>
        call("identify", signal, (): HostIdentity => ({ ...bmc.identity(), device: `/redfish/v1/Systems/${host}` })),
      readPower: (signal) => call("readPower", signal, () => reading(bmc.readPower())),
      forceOff: (signal) => order("ForceOff", signal),
      on: (signal) => order("On", signal),
      setBootOverride: (override, signal) =>
        call("setBootOverride", signal, () =>
          bmc.setBoot(
            override === "None"
              ? { enabled: "Disabled", target: "None", mode: "UEFI" }
              : { enabled: "Once", target: "Pxe", mode: "UEFI" },
          ),
        ),
      readBootOverride: (signal) =>
        call("readBootOverride", signal, (): BootOverride =>
          bmc.bootSetting.enabled === "Once" ? "NetworkOnce" : "None",
        ),
      close: async () => {
        if (!closed) opened -= 1;
        closed = true;
      },
    };
  };
  return { openDevice, calls, open: () => opened };
}

function reading(power: "On" | "PoweringOff" | "Off" | "PoweringOn"): PowerReading {
  return { state: power === "On" || power === "Off" ? power : "Changing", raw: power };
}
