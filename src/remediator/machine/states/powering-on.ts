import { toTime } from "../../../runtime/time.ts";
import type { Decision } from "../model/decision/decision.ts";
import type { SentOrder } from "../model/facts/observations.ts";
import type { AttemptSnapshot, Now } from "../model/facts/snapshot.ts";
import { processing } from "../model/status.ts";
import {
  backBySupply,
  isOnDue,
  isSpent,
  latenessOf,
  orderAgeMs,
  readsOn,
  withIntent,
} from "../rules/orders/power-orders.ts";
import { ensureCycled } from "../rules/orders/ac-cycle.ts";
import { isCyclePending } from "../rules/proof/pending-cycle.ts";
import { ensurePowerOnDue, isEarly } from "../rules/outage/early.ts";
import { failAttempt } from "../rules/attempts.ts";
import { ensureDeviceUsable, ensureIdentity } from "../rules/preconditions.ts";
import { run, transition, wait } from "../rules/transitions.ts";
import { ensureNotHeld } from "../rules/waits/holds.ts";
import { untilNextRead } from "./powering-off.ts";

/** Orders the host on until it reads On. On is idempotent, so it may be sent again after a restart. */
export function decidePoweringOn(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations, strategy } = snapshot;
  const order =
    observations.order?.attemptId === attempt.id && observations.order.action === "On" ? observations.order : undefined;
  const spent = isSpent(attempt, "On", order);
  const { last } = observations.power;
  const on = order !== undefined || spent ? (readsOn(snapshot) ?? suppliedOn(snapshot)) : undefined;
  if (on !== undefined) return recordOn(snapshot, on, now.monotonicMs - orderAgeMs(snapshot, order, now), now);
  if (order === undefined && attempt.orders === 0) {
    if (isEarly(snapshot) && last?.state === "On") {
      const shown = { message: "another client powered the host on", warning: false };
      return recordOn(snapshot, shown, now.monotonicMs, now);
    }
    const early = ensurePowerOnDue(snapshot, last?.state === "On", now);
    if (early !== undefined) return early;
    const cycling = ensureCycled(snapshot, now);
    if (cycling !== undefined) return cycling;
  }
  // An order that one device refuses may have turned another one on, so all devices are read before it is repeated.
  const unsent =
    order === undefined ||
    (order.outcome === "Rejected" && last !== undefined && last.runs !== true && last.supplied !== true);
  const due = isOnDue(snapshot, order, now, { runs: last?.runs }) && (unsent || last?.state === "Off");
  if (due && order === undefined) {
    const paused = ensureNotHeld(snapshot, now, "On", attempt, strategy.powerOnTimeoutMs);
    if (paused !== undefined) return paused;
  }
  if (snapshot.remainingMs <= 0) {
    const { reason, message } = observations.device ??
      order?.problem ??
      latenessOf(order) ?? {
        reason: "PowerOnTimeout" as const,
        message: `the host did not read On in time; its BMC says ${last?.raw ?? "nothing"}`,
      };
    return failAttempt(snapshot, now, reason, message);
  }
  const waiting = ensureDeviceUsable(snapshot, now);
  if (waiting !== undefined) return waiting;
  if (due) {
    return (
      ensureNotHeld(snapshot, now, "On", attempt, strategy.powerOnTimeoutMs) ??
      ensureIdentity(snapshot, now, "On") ??
      orderOn(snapshot, order, now)
    );
  }
  const inMs = untilNextRead(snapshot, now);
  return inMs <= 0 ? run({ do: "readWhole" }) : wait(snapshot, inMs);
}

/**
 * What shows that the host is on if its outlets are on and its BMC does not answer: its node, or at the deadline only
 * the outlets. Until then the agent waits for the BMC, because a host may stay off until its BMC orders it on.
 */
function suppliedOn(snapshot: AttemptSnapshot): ShownOn | undefined {
  const back = backBySupply(snapshot);
  const { last } = snapshot.observations.power;
  if (back !== undefined || last?.supplied !== true || snapshot.remainingMs > 0) return back;
  const message = `the outlets of the host are on, and its BMC does not answer (${last.raw}): if its node does not come back, the host stays off after a power loss; power it on by hand, and set its firmware to power on after a power loss`;
  return { message, warning: true, mayBeOff: true };
}

/** What shows that the host is on. */
interface ShownOn {
  message: string;
  warning: boolean;
  /** The host may still be off, so an undo has to power it on. */
  mayBeOff?: true;
}

/**
 * Stores the intent to power on, then orders it. The identity has just been verified.
 *
 * @param outlets only the outlets are switched on, for the reason in `message`. The BMC starts then, so the time of the
 * state begins again.
 */
export function orderOn(
  snapshot: AttemptSnapshot,
  last: SentOrder | undefined,
  now: Now,
  outlets?: { message: string },
): Decision {
  const { attempt, state, strategy } = snapshot;
  const again = state.name === "Undoing" || attempt.orders > 0;
  return transition(
    snapshot,
    now,
    {
      to: state.name,
      step: again ? "PoweringOnAgain" : "PoweringOn",
      message: again ? "the agent is about to power the host on again" : "the agent is about to power the host on",
      ...(outlets && { ...outlets, warning: true }),
      attempt: {
        ...withIntent(attempt, "On", last, now),
        ...(outlets && { deadlineMs: now.epochMs + strategy.powerOnTimeoutMs }),
      },
    },
    [{ do: "powerOn", attemptId: attempt.id, ...(outlets && { outletsOnly: true }) }],
  );
}

function recordOn(snapshot: AttemptSnapshot, { mayBeOff, ...on }: ShownOn, onOrderedAtMs: number, now: Now): Decision {
  const { attempt, observations, strategy, status } = snapshot;
  const orderedAtMs = Math.round(now.epochMs - (now.monotonicMs - onOrderedAtMs));
  // At the deadline the remediation continues even if the reboot cannot be recorded: the host is on.
  if (!observations.rebootRecorded && (snapshot.remainingMs > 0 || observations.kube === undefined)) {
    return run({
      do: "recordReboot",
      offConfirmedAtMs: attempt.offConfirmedAtMs ?? orderedAtMs,
      onOrderedAtMs: orderedAtMs,
    });
  }
  const { message } = on;
  return transition(snapshot, now, {
    to: "Rejoining",
    step: "PoweredOn",
    ...on,
    // If an earlier power-off or AC cycle may still be carried out, the effect of the On is not final.
    attempt: {
      ...attempt,
      sent: true,
      done: mayBeOff !== true && observations.unseenOffs === undefined && !isCyclePending(snapshot, now.monotonicMs),
      deadlineMs: orderedAtMs + strategy.timeoutMs,
    },
    conditions: [...processing("Rejoining", message), { type: "PoweredOn", status: "True", reason: "ReadOn", message }],
    fields: { lastRemediated: toTime(orderedAtMs), node: status.node ?? { name: snapshot.nodeName } },
  });
}
