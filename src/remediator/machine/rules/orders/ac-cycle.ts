import { parseTimeMs, toMicroTime } from "../../../../runtime/time.ts";
import type { Decision } from "../../model/decision/decision.ts";
import type { AttemptSnapshot, Now } from "../../model/facts/snapshot.ts";
import { processing, statusCondition } from "../../model/status.ts";
import type { StatusStep } from "../../model/status.ts";
import { AC_CYCLE_POLL_MS, ONCE_CALL_MAX_MS, SUPPLY_CUT_MS } from "../../model/decision/timings.ts";
import { ensureNotHeld } from "../waits/holds.ts";
import { ensureDeviceUsable, freshIdentityCheck } from "../preconditions.ts";
import { run, transition, wait } from "../transitions.ts";

// An AC cycle between the release and the power-on (docs/explanation/ac-cycle.md). It does not prove the host off.

/** Characters kept of a message. */
const MESSAGE_MAX = 512;

/** How an AC cycle ends. */
const ENDS = {
  Done: { step: "ACCycleDone", message: "the BMC lost its power and answers again" },
  DoneBySupply: { step: "ACCycleDone", message: "all outlets of the host were off; the power-on switches them on" },
  NotSent: { step: "ACCycleNotSent", message: "no AC cycle was ordered: the host is powered on without one" },
  Unseen: { step: "ACCycleUnseen", message: "the end of the AC cycle was not seen in time: the host is powered on" },
} as const;

type AcCycle = NonNullable<AttemptSnapshot["status"]["acCycle"]>;

/** The AC cycle of this power cycle, as it is stored; undefined if none was ordered. */
function acCycleOf({ status, attempt }: AttemptSnapshot): AcCycle | undefined {
  return status.acCycle?.attemptID === attempt.id ? status.acCycle : undefined;
}

/**
 * Orders an AC cycle before the first power-on, if the strategy asks for one, and waits until its BMC is back.
 * Undefined if the host may be powered on.
 */
export function ensureCycled(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const cycle = acCycleOf(snapshot);
  if (cycle === undefined) return orderCycle(snapshot, now);
  return cycle.result === undefined ? awaitCycle(snapshot, cycle, now) : undefined;
}

function orderCycle(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { strategy, status, attempt, observations, hold } = snapshot;
  if (strategy.powerOn !== "ACCycle" || strategy.acCycleTimeoutMs <= 0 || snapshot.remainingMs <= 0) return undefined;
  // A BMC that loses its power may forget a boot override.
  if (attempt.kind !== "Reboot" || attempt.bootOverride) return undefined;
  const isReleased = statusCondition(status, "WorkloadsReleased")?.status === "True";
  if (attempt.offConfirmedAtMs === undefined || !isReleased) return undefined;
  const paused = ensureNotHeld(snapshot, now, "On", attempt, strategy.powerOnTimeoutMs);
  if (paused !== undefined) return paused;
  // During a pause or a failure of the API, the host is powered on without an AC cycle, so that it does not stay off.
  if (hold !== undefined || observations.kube !== undefined) return undefined;
  if (!observations.taintCleared) return run({ do: "untaint" });
  const waiting = ensureDeviceUsable(snapshot, now);
  if (waiting !== undefined) return waiting;
  const check = freshIdentityCheck(snapshot, now);
  if (check === undefined) return run({ do: "verifyIdentity" });
  if (!check.verified) return undefined;
  const endsAtMs = now.epochMs + strategy.acCycleTimeoutMs;
  const message = `the BMC interrupts the mains power of the host: the power-on waits for at most ${strategy.acCycleTimeoutMs / 1_000} s until it answers again`;
  const decision = store(snapshot, now, {
    step: "ACCycleOrdered",
    message,
    endsAtMs,
    acCycle: { attemptID: attempt.id, orderedAt: toMicroTime(now.epochMs), endsAt: toMicroTime(endsAtMs) },
  });
  const withinMs = Math.min(ONCE_CALL_MAX_MS, strategy.acCycleTimeoutMs);
  return { ...decision, effects: [{ do: "acCycle", attemptId: attempt.id, withinMs }] };
}

function awaitCycle(snapshot: AttemptSnapshot, cycle: AcCycle, now: Now): Decision {
  const { observations, strategy, remainingMs, attempt } = snapshot;
  const { device, power, acCycle } = observations;
  const endsAtMs = parseTimeMs(cycle.endsAt) ?? now.epochMs;
  const end = (how: keyof typeof ENDS, detail?: string): Decision => {
    const { step, message: words } = ENDS[how];
    const result = how === "DoneBySupply" ? "Done" : how;
    const message = detail === undefined ? words : `${words}: ${detail}`;
    return store(snapshot, now, {
      step,
      message,
      warning: result !== "Done",
      // The BMC boots only after the power-on has switched the outlets on, so the power-on gets its time as well.
      endsAtMs: how === "DoneBySupply" ? endsAtMs : now.epochMs,
      acCycle: { ...cycle, endsAt: toMicroTime(now.epochMs), result, message: message.slice(0, MESSAGE_MAX) },
    });
  };
  if (acCycle?.outcome === "NotSent") return end("NotSent", acCycle.message);
  const leftMs = Math.min(remainingMs - (attempt.deadlineMs - endsAtMs), strategy.acCycleTimeoutMs);
  // An agent that has since ended may have switched the outlets off: then only the reading shows it.
  if (acCycle?.bySupply === true || power.last?.bySupply === true) {
    const inMs = Math.min(leftMs, SUPPLY_CUT_MS - (strategy.acCycleTimeoutMs - leftMs));
    return inMs <= 0 ? end("DoneBySupply") : wait(snapshot, inMs);
  }
  if (leftMs <= 0) return end("Unseen", device?.message ?? "its BMC was not seen to lose its power");
  if (device !== undefined) {
    const inMs = device.retryAtMs - now.monotonicMs;
    return inMs <= 0 ? run({ do: "readWhole" }) : wait(snapshot, Math.min(inMs, leftMs));
  }
  const { last } = power;
  const answers = last !== undefined && last.supplied !== true;
  if (answers && (acCycle?.isAway === true || hasRestarted(last.bmcUpMs, cycle, now))) {
    return end("Done");
  }
  const inMs = last === undefined ? 0 : last.atMs + AC_CYCLE_POLL_MS - now.monotonicMs;
  return inMs <= 0 ? run({ do: "readWhole" }) : wait(snapshot, Math.min(inMs, leftMs));
}

/** Whether the BMC reports that it has started since the AC cycle was ordered. */
function hasRestarted(bmcUpMs: number | undefined, { orderedAt }: AcCycle, now: Now): boolean {
  const orderedAtMs = parseTimeMs(orderedAt);
  return bmcUpMs !== undefined && orderedAtMs !== undefined && bmcUpMs < now.epochMs - orderedAtMs;
}

/** Stores a step of the AC cycle. The state stays PoweringOn, and its own time begins at the end of the wait. */
function store(
  snapshot: AttemptSnapshot,
  now: Now,
  change: Pick<StatusStep, "step" | "message" | "warning"> & { endsAtMs: number; acCycle: AcCycle },
): Decision {
  const { attempt, strategy } = snapshot;
  const { step, message, warning, endsAtMs, acCycle } = change;
  return transition(snapshot, now, {
    to: "PoweringOn",
    step,
    message,
    ...(warning !== undefined && { warning }),
    attempt: { ...attempt, deadlineMs: endsAtMs + strategy.powerOnTimeoutMs },
    conditions: processing("ACCycle", message),
    fields: { acCycle },
  });
}
