import { untilNextRead } from "./powering-off.ts";
import { orderOn } from "./powering-on.ts";
import { freshIdentityCheck } from "../rules/preconditions.ts";
import { transition, run, waitBecause } from "../rules/transitions.ts";
import { holdsOrder, ensureNotHeld } from "../rules/waits/holds.ts";
import {
  backBySupply,
  isOnDue,
  isSettled,
  isSpent,
  hadNoPowerOff,
  pendingOffMessage,
  readsOn,
} from "../rules/orders/power-orders.ts";
import type { SentOrder } from "../model/facts/observations.ts";
import type { Now, AttemptSnapshot } from "../model/facts/snapshot.ts";
import { mayHaveTurnedOff } from "../model/decision/state.ts";
import { IDENTITY_AGE_MAX_MS, ON_AWAITED_MS, SUCCESSOR_AGE_MAX_MS } from "../model/decision/timings.ts";
import type { Decision } from "../model/decision/decision.ts";
import { allowsOn } from "../../../bmc/identity/identity-check.ts";
import type { IdentityCheck } from "../../../bmc/identity/identity-check.ts";

/** Clears the boot override and powers the host on. Undefined if that is done, not needed, or given up. */
export function restorePower(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations } = snapshot;
  const owesOn = mayHaveTurnedOff(attempt);
  if (!owesOn && !attempt.bootOverride) return undefined;
  if (owesOn) {
    const { successor } = observations;
    if (successor === undefined) return run({ do: "checkSuccessor" });
    const isOld = now.monotonicMs - successor.atMs > SUCCESSOR_AGE_MAX_MS;
    if (isOld && snapshot.siblings.some((sibling) => sibling.waiting)) return run({ do: "checkSuccessor" });
    // During a hold the successor does not fence the host, so the host would stay off until the hold ends.
    if (successor.waiting && !attempt.bootOverride && snapshot.hold === undefined) return undefined;
  }
  const isHeld = holdsOrder(snapshot.hold, "On");
  const resumed = isHeld ? undefined : ensureNotHeld(snapshot, now, "On", attempt, snapshot.strategy.powerOnTimeoutMs);
  if (resumed !== undefined) return resumed;
  if (hasGivenUp(snapshot)) return undefined;
  const device = deviceWait(snapshot, now);
  if (device !== undefined) return device;
  if (!attempt.bootOverride || isBackUncleared(snapshot)) return powerOn(snapshot, now);
  return (owesOn ? ensureSupplied(snapshot, now) : undefined) ?? clearOverride(snapshot, now);
}

/** Whether the node is back by its outlets, and its BMC has not answered in time to clear the boot override. */
function isBackUncleared(snapshot: AttemptSnapshot): boolean {
  const { attempt, remainingMs } = snapshot;
  if (!attempt.bootOverride || !mayHaveTurnedOff(attempt) || remainingMs > 0) return false;
  return backBySupply(snapshot) !== undefined;
}

/**
 * Switches the outlets of the host on if its BMC may need them: it cannot clear its boot override without power. The
 * host may start by itself then, and boot from the network, but it would stay off otherwise. No BMC is ordered to power
 * it on. Undefined if the boot override is to be cleared now.
 */
function ensureSupplied(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { observations } = snapshot;
  const { last } = observations.power;
  if (last?.unsupplied !== true) {
    // Whether outlets are off matters only once the BMC does not answer.
    return observations.device !== undefined && last?.supplied !== true ? run({ do: "readWhole" }) : undefined;
  }
  const order = observations.order?.action === "On" ? observations.order : undefined;
  if (isTakenBack(snapshot) || !isOnDue(snapshot, order, now, { unbounded: snapshot.remediation.deleting })) {
    const inMs = untilNextRead(snapshot, now);
    return inMs <= 0 ? run({ do: "readWhole" }) : { notes: [], effects: [], nextCheckMs: inMs };
  }
  const message =
    "the agent switches the outlets of the host on, since its BMC does not answer and may need them: the host may boot from the network before the boot override is cleared";
  return orderChecked(snapshot, order, now, { message });
}

/** Orders the host on, or only its outlets, if nothing holds that and the host is who it should be. */
function orderChecked(
  snapshot: AttemptSnapshot,
  order: SentOrder | undefined,
  now: Now,
  outlets?: { message: string },
): Decision {
  const held = ensureNotHeld(snapshot, now, "On", snapshot.attempt, snapshot.strategy.powerOnTimeoutMs);
  if (held !== undefined) return held;
  const check = freshIdentityCheck(snapshot, now);
  if (check === undefined) return run({ do: "verifyIdentity" });
  if (!check.verified && !allowsOn(check)) return waitForIdentity(snapshot, check, now);
  return orderOn(snapshot, order, now, outlets);
}

/** Whether another party powers the host now: the undo waits until that party has powered it on, and sends no order. */
function isTakenBack({ host }: AttemptSnapshot): boolean {
  return host.found && host.facts.takenBack !== undefined;
}

/**
 * Tries of a device that refuses permanently, before the host is left as it is. The operator may fix the cause before
 * the second try.
 */
const FINAL_TRIES = 2;

/**
 * Whether the undo has stopped trying to power the host on. A remediation that is being deleted continues to try,
 * unless another party powers the host.
 */
function hasGivenUp(snapshot: AttemptSnapshot): boolean {
  const { device, kube } = snapshot.observations;
  // No device was called yet, because the API fails and credentials cannot be read. The API will answer again.
  if (device === undefined && kube !== undefined && snapshot.observations.power.last === undefined) return false;
  const isBack = snapshot.attempt.bootOverride
    ? isBackUncleared(snapshot)
    : (readsOn(snapshot) ?? backBySupply(snapshot)) !== undefined;
  if ((snapshot.remediation.deleting && !isTakenBack(snapshot)) || holdsOrder(snapshot.hold, "On") || isBack) {
    return false;
  }
  return device?.final === true ? device.failures >= FINAL_TRIES : snapshot.remainingMs <= 0;
}

