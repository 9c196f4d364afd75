import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");
const CAME_BACK_SIM = "test/sim/came-back.test.ts";
const HELD_SIM = "test/sim/held-orders.test.ts";
const STALE = "test/unit/remediator/decide-stale.test.ts";
const STALE_SIM = "test/sim/stale-request.test.ts";
const RETURNED = "test/unit/remediator/returned.test.ts";

/** What a further power-off rests on, and what holds power orders. */
export const REMEDIATOR_HOLDS_MUTANTS: readonly Mutant[] = [
  mutant(
    "returned-powered-off",
    "decide-power-off",
    "a node that is back in a new boot is not powered off once more",
    "    endIfReturned(walk, now) ??\n    disputeGate(walk, now) ??\n",
    "    disputeGate(walk, now) ??\n",
    CAME_BACK_SIM,
  ),
  mutant(
    "returned-by-old-look",
    "decide-verifying",
    "the look at the node before a further power-off is as fresh as the identity",
    'if (seen.examined === undefined || identityVerdict(walk, now) === undefined) return run({ do: "examine" });\n  const named',
    'if (seen.examined === undefined) return run({ do: "examine" });\n  const named',
    CAME_BACK_SIM,
    "test/unit/remediator/decide-guards.test.ts",
  ),
  mutant(
    "returned-by-other-look",
    "seen",
    "a check of the identity for something else is no look at the node",
    'return begins && from.name !== "Verifying" ? { ...seen, identity: undefined } : seen;',
    "return seen;",
    RETURNED,
  ),
  mutant(
    "returned-in-one-off",
    "decide-verifying",
    "one reading of Off says nothing against a node that is back",
    'if (last.state === "Off" && offReads >= 2) return "Off";',
    'if (last.state === "Off") return "Off";',
    RETURNED,
  ),
  mutant(
    "returned-twin-left-off",
    "decide-verifying",
    "all devices of a host read On before a node that is back ends its remediation",
    'return isWhole ? "On" : run({ do: "readWhole" });',
    'return isWhole ? "On" : "On";',
    RETURNED,
  ),
  mutant(
    "returned-since-attempt-alone",
    "decide-verifying",
    "a node is back in a boot that is new since the remediation began",
    "[bootID, bootIDAtStart].some(",
    "[bootID].some(",
    RETURNED,
  ),
  mutant(
    "returned-unseen-while-held",
    "decide-verifying",
    "a node that is back while its power-off is held ends its remediation",
    "return stop !== undefined && seemsBack && mayLook ? endIfReturned(walk, now) : undefined;",
    "return stop !== undefined && seemsBack && !mayLook ? endIfReturned(walk, now) : undefined;",
    RETURNED,
  ),
  mutant(
    "stops-not-looked-at",
    "effects",
    "what holds power-offs is looked at live before each",
    "return { examined: { node, dispute }, members, ...stops,",
    "return { examined: { node, dispute }, members, stop: stops.stop && { ...stops.stop, found: undefined },",
    HELD_SIM,
  ),
  mutant(
    "maintenance-not-looked-at",
    "effects",
    "what holds an On is looked at live before it",
    "session.seen = { ...session.seen, ...(isOld ? await lookAtStops(context, signal) : looked) };",
    "session.seen = { ...session.seen, stop: { found: undefined, atMs: startedMs + Number(isOld) * Number(looked.stop?.atMs) * 0 } };",
    HELD_SIM,
  ),
  mutant(
    "failed-look-allows",
    "look-at-stops",
    "a look that fails holds power-offs",
    "return stopFor(reason ?? failed, held);",
    "return stopFor(failed === undefined ? reason : undefined, held);",
    HELD_SIM,
  ),
  mutant(
    "live-stop-for-good",
    "decide",
    "what a live look found to hold an order is looked at again",
    'if (inMs <= 0) return run({ do: "lookAtStops" });',
    "",
    RETURNED,
  ),
  mutant(
    "pause-holds-on",
    "moves",
    "the stop switch holds no power-on",
    'return stop !== undefined && (action === "ForceOff" || stop.reason === "Maintenance");',
    'return stop !== undefined && (action === "ForceOff" || stop.reason !== undefined);',
    HELD_SIM,
  ),
  mutant(
    "paused-hand-over",
    "decide-undo",
    "no host is handed over as it is while power-offs are held",
    "if (successor.waiting && !attempt.bootOverride && walk.stop === undefined) return undefined;",
    "if (successor.waiting && !attempt.bootOverride) return undefined;",
    RETURNED,
  ),
  mutant(
    "paused-host-left-off",
    "decide-verifying",
    "a host that an earlier attempt has left off is powered on while power-offs are held",
    'if (last?.state !== "Off") return waitBecause',
    "if (last !== undefined) return waitBecause",
    RETURNED,
  ),
  mutant(
    "stale-request-begins",
    "decide-resolving",
    "a remediation that came back without status does not begin on a Ready node",
    "if (stale !== undefined) return stale;",
    "if (stale !== undefined && stale.effects.length > 0) return stale;",
    STALE,
  ),
  mutant(
    "restored-copy-confirmed",
    "take-snapshot",
    "a confirmation is of one object, and not of a copy that a restore makes",
    "isConfirmed: metadata.annotations?.[CONFIRM] === metadata.uid,",
    "isConfirmed: metadata.annotations?.[CONFIRM] !== undefined,",
    STALE_SIM,
  ),
  mutant(
    "restored-unnoticed",
    "take-snapshot",
    "what Velero has restored is of long ago, however young the object is",
    "isRestored: metadata.labels?.[RESTORED_BY_VELERO] !== undefined,",
    "isRestored: metadata.labels?.[RESTORED_BY_VELERO] === undefined && metadata.labels?.[REQUEST] !== undefined,",
    STALE_SIM,
  ),
  mutant(
    "stale-though-listed",
    "examine-request",
    "a node that the owning health check lists as unhealthy is fenced",
    "return check.status?.unhealthyNodes?.some(({ name }) => name === session.nodeName) === true;",
    "return check.status === undefined;",
    STALE_SIM,
  ),
];
