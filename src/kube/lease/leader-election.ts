import type { ElectorOptions, Lead, LeaderElectionDeps } from "./elector.ts";
import { Elector } from "./elector.ts";

export interface LeaderElectionOptions extends ElectorOptions {
  lead: Lead;
}

/**
 * Leads once: waits for the lease, then runs `lead` for as long as the lease is held.
 *
 * A lease is not a lock on a BMC: it makes two leaders unlikely, and what the leader does must still be guarded write
 * by write. What is promised: others take the lease at the earliest one lease duration after they saw our last renewal,
 * and `lead`'s signal aborts one renew deadline after that renewal was *sent*, so before that by the difference of the
 * two. Both are judged on monotonic clocks; wall-clock times in the Lease are for information. A monotonic clock stands
 * still while the machine is suspended, so a wall clock that has run ahead of it ends the term, too (`lease-term.ts`).
 *
 * If there is no Lease, a user may have deleted it under a leader that cannot reach the API and has not noticed: a
 * candidate waits one lease duration before it makes another, at its first start, too, since it cannot tell that from a
 * cluster in which no agent has ever led.
 *
 * Resolves when `signal` aborted, or `lead` came to its end: the lease is given back after `lead` has settled. @throws
 * what `lead` throws; LeadershipLostError when the lease was lost or `lead` did not stop in time: the process must then
 * exit.
 */
export async function runLeaderElection(
  deps: LeaderElectionDeps,
  options: LeaderElectionOptions,
  signal: AbortSignal,
): Promise<void> {
  const elector = new Elector(deps, options);
  const heldFrom = await elector.acquire(signal);
  if (heldFrom !== undefined) await elector.lead(heldFrom, options.lead, signal);
}
