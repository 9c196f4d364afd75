import {
  disputeGate,
  endIfBack,
  endIfReturned,
  endWhileHeld,
  orderOff,
  powerOnMeanwhile,
  quorumGate,
} from "./verifying.ts";
import {
  deviceGate,
  fail,
  failAttempt,
  identityGate,
  move,
  ownNodeGate,
  run,
  saysHeld,
  stopGate,
  wait,
  waitsForReadingMs,
} from "../rules/transitions.ts";
import { heardAtMs, isPauseOver, isSpent, latenessOf, orderAgeMs } from "../rules/power-orders.ts";
import { silentAtMs } from "../rules/lease-silence.ts";
import type { ObservedLease, Seen, SentOrder } from "../model/observations.ts";
import type { Now, Walk } from "../model/snapshot.ts";
import { processing } from "../model/status.ts";
import {
  CLAIM_RECHECK_MS,
  LEASE_LOOK_MS,
  OFF_CONFIRM_GAP_MS,
  POLL_FAST_MS,
  POLL_FAST_WINDOW_MS,
  POLL_SLOW_MS,
  POWER_PROOF_AGE_MAX_MS,
  POWER_REREAD_MS,
  RENEWAL_TIMEOUT_MS,
  ORDER_SETTLED_AFTER_MS,
  REORDER_AFTER_MS,
} from "../model/timings.ts";
import type { Stop } from "../model/hold.ts";
import type { Decision } from "../model/decision.ts";

/** How long a reading may take that is late already. */
const LATE_READ_MS = 1_000;

/** The intent is stored: sees to it that the order was sent once, that its effect is proven, and that it hit the right host. */
export function decidePoweringOff(walk: Walk, now: Now): Decision {
  const { attempt, seen } = walk;
  const order = seen.order?.attemptId === attempt.id && seen.order.action === "ForceOff" ? seen.order : undefined;
  if (order !== undefined && order.outcome !== "Rejected" && !attempt.sent) {
    return move(walk, now, {
      to: "PoweringOff",
      step: "PowerOffSent",
      message:
        order.outcome === "Acknowledged" ? "the BMC took the order" : "the BMC's answer was lost: its state will tell",
      attempt: { ...attempt, sent: true },
    });
  }
  const { power } = seen;
  if (attempt.sent && power.provenAtMs !== undefined) return decideProven(walk, power.provenAtMs, now);
  // The taint is put on before that is recorded, so it may stand here, and the proof that it needs does not.
  if (!seen.taintCleared) return run({ do: "untaint" });
  const spent = isSpent(attempt, "ForceOff", order);
  const due = !spent && needsNewOrder(walk, order, now);
  const held = due || saysHeld(walk) ? holdOrder(walk, now) : undefined;
  if (held !== undefined) return held;
  if (walk.remainingMs <= 0) {
    const { reason, message } = seen.device ??
      order?.problem ??
      latenessOf(order) ?? {
        reason: "PowerOffTimeout" as const,
        message: `the host was not proven off in time; its BMC says ${power.last?.raw ?? "nothing"}`,
      };
    return failAttempt(walk, now, reason, message);
  }
  const waiting = deviceGate(walk, now);
  if (waiting !== undefined) return waiting;
  if (spent && hasTurnedOn(walk, order, now)) return endIfReturned(walk, now) ?? failTurnedOn(walk, now);
  if (due) return reorder(walk, order, now);
  return readDue(walk, now) ?? wait(walk, untilNextRead(walk, now));
}

/**
 * Whether a further order is needed. It gets an id of its own, so that no id ever stands for two power-offs:
 * - the last one was refused, so it had no effect;
 * - the host was proven off by the last one, and is not off any more: each time after a longer pause;
 * - the last one has not taken effect in REORDER_AFTER_MS;
 * - this process does not know whether the last one was sent (it restarted), and the host reads Off: an order that has no
 *   effect on a host that is off, and makes an end of a reading that lies.
 */
