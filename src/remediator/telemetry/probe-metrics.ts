import type { Registry } from "prom-client";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { Vendor } from "../../bmc/identity/vendor.ts";
import { VENDORS } from "../../bmc/identity/vendor.ts";
import type { Watched } from "../../kube/watched.ts";
import type { Clock } from "../../runtime/clock.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { collectedGauge, metric } from "../../telemetry/metric.ts";
import type { Metric } from "../../telemetry/metric.ts";
import { readyOf } from "../hosts/fencing-target/target-store.ts";

const DAY_MS = 86_400_000;
/**
 * A certificate that expires sooner should be renewed. Automatic renewal comes earlier: cert-manager renews a
 * certificate for 90 days when 30 days are left.
 */
export const CERTIFICATE_DAYS_MIN = 21;

const PROBE_AGE = metric({
  name: "ironfence_probe_age_seconds",
  type: "gauge",
  help: "age of the last probe of the FencingTarget whose last probe is the oldest. Targets that are not probed do not count: those whose host a remediation owns, those that are `Ambiguous` and those that were never probed",
  labels: {},
});
const BMCS = metric({
  name: "ironfence_bmcs",
  type: "gauge",
  help: "devices of FencingTargets by the manufacturer that they report and by what the last probe found",
  labels: { vendor: VENDORS, state: ["healthy", "failing"] },
});
const CERTIFICATES = metric({
  name: "ironfence_bmc_certificates",
  type: "gauge",
  help: "TLS certificates of the BMCs of FencingTargets by the time until they expire",
  labels: { expires: ["expired", "within_7d", "within_21d", "later"] },
});

/** The metrics of probes, which are counted at each scrape. */
export const PROBE_METRICS: readonly Metric[] = [PROBE_AGE, BMCS, CERTIFICATES];

/** What the metrics show of one device. */
export interface DeviceRecord {
  /** As reported by the last probe that was answered. */
  vendor: Vendor;
  /** Whether the last probe found nothing that keeps the device from powering the host off. */
  healthy: boolean;
  /** The time until which its TLS certificate is valid, as last reported; undefined if it has shown none. */
  certificateUntilMs: number | undefined;
}

/** The last probes of all FencingTargets. */
export interface LastProbes {
  /**
   * The time of the last probe of the target with this UID, by the wall clock; undefined if this process has not probed
   * it.
   */
  of(targetUid: string): { atMs: number } | undefined;
  devices(): Iterable<DeviceRecord>;
}

/** Registers gauges of the last probes. */
export function countProbes(
  registry: Registry,
  { targets, records, clock }: { targets: Pick<Watched<FencingTarget>, "values">; records: LastProbes; clock: Clock },
): void {
  collectedGauge(PROBE_AGE, registry, (set) => {
    const nowMs = clock.nowMs();
    let oldestMs = 0;
    for (const { metadata, status } of targets.values()) {
      if (status?.owner !== undefined || readyOf(status)?.reason === "Ambiguous") continue;
      // The status of a target is written less often than the target is probed, so it counts only until this process
      // has probed the target.
      const probedMs = records.of(metadata.uid)?.atMs ?? parseTimeMs(status?.lastProbeTime);
      if (probedMs !== undefined) oldestMs = Math.max(oldestMs, nowMs - probedMs);
    }
    set({}, oldestMs / 1_000);
  });
  collectedGauge(BMCS, registry, (set) => {
    for (const [vendor, ofVendor] of Map.groupBy(records.devices(), (device) => device.vendor)) {
      const healthy = ofVendor.filter((device) => device.healthy).length;
      set({ vendor, state: "healthy" }, healthy);
      set({ vendor, state: "failing" }, ofVendor.length - healthy);
    }
  });
  collectedGauge(CERTIFICATES, registry, (set) => {
    const nowMs = clock.nowMs();
    const shown = [...records.devices()].flatMap(({ certificateUntilMs }) => certificateUntilMs ?? []);
    for (const [expires, some] of Map.groupBy(shown, (untilMs) => horizonOf(untilMs - nowMs))) {
      set({ expires }, some.length);
    }
  });
}

/** How soon a certificate ends: any answer but `later` is a reason to renew it. */
export function horizonOf(leftMs: number): "expired" | "within_7d" | "within_21d" | "later" {
  if (leftMs <= 0) return "expired";
  if (leftMs <= 7 * DAY_MS) return "within_7d";
  return leftMs <= CERTIFICATE_DAYS_MIN * DAY_MS ? "within_21d" : "later";
}
