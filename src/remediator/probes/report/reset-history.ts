import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { DeviceProbe } from "../schedule/probe-result.ts";

// Resets of a host that this agent did not order, found by comparing what its BMC reports about the last reset in two
// probes. Pure.

/** What a probe found about the last reset of a host. */
export interface ObservedResets {
  /** `LastResetTime` by device. */
  byAddress: ReadonlyMap<string, string>;
  /** The last reboot of the host by ironfence that was recorded at that time. */
  ownReboot: string | undefined;
}

export interface ForeignReset {
  address: string;
  /** By the BMC's clock. */
  time: string;
}

/** A BMC rounds to seconds, and may report different times for the same reset. */
const SAME_RESET_MS = 2_000;

export function observedResets(target: FencingTarget, devices: readonly DeviceProbe[]): ObservedResets {
  const reported = devices.flatMap((device): [string, string][] =>
    device.ok && device.lastReset !== undefined ? [[device.address, device.lastReset]] : [],
  );
  return { byAddress: new Map(reported), ownReboot: target.status?.lastReboot?.time };
}

/**
 * A reset between two probes that is not ours. A remediation that owned the host in between may have ordered one, so
 * the caller then forgets `before`. A reboot by ironfence that ended in between is recorded.
 */
export function foreignReset(before: ObservedResets | undefined, after: ObservedResets): ForeignReset | undefined {
  if (before === undefined || before.ownReboot !== after.ownReboot) return undefined;
  for (const [address, time] of after.byAddress) {
    const beforeMs = parseTimeMs(before.byAddress.get(address));
    const afterMs = parseTimeMs(time);
    if (beforeMs !== undefined && afterMs !== undefined && afterMs - beforeMs > SAME_RESET_MS) return { address, time };
  }
  return undefined;
}
