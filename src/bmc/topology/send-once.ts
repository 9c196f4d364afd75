import { levelFailure } from "./level-calls.ts";
import type { PowerDriver, PowerReading } from "../interface/driver.ts";
import type { BmcErrorCode } from "../interface/errors.ts";

/** An order that must not be repeated. */
export interface OnceOrder {
  name: "NMI" | "AC cycle";
  /** The power state that the host must read for the order to be sent. */
  needs: "On" | "Off";
  /** Returns the function by which a device sends it; undefined if the device cannot. */
  by: (device: PowerDriver) => ((signal: AbortSignal) => Promise<void>) | undefined;
}

/** A second NMI would abort the crash dump that the first one started. A host that is off has nothing to dump. */
export const NMI: OnceOrder = { name: "NMI", needs: "On", by: (device) => device.sendNmi?.bind(device) };

/** A second AC cycle would cut off a host that has begun to boot. A host that reads On may be running workloads. */
export const AC_CYCLE: OnceOrder = { name: "AC cycle", needs: "Off", by: (device) => device.acCycle?.bind(device) };

/** Sends such an order to the host: one device, or all its outlets together. */
export interface OnceSender {
  address: string;
  /** @throws BmcError Refused if the order has nothing left to do, otherwise as a reading. */
  readPower: (signal: AbortSignal) => Promise<PowerReading>;
  /** Reads the identity again. @throws BmcError if it may be another host. */
  requireVerified: (signal: AbortSignal) => Promise<void>;
  send: (signal: AbortSignal) => Promise<void>;
}

/** Returns why no order may be sent now; undefined if one may. It is called right before an order is sent. */
export type Obstacle = () => string | undefined;

/** Whether an order was sent. Uncertain: a device may have sent it. NotSent: nothing can have reached the host. */
export interface OnceAnswer {
  outcome: "Sent" | "Uncertain" | "NotSent";
  /** For the operator. */
  message: string;
  /** For an AC cycle: all outlets of the host were switched off. The power-on of the host switches them on again. */
  bySupply?: true;
}

/** A device that fails with one of these codes has not sent the order. */
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
 * Sends an order by the first sender that can, and tries no other sender after one that may have sent it. The host must
 * read the power state that the order needs. The identity and the obstacle are checked after that reading, because it
 * may take long.
 *
 * @throws BmcError Aborted
 */
export async function sendOnce(
  { name, needs }: OnceOrder,
  senders: readonly OnceSender[],
  obstacle: Obstacle,
  signal: AbortSignal,
): Promise<OnceAnswer> {
  let message = `no device of the host can send an ${name}`;
  for (const { address, readPower, requireVerified, send } of senders) {
    let isHandedOver = false;
    try {
      const { state, raw } = await readPower(signal);
      await requireVerified(signal);
      if (state !== needs) return { outcome: "NotSent", message: `${address}: the host is not ${needs} (${raw})` };
      const found = obstacle();
      if (found !== undefined) return { outcome: "NotSent", message: `power-offs are held: ${found}` };
      isHandedOver = true;
      await send(signal);
      return { outcome: "Sent", message: `${address} took it` };
    } catch (error) {
      const failure = levelFailure(error, signal);
      ({ message } = failure);
      if (isHandedOver && !NOT_TAKEN.has(failure.code)) return { outcome: "Uncertain", message };
      if (isHandedOver && failure.code !== "Unsupported") return { outcome: "NotSent", message };
    }
  }
  return { outcome: "NotSent", message };
}
