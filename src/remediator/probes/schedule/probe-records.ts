import { vendorOf } from "../../../bmc/identity/vendor.ts";
import type { DeviceRecord, LastProbes } from "../../telemetry/probe-metrics.ts";
import type { DeviceProbe } from "./probe-result.ts";

/** What the metrics show of the last probe of one target. */
export interface ProbeRecord {
  /** The wall-clock time of the probe. */
  atMs: number;
  /** In the order of spec.devices. */
  devices: readonly (DeviceRecord & { address: string })[];
}

/** The last probe of each target, for the metrics. */
export class ProbeRecords implements LastProbes {
  readonly #byTarget = new Map<string, ProbeRecord>();

  /**
   * Records a probe. For a device that failed, the values of earlier probes stay, unless its address has changed.
   */
  note(targetUid: string, probes: readonly DeviceProbe[], atMs: number): void {
    const before = this.#byTarget.get(targetUid)?.devices;
    const devices = probes.map((probe) => {
      const { address, index, certificateUntilMs } = probe;
      const known = before?.[index];
      const same = known?.address === address ? known : undefined;
      const vendor = probe.ok ? vendorOf(probe.identity.manufacturer) : (same?.vendor ?? "unknown");
      const healthy = probe.ok && probe.obstacle === undefined;
      const untilMs = certificateUntilMs ?? same?.certificateUntilMs;
      return { address, vendor, healthy, certificateUntilMs: untilMs };
    });
    this.#byTarget.set(targetUid, { atMs, devices });
  }

  forget(targetUid: string): void {
    this.#byTarget.delete(targetUid);
  }

  of(targetUid: string): ProbeRecord | undefined {
    return this.#byTarget.get(targetUid);
  }

  *devices(): Generator<DeviceRecord> {
    for (const { devices } of this.#byTarget.values()) yield* devices;
  }
}