function deviceWait(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations, remediation } = snapshot;
  const { device } = observations;
  const inMs = device === undefined ? 0 : device.retryAtMs - now.monotonicMs;
  if (device === undefined || inMs <= 0) return undefined;
  const isKept = remediation.deleting && mayHaveTurnedOff(attempt);
  const kept = isKept
    ? "; the host may be OFF, and the remediation stays until a power device shows that it is on"
    : "";
  return waitBecause(snapshot, now, device.reason, `${device.message}${kept}`, inMs);
}

function clearOverride(snapshot: AttemptSnapshot, now: Now): Decision {
  if (snapshot.observations.override !== "None") return run({ do: "setBootOverride", override: "None" });
  const message = "no boot override is left";
  return transition(snapshot, now, {
    to: "Undoing",
    step: "BootOverrideCleared",
    message,
    attempt: { ...snapshot.attempt, bootOverride: false },
  });
}

const LEFT_OVERRIDE =
  "the host may have booted from the network, and no BMC answers: look for a boot override once it does, and clear it by hand";

function powerOn(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations, strategy } = snapshot;
  const { last } = observations.power;
  const order = observations.order?.action === "On" ? observations.order : undefined;
  const on = readsOn(snapshot) ?? backBySupply(snapshot);
  const isOn = last !== undefined && on !== undefined && isSettled(snapshot, last.atMs, now);
  if (isOn && !isOnOwed(snapshot, now)) {
    return transition(snapshot, now, {
      to: "Undoing",
      step: "PoweredOnAgain",
      ...on,
      ...(attempt.bootOverride && { message: `${on.message}: ${LEFT_OVERRIDE}`, warning: true }),
      attempt: {
        ...attempt,
        // No verdict could name it, and that boot has used the override, or the BMC has lost it with its power.
        bootOverride: attempt.bootOverride && !snapshot.remediation.deleting,
        action: "On",
        actionAtMs: now.epochMs,
        sent: true,
        done: true,
        deadlineMs: now.epochMs + strategy.timeoutMs,
      },
      conditions: [{ type: "PoweredOn", status: "True", reason: "ReadOn", message: on.message }],
    });
  }
  const due = isOnDue(snapshot, order, now, { unbounded: snapshot.remediation.deleting, runs: last?.runs });
  if (isOn || (last?.state === "Off" && due && !isTakenBack(snapshot))) return orderChecked(snapshot, order, now);
  // Devices whose identity is refused report no power state. The identity may have become acceptable since.
  const { identity } = observations;
  if (last?.state === "Unknown" && (identity === undefined || !allowsOn(identity.check))) {
    const check = freshIdentityCheck(snapshot, now);
    if (check === undefined) return run({ do: "verifyIdentity" });
    if (!check.verified && !allowsOn(check)) return waitForIdentity(snapshot, check, now);
  }
  const inMs = untilNextRead(snapshot, now);
  if (inMs <= 0) return run({ do: "readWhole" });
  if (snapshot.remainingMs > 0 || isOrderYoung(snapshot, now)) return { notes: [], effects: [], nextCheckMs: inMs };
  if (on !== undefined)
    return waitBecause(snapshot, now, "PowerOffPending", pendingOffMessage(snapshot.nodeName), inMs);
  const message =
    last?.supplied === true
      ? `the outlets of the host are on, but its BMC does not answer, so the host may have stayed off: check the host, and power it on by hand`
      : `the host does not read On although it was ordered on; ironfence repeats the order every few minutes: check the host, and power it on by hand`;
  return waitBecause(snapshot, now, "PowerOnTimeout", message, inMs);
}

/** Whether an On was ordered so recently, perhaps after the deadline, that the host may not have carried it out yet. */
function isOrderYoung({ attempt, intentAtMs }: AttemptSnapshot, now: Now): boolean {
  return attempt.action === "On" && now.monotonicMs - intentAtMs < ON_AWAITED_MS;
}

function waitForIdentity(
  snapshot: AttemptSnapshot,
  check: Extract<IdentityCheck, { verified: false }>,
  now: Now,
): Decision {
  const reason = check.reason === "Mismatch" ? "IdentityMismatch" : "IdentityUnknown";
  return waitBecause(snapshot, now, reason, check.message, IDENTITY_AGE_MAX_MS);
}

/**
 * Whether the undo must order the host on although it reads On: some BMCs report an old state for a long time, and
 * nothing else would power the host on. False if no order may be sent now: then the agent has to trust the reading.
 */
function isOnOwed(snapshot: AttemptSnapshot, now: Now): boolean {
  const { attempt, observations, hold, remainingMs } = snapshot;
  const order = observations.order?.attemptId === attempt.id ? observations.order : undefined;
  if (holdsOrder(hold, "On") || isTakenBack(snapshot) || remainingMs <= 0 || isSpent(attempt, "On", order))
    return false;
  if (order !== undefined && (order.action === "On" ? wasSent(order) : hadNoPowerOff(snapshot, order))) return false;
  const check = freshIdentityCheck(snapshot, now);
  return check === undefined || allowsOn(check);
}

/** Whether this process has sent the order. The intent, which is stored earlier, does not show that. */
function wasSent({ outcome, problem }: SentOrder): boolean {
  return outcome !== "Rejected" || problem !== undefined;
}
