import type { Check, DeviceReport } from "../bmc/probe-device.ts";

/** One thing that was looked at; `device` is absent for what concerns the host as a whole. */
export type Row = Omit<Check, "check"> & { device?: string; check: string };

export function rowsOf(device: string | undefined, report: DeviceReport): Row[] {
  return report.checks.map((check) => ({ ...(device !== undefined && { device }), ...check }));
}
