import type { ElectorOptions, Lead, LeaderElectionDeps } from "./elector.ts";
import { Elector } from "./elector.ts";

export interface LeaderElectionOptions extends ElectorOptions {
  lead: Lead;
}

/**
 * Leads once: waits for the lease, then runs `lead` for as long as the lease is held.
 *
 * A lease is not a lock on a BMC: it makes two leaders unlikely, and the leader must still guard each of its writes.
 * Another candidate takes the lease at the earliest one lease duration after it observed the leader's last renewal. The
 * signal of `lead` aborts one renew deadline after that renewal was *sent*, which is earlier. Both times are measured
 * on monotonic clocks; the times in the Lease are for information. A monotonic clock does not advance while the machine
 * is suspended, so the term also ends if the wall clock has run ahead of it (`lease-term.ts`).
 *
 * If there is no Lease, a user may have deleted it, and a leader that cannot reach the API server has not noticed that.
 * So a candidate waits one lease duration before it creates a Lease. It also waits in a cluster in which no agent ever
 * led, because it cannot distinguish the two cases.
 *
 * Resolves when `signal` has aborted or `lead` has ended. It releases the lease after `lead` has settled.
 *
 * @throws what `lead` throws; LeadershipLostError if the lease was lost or `lead` did not stop in time: the process
 *   must then exit.
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
