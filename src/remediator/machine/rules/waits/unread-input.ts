import { waitBecause } from "../transitions.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import { UNREAD_RECHECK_MS, UNREAD_REPORT_AFTER_MS } from "../../model/decision/timings.ts";
import type { Decision } from "../../model/decision/decision.ts";

/**
 * Decides while something that the remediation needs cannot be read, such as its host. The remediation waits, and
 * reports that if the wait takes longer than usual after a start. Its out-of-service taint does not stay on during the
 * wait: see unvouched-taints.ts. Pure.
 */
export function decideUnread(snapshot: Snapshot, now: Now, unread: NonNullable<Snapshot["unread"]>): Decision {
  if (unread.forMs < UNREAD_REPORT_AFTER_MS) return { notes: [], effects: [], nextCheckMs: UNREAD_RECHECK_MS };
  const message = `${unread.message}: nothing is done to the host until they can be read`;
  return waitBecause(snapshot, now, "InputUnread", message, UNREAD_RECHECK_MS);
}
