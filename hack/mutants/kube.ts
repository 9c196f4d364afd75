import { LEADER } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/kube");

export const KUBE_MUTANTS: readonly Mutant[] = [
  // The lease.
  mutant(
    "loss-leaves-work-running",
    "leader-election",
    "work under a lease that is lost is told to end at that moment",
    "    this.#leading.abort(this.lost);",
    "    void this.lost;",
    LEADER,
  ),
  mutant(
    "lease-taken-early",
    "lease-record",
    "a lease is taken only after it has run out before our eyes",
    "return nowMs > seen.sinceMs + (seconds === undefined ? leaseDurationMs : seconds * 1_000);",
    "return nowMs > seen.sinceMs + leaseDurationMs / 3;",
    LEADER,
  ),
  mutant(
    "leads-without-lease",
    "leader-election",
    "a leader that cannot renew stops before another may take over",
    'return this.#clock.schedule(leftMs, () => this.lose("the lease could not be renewed in time"));',
    'return this.#clock.schedule(leftMs * 3, () => this.lose("the lease could not be renewed in time"));',
    LEADER,
  ),
  mutant(
    "suspended-leader-leads",
    "leader-election",
    "a suspended leader knows by the time, before its timers tell it",
    "return this.lost === undefined && this.#clock.monotonicMs() < this.deadlineMs;",
    "return this.lost === undefined;",
    LEADER,
  ),
  mutant(
    "suspended-leader-writes",
    "guarded-transport",
    "nothing is written to the API without the lease",
    'request.lane !== "lease" && !mayWrite()',
    'request.lane === "lease" && !mayWrite()',
    "test/unit/kube/guarded-transport.test.ts",
  ),
];
