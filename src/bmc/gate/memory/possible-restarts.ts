import { ExpiringSet } from "./expiring-set.ts";
import type { Clock } from "../../../runtime/clock.ts";

/**
 * After a possible restart of a BMC, its Off does not count for this long, unless it has shown its host On since then:
 * some BMCs show Off until they have read the state of the host.
 */
export const BMC_SETTLE_MS = 30_000;

/**
 * A restart takes a BMC longer than this, and sessions may survive it. A BMC that answered within this time has not
 * restarted.
 */
export const RESTART_MS_MIN = 10_000;

/**
 * The BMCs that gave no answer, or denied a session that they had given, a short time ago: each may have restarted
 * then. All drivers of a process share it, because a caller that fails to reach a BMC opens another driver to try
 * again. A BMC that has shown its host On is deleted: it has read the state of the host.
 */
export class PossibleRestarts extends ExpiringSet {
  constructor(clock: Clock) {
    super(clock, BMC_SETTLE_MS);
  }
}