function needsNewOrder({ attempt, seen }: Walk, order: SentOrder | undefined, now: Now): boolean {
  if (order?.outcome === "Rejected") return true;
  const last = seen.power.last;
  if (last === undefined) return false;
  // Read as a whole, a host of which one device is off may run: that Off is not the host's.
  const isOn = last.runs ?? last.state === "On";
  if (last.state === "Off" && !isOn) return !attempt.sent;
  if (attempt.done) return isPauseOver(attempt, order, now);
  return isOn && orderAgeMs(attempt, order, now) >= REORDER_AFTER_MS;
}

/** Whether the host, once proven off in this cycle, is on again although the last order has had its time. */
function hasTurnedOn({ attempt, seen }: Walk, order: SentOrder | undefined, now: Now): boolean {
  if (seen.power.last?.state !== "On" || attempt.offConfirmedAtMs === undefined) return false;
  return attempt.done || orderAgeMs(attempt, order, now) >= REORDER_AFTER_MS;
}

/** More power cuts would not keep it off. A reboot that did not last proves nothing that a reprovision could rest on. */
function failTurnedOn(walk: Walk, now: Now): Decision {
  const { attempt, status } = walk;
  const counted = attempt.kind === "Reboot" ? 1 : 0;
  const provenReboots = Math.max((status.provenReboots ?? 0) - counted, 0);
  const message = `the host was proven off and came on again, after ${attempt.orders} orders: look for a power restore policy, a stuck power button, or another controller that powers it`;
  return failAttempt({ ...walk, status: { ...status, provenReboots } }, now, "HostTurnsItselfOn", message);
}

function reorder(walk: Walk, order: SentOrder | undefined, now: Now): Decision {
  return (
    endIfUntouched(walk, order, now) ??
    endIfReturned(walk, now) ??
    disputeGate(walk, now) ??
    ownNodeGate(walk, now) ??
    memberGate(walk, now) ??
    identityGate(walk, now) ??
    orderOff(walk, now, walk.freshId, "the host is powered off again: the last order had no lasting effect")
  );
}

/**
 * A further power-off that is held, and with it the state's time. A node that comes back meanwhile ends the remediation all the
 * same. The host is not left off for the hold: its power is read on, so that a power-off that was sent is proven and the walk goes
 * on; where nobody knows whether it was, no reading proves it, and a host that reads Off is powered on. Undefined where nothing
 * holds it.
 */
function holdOrder(walk: Walk, now: Now): Decision | undefined {
  const { attempt, plan, seen, stop } = walk;
  const ended = endWhileHeld(walk, now);
  if (ended !== undefined) return ended;
  const held = stopGate(walk, now, "ForceOff", attempt, plan.powerOffTimeoutMs);
  if (stop === undefined || held?.status !== undefined) return held;
  const isUnproven = !attempt.sent && seen.power.last?.state === "Off";
  const owed = isUnproven ? powerOnMeanwhile(walk, stop, now) : undefined;
  return owed ?? readWhileHeld(walk, stop, now);
}

/** Reads the power now and then, by no deadline but that of a wait for what cannot be read. A device that refuses for good is not asked again. */
function readWhileHeld(walk: Walk, stop: Stop, now: Now): Decision {
  const { device, power } = walk.seen;
  if (device?.final === true) return fail(walk, now, device.reason, device.message);
  const retryInMs = device === undefined ? 0 : device.retryAtMs - now.monotonicMs;
  const gapMs = walk.attempt.sent && power.offReads === 1 ? OFF_CONFIRM_GAP_MS : CLAIM_RECHECK_MS;
  const readInMs = power.last === undefined ? 0 : power.last.atMs + gapMs - now.monotonicMs;
  const inMs = Math.max(readInMs, retryInMs);
  if (inMs <= 0) return run({ do: "readPower" });
  return { notes: [], effects: [], nextCheckMs: Math.min(inMs, waitsForReadingMs(walk, stop) ?? Infinity) };
}

/** A node whose member of etcd may be up still: the others were looked at together with the node. */
function memberGate(walk: Walk, now: Now): Decision | undefined {
  const { attempt, seen } = walk;
  return attempt.offConfirmedAtMs !== undefined || seen.members.length === 0 ? undefined : quorumGate(walk, now);
}

