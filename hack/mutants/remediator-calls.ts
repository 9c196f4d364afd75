import { SLOW_CALLS_SIM } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

/** Calls to the API that take long, or fail. */
export const REMEDIATOR_CALLS_MUTANTS: readonly Mutant[] = [
  mutant(
    "proof-ages-behind-call",
    "while-proven",
    "the power of a host that is proven off is read in time while a call to the API takes long",
    "if (provenAtMs === undefined || isLost(session, provenAtMs)) return work(signal);",
    "if (provenAtMs !== Infinity) return work(signal);",
    SLOW_CALLS_SIM,
  ),
  mutant(
    "call-outlives-proof",
    "while-proven",
    "a call to the API is given up as soon as its host is not proven off",
    "return seen.power.provenAtMs === undefined || seen",
    "return seen",
    SLOW_CALLS_SIM,
  ),
  mutant(
    "untaint-waits-for-others",
    "api-troubles",
    "a call that fails holds back no call of another kind",
    "const waits = calls.map((call) => (this.#troubles.get(call)?.retryAtMs ?? -Infinity) - nowMs);",
    "const waits = [...this.#troubles.values()].map(({ retryAtMs }) => retryAtMs - nowMs);",
    SLOW_CALLS_SIM,
  ),
  mutant(
    "untaint-waits-as-told",
    "api-troubles",
    "the taint comes off soon, however long the API server asks to wait",
    "(urgent ? ownMs : Math.max(ownMs, error.retryAfterMs ?? 0))",
    "Math.max(ownMs, error.retryAfterMs ?? 0)",
    SLOW_CALLS_SIM,
  ),
  mutant(
    "untaint-hangs",
    "walker",
    "a try to take the taint off that has no answer is followed by another one soon",
    "await (takesTaintOff(effect.do) ? inTime(deps, session, effect.do, signal, run) : run(signal));",
    "await run(signal);",
    SLOW_CALLS_SIM,
  ),
  mutant(
    "late-taint-lands",
    "effects",
    "a patch that puts the taint on and has had no answer takes no effect once the host is not proven off",
    "return sentAtMs !== undefined && session.now().monotonicMs - sentAtMs < WRITE_LATE_MAX_MS;",
    "return false;",
    SLOW_CALLS_SIM,
  ),
];
