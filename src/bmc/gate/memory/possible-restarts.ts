import { ExpiringSet } from "./expiring-set.ts";
import type { Clock } from "../../../runtime/clock.ts";

/**
 * After a possible restart of a BMC, its Off does not count for this long, unless it has shown its host On since then:
 * some BMCs show Off until they have read the state of the host.
 */
export const BMC_SETTLE_MS = 30_000;

/**
 * The shortest time that a BMC takes to restart. A BMC that answered within this time has not restarted. A session that
 * still works does not show that, because sessions may survive a restart.
 */
export const RESTART_MS_MIN = 10_000;

/**
 * The BMCs that did not answer, or denied a session that they had created, a short time ago. Each of them may have
 * restarted. All drivers of a process share this set, because a caller that cannot reach a BMC opens another driver to
 * try again. A BMC that has shown its host On is deleted: it has read the state of the host.
 */
export class PossibleRestarts extends ExpiringSet {
  constructor(clock: Clock) {
    super(clock, BMC_SETTLE_MS);
  }
}
