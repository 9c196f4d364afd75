import { levelFailure } from "./level-calls.ts";
import type { PowerDriver } from "../interface/driver.ts";
import type { BmcErrorCode } from "../interface/errors.ts";

/** An order that must not be repeated. */
export interface OnceOrder {
  name: "NMI" | "AC cycle";
  /** The power that a host must read to get it. */
  needs: "On" | "Off";
  /** How a device sends it; undefined if the device cannot. */
  by: (device: PowerDriver) => ((signal: AbortSignal) => Promise<void>) | undefined;
}

/** A second NMI breaks off the crash dump that the first one has begun. A host that is off has nothing to dump. */
export const NMI: OnceOrder = { name: "NMI", needs: "On", by: (device) => device.sendNmi?.bind(device) };

/** A second AC cycle would cut off a host that has begun to boot. A host that reads On may be running workloads. */
export const AC_CYCLE: OnceOrder = { name: "AC cycle", needs: "Off", by: (device) => device.acCycle?.bind(device) };

/** Whether an order was sent. Uncertain: a device may have sent it. NotSent: nothing can have reached the host. */
export interface OnceAnswer {
  outcome: "Sent" | "Uncertain" | "NotSent";
  /** For the operator. */
  message: string;
  /** Of an AC cycle: all outlets of the host are off. Its power-on switches them on again. */
  bySupply?: true;
}

/** A device that answers so has not sent it. */
const NOT_TAKEN: ReadonlySet<BmcErrorCode> = new Set([
  "Unsupported",
  "Refused",
  "PrivilegeTooLow",
  "AuthFailed",
  "TlsUntrusted",
  "SystemNotFound",
  "SystemAmbiguous",
]);

/**
 * Sends an order by the first device that can. No other device is asked after one that may have sent it. Only a host
 * that reads the power that the order needs gets it.
 *
 * @param requireVerified rejects for a device that may power another host.
 * @throws BmcError Aborted
 */
export async function sendOnce(
  order: OnceOrder,
  devices: readonly PowerDriver[],
  requireVerified: (device: PowerDriver) => Promise<void>,
  signal: AbortSignal,
): Promise<OnceAnswer> {
  let message = `no device of the host can send an ${order.name}`;
  for (const device of devices) {
    const send = order.by(device);
    if (send === undefined) continue;
    let isHandedOver = false;
    try {
      await requireVerified(device);
      const { state, raw } = await device.readPower(signal);
      if (state !== order.needs) {
        return { outcome: "NotSent", message: `${device.address}: the host is not ${order.needs} (${raw})` };
      }
      isHandedOver = true;
      await send(signal);
      return { outcome: "Sent", message: `${device.address} took it` };
    } catch (error) {
      const failure = levelFailure(error, signal);
      ({ message } = failure);
      if (isHandedOver && !NOT_TAKEN.has(failure.code)) return { outcome: "Uncertain", message };
      if (isHandedOver && failure.code !== "Unsupported") return { outcome: "NotSent", message };
    }
  }
  return { outcome: "NotSent", message };
}
