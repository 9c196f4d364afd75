import { CONTACT, LEADER } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/kube");

export const KUBE_MUTANTS: readonly Mutant[] = [
  // Reads show what is, not what a cache of an API server still holds.
  mutant(
    "list-from-cache",
    "paged-list",
    "a list is read from storage: a cache may show the past, also to who has seen the present",
    "await read(`${collectionPath(type, options.namespace)}?${query}`)",
    "await read(`${collectionPath(type, options.namespace)}?resourceVersion=0&${query}`)",
    "test/unit/kube/api-client.test.ts",
  ),
  mutant(
    "get-from-cache",
    "api-client",
    "a live look is read from storage",
    "what, objectPath(type, key), signal);",
    "what, `${objectPath(type, key)}?resourceVersion=0`, signal);",
    "test/unit/kube/api-client.test.ts",
  ),
  // Contact.
  mutant(
    "outage-unnoticed",
    "contact",
    "an outage of the API server ends what its silence before said",
    "if (hasFailed && atMs - answeredMs > OUTAGE_MIN_MS) sinceMs = atMs;",
    "if (sinceMs === Infinity) sinceMs = atMs;",
    CONTACT,
  ),
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
  mutant(
    "slow-lease-counts",
    "leader-election",
    "a lease whose time is over before its answer comes begins no term",
    "if (heldFromMs !== undefined && clock.monotonicMs() < heldFromMs + this.#renewDeadlineMs) return heldFromMs;",
    "if (heldFromMs !== undefined) return heldFromMs;",
    LEADER,
  ),
  mutant(
    "held-from-answer",
    "leader-election",
    "a renewal counts from when it was sent",
    "    this.#note(\n      await client.mergePatch<Lease>(LEASE, { namespace, name }, { uid, resourceVersion }, content, {}, signal),\n    );\n    return sentMs;",
    "    this.#note(\n      await client.mergePatch<Lease>(LEASE, { namespace, name }, { uid, resourceVersion }, content, {}, signal),\n    );\n    return Math.max(sentMs, clock.monotonicMs());",
    LEADER,
  ),
  mutant(
    "created-from-answer",
    "leader-election",
    "a lease counts from when the request for it was sent",
    "    this.#note(await client.create<Lease>(LEASE, object, {}, signal));\n    return sentMs;",
    "    this.#note(await client.create<Lease>(LEASE, object, {}, signal));\n    return Math.max(sentMs, clock.monotonicMs());",
    LEADER,
  ),
  mutant(
    "hung-renewal",
    "leader-election",
    "a renewal that hangs leaves time for another one",
    "const timeoutMs = Math.min(this.#renewDeadlineMs / 2, term.deadlineMs - clock.monotonicMs());",
    "const timeoutMs = this.#renewDeadlineMs * 2;",
    LEADER,
  ),
  mutant(
    "taken-lease-unheard",
    "leader-election",
    "a leader whose lease another has taken stops at once",
    "term.lose(`${this.#leader} has taken the lease`);",
    "",
    LEADER,
  ),
  mutant(
    "others-lease-given-back",
    "leader-election",
    "a lease that is another's is not given back",
    "if (lease === undefined || holderOf(lease) !== identity) return;",
    "if (lease === undefined) return;",
    LEADER,
  ),
  mutant(
    "loss-goes-on-renewing",
    "leader-election",
    "a lease that was lost is not renewed",
    "    this.#renewing.abort(this.lost);\n",
    "",
    LEADER,
  ),
  mutant(
    "held-though-lost",
    "leader-election",
    "a lease that was taken is not held, though its time is not over",
    "return this.lost === undefined && this.#clock.monotonicMs() < this.deadlineMs;",
    "return this.#clock.monotonicMs() < this.deadlineMs;",
    LEADER,
  ),
];
