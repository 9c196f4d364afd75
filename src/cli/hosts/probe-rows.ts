import type { DeviceCheck, DeviceReport } from "../../bmc/devices/probe-device.ts";

/** The result of one check; `device` is absent if the check is about the whole host. */
export type ProbeRow = Omit<DeviceCheck, "check"> & { device?: string; check: string };

export function rowsOf(device: string | undefined, report: DeviceReport): ProbeRow[] {
  return report.checks.map((check) => ({ ...(device !== undefined && { device }), ...check }));
}
