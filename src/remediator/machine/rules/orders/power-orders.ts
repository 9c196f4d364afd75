import { isCyclePending } from "../proof/pending-cycle.ts";
import type { Reason } from "../../model/decision/reasons.ts";
import type { SentOrder } from "../../model/facts/observations.ts";
import type { Now, AttemptSnapshot } from "../../model/facts/snapshot.ts";
import type { Attempt } from "../../model/decision/state.ts";
import {
  IDENTITY_AGE_MAX_MS,
  MARK_SETTLED_AFTER_MS,
  ON_PAUSE_MAX_MS,
  ORDER_SETTLED_AFTER_MS,
  REORDER_AFTER_MS,
  REORDER_PAUSE_MS,
} from "../../model/decision/timings.ts";

/**
 * Maximum number of orders of one action in one power cycle; an undo counts again from 0. So the agent does not forever
 * send orders to a host that ignores them or that something else turns on. The count is stored with each intent, so it
 * survives a restart.
 */
export const ORDERS_MAX = 4;

/**
 * The attempt with the intent of one more order. An order that was rejected does not count: the next one replaces it.
 */
export function withIntent(
  attempt: Attempt,
  action: SentOrder["action"],
  last: SentOrder | undefined,
  now: Now,
): Attempt {
  const before = attempt.action === action ? attempt.orders : 0;
  const orders = last?.outcome === "Rejected" ? Math.max(before, 1) : before + 1;
  return { ...attempt, action, actionAtMs: now.epochMs, orders, sent: false, done: false };
}

/**
 * Rejections after which the BMC may have received the order nevertheless: the connection broke, or a gateway answered
 * 503 instead of the BMC.
 */
const MAY_HAVE_EFFECT: ReadonlySet<Reason | undefined> = new Set(["BMCUnreachable", "BMCBusy"]);

/** When the last order of this action that may have had an effect was sent: this order or an earlier one. */
export function maybeEffectiveAtMs(order: SentOrder): number | undefined {
  const unheard = order.outcome === "Rejected" && !MAY_HAVE_EFFECT.has(order.problem?.reason);
  return unheard ? order.earlierEffectAtMs : order.atMs;
}

/** Whether neither this order nor an earlier one of its action can have had an effect. */
export function hadNoEffect(order: SentOrder): boolean {
  return maybeEffectiveAtMs(order) === undefined;
}

/** The reason and message if an order was not sent because API calls took too long; undefined otherwise. */
export function latenessOf(order: SentOrder | undefined): { reason: Reason; message: string } | undefined {
  if (order?.isLate !== true) return undefined;
  const message = `the API is too slow: more than ${IDENTITY_AGE_MAX_MS / 1_000} s passed between the check of the host's identity and the power order, so the order was not sent; look at the load of the API server`;
  return { reason: "ApiFailing", message };
}

/** Whether this remediation cannot have powered the host off: its only order was rejected. */
export function hadNoPowerOff({ attempt, status }: AttemptSnapshot, last: SentOrder): boolean {
  return hadNoEffect(last) && attempt.orders <= 1 && (status.retryCount ?? 0) === 0;
}

/**
 * Whether a reading On at `readAtMs` can be trusted, because no earlier power-off order or AC cycle can take effect
 * after it.
 */
export function isSettled(snapshot: AttemptSnapshot, readAtMs: number, now: Now): boolean {
  const { attempt, observations } = snapshot;
  const settledMs = settledAfterMs(snapshot);
  const { unseenOffs } = observations;
  if (isCyclePending(snapshot, readAtMs)) return false;
  if (unseenOffs !== undefined && readAtMs - unseenOffs.lastAtMs < settledMs) return false;
  if (attempt.action !== "ForceOff" || attempt.done) return true;
  const order = observations.order?.attemptId === attempt.id ? observations.order : undefined;
  if (order !== undefined && hadNoPowerOff(snapshot, order)) return true;
  const ageMs =
    order === undefined
      ? now.monotonicMs - snapshot.intentSeenAtMs
      : now.monotonicMs - (maybeEffectiveAtMs(order) ?? order.atMs);
  return ageMs - (now.monotonicMs - readAtMs) >= settledMs;
}

