import type { PowerState } from "../../bmc/interface/driver.ts";
import type { RemediationEvent, OrderFailure } from "./model/facts/event.ts";
import type { PowerOrder, Observations, SentOrder } from "./model/facts/observations.ts";
import { DEVICE_RETRY_MIN_MS } from "./model/decision/timings.ts";
import { maybeEffectiveAtMs } from "./rules/orders/power-orders.ts";

/** Adds the answer of the devices to a power order, or its failure, to the observations. */
export function orderAnswered(
  observations: Observations,
  event: Extract<RemediationEvent, { type: "OrderAnswered" }>,
): Observations {
  const { attemptId, action, failure, atMs } = event;
  const { order: previous } = observations;
  const outcome = failure === undefined ? "Acknowledged" : outcomeOf(failure, previous);
  const device = afterOrder(observations.device, action, outcome, atMs);
  const problem = outcome === "Rejected" && device !== undefined ? { problem: device } : {};
  const order: SentOrder = { attemptId, action, outcome, atMs, ...earlierEffect(previous, action), ...problem };
  const isUnseen = action === "ForceOff" && maybeEffectiveAtMs(order) === atMs;
  const count = (observations.unseenOffs?.count ?? 0) + 1;
  return { ...observations, device, order, ...(isUnseen && { unseenOffs: { count, lastAtMs: atMs } }) };
}

/** The first Off after another reading, or after none, shows the effect of one power-off order. */
export function unseenAfter(
  { unseenOffs, power }: Observations,
  state: PowerState | undefined,
): Observations["unseenOffs"] {
  if (unseenOffs === undefined || state !== "Off" || power.last?.state === "Off") return unseenOffs;
  return unseenOffs.count > 1 ? { ...unseenOffs, count: unseenOffs.count - 1 } : undefined;
}

/** After an order that was not sent, everything is checked again, as after a restart. */
export function orderDropped(
  observations: Observations,
  event: Extract<RemediationEvent, { type: "OrderDropped" }>,
): Observations {
  const { attemptId, action, isLate, atMs } = event;
  const { order: previous } = observations;
  const problem = previous?.action === action ? previous.problem : undefined;
  const unsent = { attemptId, action, outcome: "Rejected", atMs, ...earlierEffect(previous, action) } as const;
  return {
    ...observations,
    identity: undefined,
    order: { ...unsent, ...(problem && { problem }), ...(isLate && { isLate }) },
  };
}

function earlierEffect(previous: SentOrder | undefined, action: PowerOrder): { earlierEffectAtMs?: number } {
  const earlierEffectAtMs = previous?.action === action ? maybeEffectiveAtMs(previous) : undefined;
  return earlierEffectAtMs === undefined ? {} : { earlierEffectAtMs };
}

/** Problems that forbid orders but not readings. */
const OF_ORDERS: ReadonlySet<string> = new Set(["BMCPrivilegeTooLow", "BMCUnsupported"]);

/**
 * When the devices may be called again after a power-off order. A device that permanently refuses to power the host off
 * can still report its power. So it is read again soon, for an undo and its verdict, and not only after the long pause
 * that keeps accounts from being locked. After a lost answer the power is read at once, because the order may have had
 * its effect.
 */
function afterOrder(
  device: Observations["device"],
  action: PowerOrder,
  outcome: SentOrder["outcome"],
  atMs: number,
): Observations["device"] {
  if (device === undefined || action !== "ForceOff") return device;
  if (OF_ORDERS.has(device.reason)) return { ...device, retryAtMs: atMs + DEVICE_RETRY_MIN_MS };
  return outcome === "Uncertain" && !device.final ? { ...device, retryAtMs: atMs } : device;
}

/**
 * The outcome of an order that failed. `Unreachable`: there was no connection, or it broke. Then the order may be
 * repeated once. If the repeated order fails in the same way, only the power state shows whether the BMC received one.
 */
function outcomeOf({ code, isPartlyTaken }: OrderFailure, previous: SentOrder | undefined): SentOrder["outcome"] {
  if (isPartlyTaken || code === "Timeout" || code === "BadResponse") return "Uncertain";
  return code === "Unreachable" && previous?.outcome === "Rejected" ? "Uncertain" : "Rejected";
}
