import { keepReturned } from "../rules/outage/early.ts";
import { ensureUndisputed, orderOff, powerOnMeanwhile, ensureQuorum } from "./verifying.ts";
import { isReady } from "../../../nodes/ready.ts";
import { endIfBack, endIfReturned, endWhileHeld, isRebooted } from "../rules/outage/outage-over.ts";
import { fail, failAttempt } from "../rules/attempts.ts";
import { ensureDeviceUsable, ensureIdentity, ensureNotOwnNode } from "../rules/preconditions.ts";
import { transition, run, wait, waitBecause } from "../rules/transitions.ts";
import { reportedHold, ensureNotHeld, unreadPauseWaitMs } from "../rules/waits/holds.ts";
import {
  maybeEffectiveAtMs,
  isPauseOver,
  isSpent,
  latenessOf,
  orderAgeMs,
  isSettled,
  pendingOffMessage,
  settledAfterMs,
} from "../rules/orders/power-orders.ts";
import type { SentOrder } from "../model/facts/observations.ts";
import type { Now, AttemptSnapshot } from "../model/facts/snapshot.ts";
import {
  CLAIM_RECHECK_MS,
  OFF_CONFIRM_GAP_MS,
  POLL_FAST_MS,
  POLL_FAST_WINDOW_MS,
  POLL_SLOW_MS,
  REORDER_AFTER_MS,
} from "../model/decision/timings.ts";
import type { Hold } from "../model/facts/hold.ts";
import type { Decision } from "../model/decision/decision.ts";
import { decideProven } from "./proven-off.ts";

/**
 * Decides after the intent to power off was stored: reads the power until the host is proven off, orders again if
 * necessary, and then checks that it is the right host (`decideProven`).
 */
export function decidePoweringOff(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations } = snapshot;
  const order =
    observations.order?.attemptId === attempt.id && observations.order.action === "ForceOff"
      ? observations.order
      : undefined;
  if (order !== undefined && order.outcome !== "Rejected" && !attempt.sent) {
    return transition(snapshot, now, {
      to: "PoweringOff",
      step: "PowerOffSent",
      message:
        order.outcome === "Acknowledged"
          ? "the BMC accepted the order"
          : "the BMC's answer was lost: the agent reads the power state to see whether the BMC accepted the order",
      attempt: { ...attempt, sent: true },
    });
  }
  const returned = keepReturned(snapshot, now);
  if (returned !== undefined) return returned;
  const { power } = observations;
  if (attempt.sent && power.provenAtMs !== undefined) return decideProven(snapshot, power.provenAtMs, now);
  // The taint is put on before Releasing is stored, so it may be on the node in this state although there is no proof
  // any more.
  if (!observations.taintCleared) return run({ do: "untaint" });
  const spent = isSpent(attempt, "ForceOff", order);
  const due = !spent && needsNewOrder(snapshot, order, now);
  const held = due || reportedHold(snapshot) !== undefined ? holdOrder(snapshot, now) : undefined;
  if (held !== undefined) return held;
  if (snapshot.remainingMs <= 0) {
    const back = awaitSettled(snapshot, now);
    if (back !== undefined) return back;
    const { reason, message } = observations.device ??
      order?.problem ??
      latenessOf(order) ?? {
        reason: "PowerOffTimeout" as const,
        message: `the host was not proven off in time; its BMC says ${power.last?.raw ?? "nothing"}`,
      };
    return failAttempt(snapshot, now, reason, message);
  }
  const waiting = ensureDeviceUsable(snapshot, now);
  if (waiting !== undefined) return waiting;
  if (spent && hasTurnedOn(snapshot, order, now)) return endIfReturned(snapshot, now) ?? failTurnedOn(snapshot, now);
  if (due) return reorder(snapshot, order, now);
  return readDue(snapshot, now) ?? wait(snapshot, untilNextRead(snapshot, now));
}

/**
 * If the node is back at the deadline, waits while the last power-off order may still be carried out, and then ends the
 * remediation as a success. Undefined if the node is not back.
 */
function awaitSettled(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { node, nodeName, observations } = snapshot;
  const { last } = observations.power;
  if (node === undefined || !isReady(node) || !isRebooted(snapshot, node)) return undefined;
  if (observations.device !== undefined || last?.state !== "On") return undefined;
  if (isSettled(snapshot, last.atMs, now)) return endIfReturned(snapshot, now);
  const inMs = untilNextRead(snapshot, now);
  return inMs <= 0
    ? run({ do: "readPower" })
    : waitBecause(snapshot, now, "PowerOffPending", pendingOffMessage(nodeName), inMs);
}

/**
 * Whether a further order is needed, under a new id, so that no id is used for two power-offs. That is so if
 * - the last order was rejected;
 * - the host was proven off after the last order and is no longer off: then after a pause that grows;
 * - the host still reads On REORDER_AFTER_MS after the last order; or
 * - the process has restarted and does not know whether the last order was sent, and the host reads Off: the order does
 *   not change a host that is off, and powers it off if the reading is wrong.
 */
function needsNewOrder(snapshot: AttemptSnapshot, order: SentOrder | undefined, now: Now): boolean {
  const { attempt, observations } = snapshot;
  if (order?.outcome === "Rejected") return true;
  const last = observations.power.last;
  if (last === undefined) return false;
  // If only some devices of the host are off, the host may still run. `runs` is known if all of them were read.
  const isOn = last.runs ?? last.state === "On";
  if (last.state === "Off" && !isOn) return !attempt.sent;
  if (attempt.done) return isPauseOver(snapshot, order, now);
  return isOn && orderAgeMs(snapshot, order, now) >= REORDER_AFTER_MS;
}

