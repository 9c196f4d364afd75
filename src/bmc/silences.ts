import { Recent } from "./recent.ts";
import type { Clock } from "../runtime/clock.ts";

/**
 * For so long after a BMC may have restarted no Off of it is believed, unless it has shown its host on since: some show Off
 * until they have looked at the host.
 */
export const BMC_SETTLE_MS = 30_000;

/** A BMC needs longer than this to restart, and may keep its sessions: one that has answered within this time has not. */
export const RESTART_MS_MIN = 10_000;

/**
 * When BMCs last were silent, or had forgotten us: each may have restarted then. All drivers of a process share it, since
 * whoever has just failed to reach a BMC opens another driver to try again. One that has shown its host on is forgotten: it has
 * looked at it.
 */
export class Silences extends Recent {
  constructor(clock: Clock) {
    super(clock, BMC_SETTLE_MS);
  }
}