/** Ends the remediation where no order so far was taken, and meanwhile the node has come back by itself. */
function endIfUntouched(walk: Walk, order: SentOrder | undefined, now: Now): Decision | undefined {
  const { attempt, node, seen } = walk;
  if (order?.outcome !== "Rejected" || attempt.orders > 1 || (walk.status.retryCount ?? 0) > 0) return undefined;
  const back = node === undefined ? undefined : endIfBack(walk, node, "None", now);
  const heardMs = heardAtMs(order);
  if (back === undefined || heardMs === undefined) return back;
  const { last } = seen.power;
  if (last === undefined) return run({ do: "readPower" });
  // A host that is off has a node that says Ready for a while; one that is on may be about to be powered off.
  if (last.state === "Off") return undefined;
  return last.state === "On" && last.atMs - heardMs >= ORDER_SETTLED_AFTER_MS
    ? back
    : (readDue(walk, now) ?? wait(walk, untilNextRead(walk, now)));
}

function readDue(walk: Walk, now: Now): Decision | undefined {
  return untilNextRead(walk, now) <= 0 ? run({ do: "readPower" }) : undefined;
}

/** Milliseconds until the power is to be read again while a change is awaited. */
export function untilNextRead(walk: Walk, now: Now): number {
  const { attempt, seen } = walk;
  const { power } = seen;
  if (power.last === undefined) return 0;
  const order = seen.order?.attemptId === attempt.id ? seen.order : undefined;
  const fastMs = orderAgeMs(attempt, order, now) < POLL_FAST_WINDOW_MS ? POLL_FAST_MS : POLL_SLOW_MS;
  const gapMs = power.last.state === "Off" && power.offReads === 1 ? OFF_CONFIRM_GAP_MS : fastMs;
  return power.last.atMs + gapMs - now.monotonicMs;
}

/** The host that answers is off. Before anything is released, its node's lease has to be silent: else it is another host. */
function decideProven(walk: Walk, provenAtMs: number, now: Now): Decision {
  const { attempt, seen } = walk;
  const reread = rereadPower(walk, now);
  if (reread !== undefined) return reread;
  const late = unreleasable(walk, now);
  if (late !== undefined) return late;
  const { lease } = seen;
  if (lease === undefined) return run({ do: "readLease" });
  const wrong = wrongHost(walk, provenAtMs, now);
  if (wrong !== undefined) return wrong;
  const clearAtMs = silentAtMs(walk, lease, provenAtMs);
  const clearInMs = clearAtMs - now.monotonicMs;
  if (clearInMs > 0) {
    // Silence says something only of a time in which the API server answered: that is asked, not taken for granted.
    const lookInMs = lease.readAtMs + LEASE_LOOK_MS - now.monotonicMs;
    if (lookInMs <= 0) return run({ do: "readLease" });
    return { notes: [], effects: [], nextCheckMs: Math.min(clearInMs, lookInMs, POWER_REREAD_MS) };
  }
  // The watch that shows renewals may lag, or have fallen silent: a live look after the proof has the last word.
  if (lease.readAtMs < Math.max(clearAtMs, provenAtMs)) return run({ do: "readLease" });
  if (walk.plan.workloadRelease === "OutOfServiceTaint" && seen.taint?.attemptId !== attempt.id) {
    return run({ do: "taint", attemptId: attempt.id });
  }
  return release(walk, now);
}

/**
 * A host is not kept off for calls that fail, be it that its lease cannot be read or its taint not be put on: once that is known
 * not to stand, the attempt fails.
 */
function unreleasable(walk: Walk, now: Now): Decision | undefined {
  const { seen, remainingMs, nodeName, attempt } = walk;
  const why = seen.taintFailure ?? seen.kube?.message;
  if (remainingMs > 0 || why === undefined || seen.taint?.attemptId === attempt.id) return undefined;
  const what = seen.taintFailure === undefined ? "released" : "tainted";
  const message = `the host is off, but node ${nodeName} could not be ${what} in time: ${why}`;
  return seen.taintCleared ? failAttempt(walk, now, "PowerOffTimeout", message) : run({ do: "untaint" });
}

