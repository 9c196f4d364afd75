import { BmcGate } from "../../src/bmc/gate/bmc-gate.ts";
import type { OpenDevice } from "../../src/bmc/interface/device-config.ts";
import { createOpenDevice } from "../../src/bmc/devices/open-device.ts";
import type { Clock } from "../../src/runtime/clock.ts";

const OPEN_DEVICE = new WeakMap<Clock, OpenDevice>();

/** Opens devices like one process: all devices with the same clock share a BMC gate. */
export function openDeviceOn(clock: Clock): OpenDevice {
  const openDevice = OPEN_DEVICE.get(clock) ?? createOpenDevice(new BmcGate(clock));
  OPEN_DEVICE.set(clock, openDevice);
  return openDevice;
}
