import type { Request } from "../packets/message.ts";
import type { BootMode } from "../../interface/device-config.ts";
import type { BootOverride, PowerReading } from "../../interface/driver.ts";

// The chassis commands (IPMI 2.0, chapter 28) that fencing needs. Cycle and reset are not used: they have no observable
// Off, and a repeated transmission would be another reset.

const NETFN_CHASSIS = 0x00;
const GET_STATUS = 0x01;
const CONTROL = 0x02;
const GET_RESTART_CAUSE = 0x07;
const SET_BOOT_OPTIONS = 0x08;
const GET_BOOT_OPTIONS = 0x09;

/** Parameters of the boot options (table 28-14). */
const BOOT_FLAG_CLEARING = 3;
const BOOT_FLAGS = 5;
const VALID = 0x80;
const UEFI = 0x20;
const DEVICE_NETWORK = 1;

export const GET_CHASSIS_STATUS: Request = { netFn: NETFN_CHASSIS, command: GET_STATUS, data: [] };
export const POWER_OFF: Request = { netFn: NETFN_CHASSIS, command: CONTROL, data: [0] };
export const POWER_ON: Request = { netFn: NETFN_CHASSIS, command: CONTROL, data: [1] };
/** Pulse Diagnostic Interrupt (IPMI 2.0, 28.3). */
export const DIAGNOSTIC_INTERRUPT: Request = { netFn: NETFN_CHASSIS, command: CONTROL, data: [4] };
export const GET_BOOT_FLAGS: Request = { netFn: NETFN_CHASSIS, command: GET_BOOT_OPTIONS, data: [BOOT_FLAGS, 0, 0] };

export const GET_SYSTEM_RESTART_CAUSE: Request = { netFn: NETFN_CHASSIS, command: GET_RESTART_CAUSE, data: [] };

/** Restarts the BMC itself (IPMI 2.0, 20.2). */
export const COLD_RESET: Request = { netFn: 0x06, command: 0x02, data: [] };

/** Keeps the boot flags although no power order follows within a minute. By default the BMC then drops them. */
export const KEEP_BOOT_FLAGS: Request = {
  netFn: NETFN_CHASSIS,
  command: SET_BOOT_OPTIONS,
  data: [BOOT_FLAG_CLEARING, 0x08],
};

const FAULTS: readonly [bit: number, words: string][] = [
  [0x02, "overload"],
  [0x04, "interlock"],
  [0x08, "power fault"],
  [0x10, "power control fault"],
];

/** Parses the answer to `GET_CHASSIS_STATUS`; undefined if it is too short. */
export function parseChassisStatus(data: Buffer): PowerReading | undefined {
  const [power] = data;
  if (power === undefined || data.length < 3) return undefined;
  const isOn = (power & 0x01) !== 0;
  const faults = FAULTS.filter(([bit]) => (power & bit) !== 0).map(([, words]) => words);
  const raw = [`power is ${isOn ? "on" : "off"}`, ...faults].join(", ");
  return { state: isOn ? "On" : "Off", raw };
}

/** Automatic power-up because mains power is back: by the policy "always restore", and by "restore previous state". */
const STARTED_BY_MAINS: readonly number[] = [6, 7];

/** Whether the answer to `GET_SYSTEM_RESTART_CAUSE` (IPMI 2.0, 28.11) names mains power; undefined without a cause. */
export function parseStartedByMains(data: Buffer): boolean | undefined {
  const [cause] = data;
  // 0 is unknown.
  if (cause === undefined || (cause & 0x0f) === 0) return undefined;
  return STARTED_BY_MAINS.includes(cause & 0x0f);
}

/** Sets a network boot for the next boot only, or clears the override. */
export function setBootFlags(override: BootOverride, mode: BootMode): Request {
  const flags = override === "None" ? [0, 0] : [VALID | (mode === "UEFI" ? UEFI : 0), DEVICE_NETWORK << 2];
  return { netFn: NETFN_CHASSIS, command: SET_BOOT_OPTIONS, data: [BOOT_FLAGS, ...flags, 0, 0, 0] };
}

/** Parses the answer to `GET_BOOT_FLAGS`; undefined if it is not valid. A persistent network override counts as set. */
export function parseBootFlags(data: Buffer): BootOverride | undefined {
  const [, parameter = 0, flags = 0, device = 0] = data;
  if (data.length < 7 || (parameter & 0x7f) !== BOOT_FLAGS) return undefined;
  return (flags & VALID) !== 0 && ((device >> 2) & 0x0f) === DEVICE_NETWORK ? "NetworkOnce" : "None";
}