/**
 * Keeps the proof fresh: undefined while it is. A reading that is not Off, or none in time, voids it (`recordReading`,
 * `recordFailedReading`).
 */
export function rereadPower(walk: Walk, now: Now): Decision | undefined {
  const { power, device } = walk.seen;
  const ageMs = power.offAtMs === undefined ? Infinity : now.monotonicMs - power.offAtMs;
  if (ageMs < POWER_REREAD_MS) return undefined;
  // A device that refuses for good is not asked again: accounts are locked by that.
  if (device?.final === true) return deviceGate(walk, now);
  const due = readingDue(walk.seen, now);
  return "inMs" in due
    ? { notes: [], effects: [], nextCheckMs: due.inMs }
    : run({ do: "readPower", withinMs: due.withinMs });
}

/** When the power of a host that is proven off is to be read again: in a while, or now and within some time. */
export function readingDue({ power, device }: Seen, now: Now): { inMs: number } | { withinMs: number } {
  const ageMs = power.offAtMs === undefined ? Infinity : now.monotonicMs - power.offAtMs;
  if (ageMs < POWER_REREAD_MS) return { inMs: POWER_REREAD_MS - ageMs };
  const retryInMs = device === undefined ? 0 : device.retryAtMs - now.monotonicMs;
  const leftMs = POWER_PROOF_AGE_MAX_MS - ageMs;
  return retryInMs > 0 && leftMs > 0
    ? { inMs: Math.min(retryInMs, leftMs) }
    : { withinMs: Math.max(leftMs, LATE_READ_MS) };
}

/** Fails for good if the node's lease is renewed although the host that was powered off is off. */
export function wrongHost(walk: Walk, provenAtMs: number, now: Now): Decision | undefined {
  if (!isRenewedAfter(walk.seen.lease, provenAtMs)) return undefined;
  const message = `node ${walk.nodeName} renewed its lease after the host was proven off: the target's devices power another host; correct the FencingTarget, or the BareMetalHost`;
  return fail(walk, now, "WrongHost", message, [
    { type: "IdentityVerified", status: "False", reason: "WrongHost", message },
    { type: "PowerOffConfirmed", status: "False", reason: "WrongHost", message },
  ]);
}

/** Whether a kubelet has renewed the lease that cannot run on the host that was proven off. */
export function isRenewedAfter(lease: ObservedLease | undefined, provenAtMs: number): boolean {
  return (lease?.renewedAtMs ?? -Infinity) > provenAtMs + RENEWAL_TIMEOUT_MS;
}

function release(walk: Walk, now: Now): Decision {
  const { attempt, plan, status, seen } = walk;
  const provenAgoMs = now.monotonicMs - (seen.power.provenAtMs ?? now.monotonicMs);
  const first = attempt.offConfirmedAtMs === undefined;
  const offConfirmedAtMs = attempt.offConfirmedAtMs ?? Math.round(now.epochMs - provenAgoMs);
  // Not from the proof: until the node's lease is known to be silent nothing could be released.
  const releasingSinceMs = attempt.releasingSinceMs ?? now.epochMs;
  const whose = seen.taint?.found === "Foreign" ? "; an out-of-service taint of another owner is left as it is" : "";
  const message = `the host was read Off twice after the order${whose}`;
  return move(walk, now, {
    to: "Releasing",
    step: "PowerOffConfirmed",
    message,
    attempt: {
      ...attempt,
      done: true,
      offConfirmedAtMs,
      releasingSinceMs,
      deadlineMs: releasingSinceMs + plan.drainTimeoutMs,
    },
    conditions: [
      ...processing("Releasing", message),
      { type: "PowerOffConfirmed", status: "True", reason: "ReadOff", message },
    ],
    fields: {
      provenReboots: (status.provenReboots ?? 0) + (first && attempt.kind === "Reboot" ? 1 : 0),
    },
  });
}