/** Whether the host was proven off in this cycle and is on again, although the last order had time to take effect. */
function hasTurnedOn(snapshot: AttemptSnapshot, order: SentOrder | undefined, now: Now): boolean {
  const { attempt, observations } = snapshot;
  if (observations.power.last?.state !== "On" || attempt.offConfirmedAtMs === undefined) return false;
  return attempt.done || orderAgeMs(snapshot, order, now) >= REORDER_AFTER_MS;
}

/**
 * Fails the attempt of a host that comes on again each time. More orders would not keep it off. This reboot does not
 * count as proven, so it does not allow a reprovision.
 */
function failTurnedOn(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, status } = snapshot;
  const counted = attempt.kind === "Reboot" ? 1 : 0;
  const provenReboots = Math.max((status.provenReboots ?? 0) - counted, 0);
  const message = `the host was proven off and came on again, after ${attempt.orders} orders: look for a power restore policy, a stuck power button, or another controller that powers it`;
  return failAttempt({ ...snapshot, status: { ...status, provenReboots } }, now, "HostTurnsItselfOn", message);
}

function reorder(snapshot: AttemptSnapshot, order: SentOrder | undefined, now: Now): Decision {
  return (
    endIfNothingSent(snapshot, order, now) ??
    endIfReturned(snapshot, now) ??
    ensureUndisputed(snapshot, now) ??
    ensureNotOwnNode(snapshot, now) ??
    ensureQuorumBeforeReorder(snapshot, now) ??
    ensureIdentity(snapshot, now) ??
    orderOff(snapshot, now, snapshot.freshId, "the host is powered off again: the last order had no lasting effect")
  );
}

/**
 * Decides while a hold prevents a further power-off. If the node comes back, the remediation ends. After a pause or
 * maintenance, the state gets its time again. The host must not stay off because of the hold:
 * - If the last power-off was sent, the power is read until the host is proven off, and the remediation continues.
 * - If the agent does not know whether it was sent, no reading can prove the host off: a host that reads Off is
 *   powered on.
 * Undefined if nothing holds the order.
 */
function holdOrder(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, strategy, observations, hold } = snapshot;
  const ended = endWhileHeld(snapshot, now);
  if (ended !== undefined) return ended;
  const held = ensureNotHeld(snapshot, now, "ForceOff", attempt, strategy.powerOffTimeoutMs);
  if (hold === undefined || held?.status !== undefined) return held;
  const isUnproven = !attempt.sent && observations.power.last?.state === "Off";
  const owed = isUnproven ? powerOnMeanwhile(snapshot, hold, now) : undefined;
  return owed ?? readWhileHeld(snapshot, hold, now);
}

/**
 * Reads the power from time to time while orders are held. The deadline ends this only for a pause that cannot be read.
 * A device that refuses permanently fails the remediation.
 */
function readWhileHeld(snapshot: AttemptSnapshot, hold: Hold, now: Now): Decision {
  const { device, power } = snapshot.observations;
  if (device?.final === true) return fail(snapshot, now, device.reason, device.message);
  const retryInMs = device === undefined ? 0 : device.retryAtMs - now.monotonicMs;
  const gapMs = snapshot.attempt.sent && power.offReads === 1 ? OFF_CONFIRM_GAP_MS : CLAIM_RECHECK_MS;
  const readInMs = power.last === undefined ? 0 : power.last.atMs + gapMs - now.monotonicMs;
  const inMs = Math.max(readInMs, retryInMs);
  if (inMs <= 0) return run({ do: "readPower" });
  return { notes: [], effects: [], nextCheckMs: Math.min(inMs, unreadPauseWaitMs(snapshot, hold) ?? Infinity) };
}

/** Checks the quorum again before a further order, while the etcd member on the host may still be up. */
function ensureQuorumBeforeReorder(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations } = snapshot;
  return attempt.offConfirmedAtMs !== undefined || observations.members.length === 0
    ? undefined
    : ensureQuorum(snapshot, now);
}

/** Ends the remediation if no device has accepted an order and the node has come back by itself. */
function endIfNothingSent(snapshot: AttemptSnapshot, order: SentOrder | undefined, now: Now): Decision | undefined {
  const { attempt, node, observations } = snapshot;
  if (order?.outcome !== "Rejected" || attempt.orders > 1 || (snapshot.status.retryCount ?? 0) > 0) return undefined;
  const back = node === undefined ? undefined : endIfBack(snapshot, node, "None", now);
  const effectAtMs = maybeEffectiveAtMs(order);
  if (back === undefined || effectAtMs === undefined) return back;
  const { last } = observations.power;
  if (last === undefined) return run({ do: "readPower" });
  // After the host is off, its node still says Ready for a while. A host that is on may be about to be powered off.
  if (last.state === "Off") return undefined;
  return last.state === "On" && last.atMs - effectAtMs >= settledAfterMs(snapshot)
    ? back
    : (readDue(snapshot, now) ?? wait(snapshot, untilNextRead(snapshot, now)));
}

function readDue(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  return untilNextRead(snapshot, now) <= 0 ? run({ do: "readPower" }) : undefined;
}

/** Milliseconds until the power is to be read again while a change is awaited. */
export function untilNextRead(snapshot: AttemptSnapshot, now: Now): number {
  const { attempt, observations } = snapshot;
  const { power } = observations;
  if (power.last === undefined) return 0;
  const order = observations.order?.attemptId === attempt.id ? observations.order : undefined;
  const fastMs = orderAgeMs(snapshot, order, now) < POLL_FAST_WINDOW_MS ? POLL_FAST_MS : POLL_SLOW_MS;
  const gapMs = power.last.state === "Off" && power.offReads === 1 ? OFF_CONFIRM_GAP_MS : fastMs;
  return power.last.atMs + gapMs - now.monotonicMs;
}