/** How long a reading On cannot be trusted after a power-off order that has shown no effect. */
export function settledAfterMs({ host }: Pick<AttemptSnapshot, "host">): number {
  return host.found && host.facts.isPoweredByMark ? MARK_SETTLED_AFTER_MS : ORDER_SETTLED_AFTER_MS;
}

/** The message while a BMC may still carry out a power-off order that has shown no effect. */
export function pendingOffMessage(nodeName: string): string {
  return `a power-off order for the host of node ${nodeName} has shown no effect, and its BMC may still carry it out: the agent waits up to ${ORDER_SETTLED_AFTER_MS / 1_000} s, and then reads the power again`;
}

/** Whether no further order of that action may be sent in this power cycle. */
export function isSpent(attempt: Attempt, action: SentOrder["action"], last: SentOrder | undefined): boolean {
  return attempt.action === action && attempt.orders >= ORDERS_MAX && last?.outcome !== "Rejected";
}

/** The time since the last order, or since its intent if this process has not sent it, in milliseconds. */
export function orderAgeMs({ intentAtMs }: AttemptSnapshot, last: SentOrder | undefined, now: Now): number {
  return now.monotonicMs - (last?.atMs ?? intentAtMs);
}

/**
 * Whether a host that was proven off and is no longer off may be ordered off again now, after a pause that grows with
 * each order.
 */
export function isPauseOver(snapshot: AttemptSnapshot, last: SentOrder | undefined, now: Now): boolean {
  return orderAgeMs(snapshot, last, now) >= REORDER_PAUSE_MS * (snapshot.attempt.orders - 1);
}

/**
 * Whether a power-on order is due for a host that does not read On: at once if this process knows of no order or the
 * last one was rejected, otherwise after a pause that grows with each order.
 *
 * @param options.unbounded the number of orders is not limited, because the host must not be left off.
 * @param options.runs the host already runs, though not on all of its devices: then even a rejected order is repeated
 * only after the pause.
 */
export function isOnDue(
  snapshot: AttemptSnapshot,
  last: SentOrder | undefined,
  now: Now,
  { unbounded = false, runs = false }: { unbounded?: boolean; runs?: boolean | undefined } = {},
): boolean {
  if (last?.outcome === "Rejected" && !runs) return true;
  const { attempt } = snapshot;
  const spent = isSpent(attempt, "On", last);
  if (spent && !unbounded) return false;
  if (!spent && last === undefined) return true;
  return orderAgeMs(snapshot, last, now) >= Math.min(REORDER_AFTER_MS * attempt.orders, ON_PAUSE_MAX_MS);
}

/**
 * What shows that a host is on if its outlets are on and its BMC does not answer: since the power-on, its node has
 * renewed its lease in a new boot. Undefined if that is not so.
 */
export function backBySupply({
  observations,
  status,
  node,
  attempt,
  intentAtMs,
}: AttemptSnapshot): { message: string; warning: boolean } | undefined {
  const { order, power, lease } = observations;
  const [before, present] = [status.node?.bootID, node?.status.nodeInfo?.bootID];
  const isNewBoot = before !== undefined && present !== undefined && before !== present;
  // After a restart, the process knows only when the intent was stored.
  const intendedAtMs = attempt.action === "On" && attempt.sent ? intentAtMs : Infinity;
  const onOrderedAtMs = order?.action === "On" ? order.atMs : intendedAtMs;
  if (power.last?.supplied !== true || !isNewBoot || (lease?.renewedAtMs ?? -Infinity) <= onOrderedAtMs) {
    return undefined;
  }
  return { message: "the outlets of the host are on, and its node is back in a new boot", warning: false };
}

/**
 * What the last reading of all devices shows if the host is on; undefined if it is not. After the deadline, a host that
 * runs counts as on even if some device does not read On: another power cycle would not help.
 */
export function readsOn({
  observations,
  remainingMs,
}: AttemptSnapshot): { message: string; warning: boolean } | undefined {
  const { last } = observations.power;
  if (last?.state === "On") return { message: "the host reads On", warning: false };
  if (last?.runs !== true || remainingMs > 0) return undefined;
  const message = `the host runs, but not all of its power devices read On (${last.raw}): check the others`;
  return { message, warning: true };
}
