import { BmcError } from "../../bmc/errors.ts";
import { PartlyTakenError } from "../../bmc/topology.ts";
import { abortReason } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { backoffMs } from "../../runtime/random.ts";
import type { EffectContext } from "./effect-context.ts";
import { fieldsOf } from "./effect-context.ts";
import { heardAtMs } from "../machine/rules/power-orders.ts";
import { ownerOf } from "./claim-host.ts";
import { NOTHING_READ, recordFailedReading, recordReading, recordWhole } from "../machine/rules/off-proof.ts";
import { deviceProblem } from "../machine/model/reasons.ts";
import type { Seen, SentOrder } from "../machine/model/observations.ts";
import type { HostPower, IdentityVerdict, OrderGate } from "../hosts/host.ts";
import { allowsOn, OrderNotDueError } from "../hosts/host.ts";
import {
  DEVICE_FINAL_RETRY_MS,
  DEVICE_RETRY_MAX_MS,
  DEVICE_RETRY_MIN_MS,
  IDENTITY_AGE_MAX_MS,
} from "../machine/model/timings.ts";

// Effects on a host's devices. Their failures are noted in the session, for `decide` to judge; none is thrown.

/** Compares who answers with who the host must be. */
export async function verifyIdentity(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  // While the live node is still being read, the watched one tells what hardware it runs on just as well.
  const node = session.seen.examined?.node ?? context.node;
  const verdict = await onDevice<IdentityVerdict>(context, signal, (power) => power.verifyIdentity(node, signal));
  if ("value" in verdict) {
    session.seen = { ...session.seen, identity: { verdict: verdict.value, atMs: session.now().monotonicMs } };
  }
}

/** Reads the power state freshly. @param withinMs bounds the reading where it must not be late. */
export async function readPower(
  context: EffectContext,
  withinMs: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { session, runtime } = context;
  const read = onDevice(context, signal, (power) =>
    withinMs === undefined
      ? power.readPower(signal)
      : withDeadline(runtime.clock, "the reading of the power state", withinMs, signal, (bounded) =>
          power.readPower(bounded),
        ),
  );
  const reading = await read.catch((error: unknown) => {
    // Where a Secret cannot be read nothing is known of the power either.
    session.seen = { ...session.seen, power: recordFailedReading(session.seen.power, session.now().monotonicMs) };
    throw error;
  });
  const { power } = session.seen;
  const atMs = session.now().monotonicMs;
  const next = "value" in reading ? recordReading(power, reading.value, atMs) : recordFailedReading(power, atMs);
  session.seen = { ...session.seen, power: next };
}

/** Reads the power of all devices freshly. */
export async function readWhole(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  const reading = await onDevice(context, signal, (power) => power.readWhole(signal));
  const atMs = session.now().monotonicMs;
  const whole = "value" in reading ? reading.value : { state: "Unknown" as const, raw: "nothing", runs: false };
  session.seen = { ...session.seen, power: recordWhole(whole, atMs) };
}

/**
 * Sends one power order. Its intent is stored and the identity verified; both are used up by it, whatever comes of it. A
 * power-off whose check of the identity is too old is not sent: then all is looked at again, as after a restart. An On, which
 * may be repeated, has its identity checked once more instead: a slow API must not keep a host off.
 */
export async function orderPower(
  context: EffectContext,
  action: SentOrder["action"],
  attemptId: string,
  signal: AbortSignal,
): Promise<void> {
  const { session, runtime } = context;
  const isFresh = (): boolean => leftMs(session.seen.identity, session.now().monotonicMs) >= 0;
  if (action === "On" && !isFresh()) await verifyIdentity(context, signal);
  const { order: previous, identity } = session.seen;
  const isLate = !isFresh();
  const isRefused = action === "On" && identity !== undefined && !allowsOn(identity.verdict);
  const heardBeforeMs = previous?.action === action ? heardAtMs(previous) : undefined;
  const heardBefore = heardBeforeMs === undefined ? {} : { heardBeforeMs };
  const drop = (isLate: boolean): void => {
    // This process stood still (suspended, or waiting for the API server), and its lease may be another's by now; or the
    // order was stopped, or its target edited, while API calls were being made.
    runtime.logger.warn({ ...fieldsOf(session), action, attempt: attemptId, isLate }, "power order not sent");
    const problem = previous?.action === action ? previous.problem : undefined;
    const unsent = { attemptId, action, outcome: "Rejected", atMs: session.now().monotonicMs } as const;
    session.seen = {
      ...session.seen,
      identity: undefined,
      order: { ...unsent, ...heardBefore, ...(problem && { problem }), ...(isLate && { isLate }) },
    };
  };
  if (isLate || isRefused || !context.mayOrder(action)) {
    return drop(isLate);
  }
  session.seen = { ...session.seen, identity: undefined, power: NOTHING_READ };
  runtime.logger.info({ ...fieldsOf(session), action, attempt: attemptId }, "power order");
  const sent = await onDevice(context, signal, async (power) => {
    if (action === "On") return powerOn(context, power, signal);
    return powerOff(context, power, identity, signal);
  });
  if ("value" in sent && sent.value instanceof OrderNotDueError) {
    return drop(sent.value.isLate);
  }
  const outcome = "error" in sent ? outcomeOf(sent.error, previous) : "Acknowledged";
  const atMs = session.now().monotonicMs;
  const device = afterOrder(session.seen.device, action, atMs);
  const problem = outcome === "Rejected" && device !== undefined ? { problem: device } : {};
  session.seen = { ...session.seen, device, order: { attemptId, action, outcome, atMs, ...heardBefore, ...problem } };
}

/** Milliseconds for which a check of the identity still serves an order; negative where it does not. */
function leftMs(identity: Seen["identity"], nowMs: number): number {
  return identity === undefined ? -Infinity : identity.atMs + IDENTITY_AGE_MAX_MS - nowMs;
}

async function powerOn(
  context: EffectContext,
  power: HostPower,
  signal: AbortSignal,
): Promise<OrderNotDueError | undefined> {
  await context.host?.ensureOurs(context.session.subject, "On", signal);
  if (!context.mayOrder("On")) return new OrderNotDueError("the power-on may not go out any more", false);
  await power.on(signal);
  return undefined;
}

/** Looks whose the host is and orders it off, while the check of its identity still serves. */
async function powerOff(
  context: EffectContext,
  power: HostPower,
  identity: Seen["identity"],
  signal: AbortSignal,
): Promise<OrderNotDueError | undefined> {
  const { session, host, runtime } = context;
  const gate: OrderGate = {
    leftMs: () => Math.max(leftMs(identity, session.now().monotonicMs), 0),
    ensureDue: () => {
      if (leftMs(identity, session.now().monotonicMs) < 0) throw new OrderNotDueError("API calls took too long", true);
      if (!context.mayOrder("ForceOff")) throw new OrderNotDueError("the power-off may not go out any more", false);
    },
  };
  try {
    await withDeadline(runtime.clock, "the look at whose the host is", gate.leftMs(), signal, async (bounded) => {
      await host?.ensureOurs(session.subject, "ForceOff", bounded);
    }).catch((error: unknown) => {
      throw error instanceof DeadlineError ? new OrderNotDueError(error.message, true, { cause: error }) : error;
    });
    gate.ensureDue();
    await power.forceOff(signal, gate);
    return undefined;
  } catch (error) {
    if (error instanceof OrderNotDueError) return error;
    throw error;
  }
}

/** Problems of an order that say nothing against a reading. */
const OF_ORDERS: ReadonlySet<string> = new Set(["BMCPrivilegeTooLow", "BMCUnsupported"]);

/**
 * A device that will not power the host off for good can still tell how it is: who takes back what was done, and gives the
 * verdict, does so as soon as it has read that, not after the long pause that keeps accounts from being locked.
 */
function afterOrder(device: Seen["device"], action: SentOrder["action"], atMs: number): Seen["device"] {
  if (device === undefined || action !== "ForceOff" || !OF_ORDERS.has(device.reason)) return device;
  return { ...device, retryAtMs: atMs + DEVICE_RETRY_MIN_MS };
}

/**
 * What a failed order came to. One that got no connection was not sent, or its connection broke: it is sent again once; a
 * BMC that does so every time (it restarts, it drops connections) is believed by its state.
 */
function outcomeOf(error: unknown, previous: SentOrder | undefined): SentOrder["outcome"] {
  const code = error instanceof BmcError ? error.code : undefined;
  if (error instanceof PartlyTakenError || code === "Timeout" || code === "BadResponse") return "Uncertain";
  return code === "Unreachable" && previous?.outcome === "Rejected" ? "Uncertain" : "Rejected";
}

/** Sets the boot override and reads it back. */
export async function setBootOverride(
  context: EffectContext,
  override: "NetworkOnce" | "None",
  signal: AbortSignal,
): Promise<void> {
  const { session } = context;
  const read = await onDevice(context, signal, async (power) => {
    await power.setBootOverride(override, signal);
    const present = await power.readBootOverride(signal);
    if (present !== override) {
      throw new BmcError("Refused", `the BMC took the boot override ${override}, but reports ${present}`);
    }
    return present;
  });
  if ("value" in read) session.seen = { ...session.seen, override: read.value };
}

/** Calls the host's devices, opening them where needed, and notes failure or success for the back-off. */
async function onDevice<T>(
  context: EffectContext,
  signal: AbortSignal,
  call: (power: HostPower) => Promise<T>,
): Promise<{ value: T } | { error: unknown }> {
  const { session, host, runtime } = context;
  const wasOpen = session.power !== undefined;
  try {
    if (host === undefined) throw new BmcError("Unreachable", "the host's target is gone");
    session.power ??= await host.open(ownerOf(session), signal);
    session.seen = { ...session.seen, devicesClosed: false };
    const value = await call(session.power);
    session.seen = { ...session.seen, device: undefined };
    return { value };
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    const known = error instanceof DeadlineError ? new BmcError("Timeout", error.message, { cause: error }) : error;
    const found = deviceProblem(known);
    if (found === undefined) throw error;
    // A password that was read a while ago may have been changed since: it is read anew before that is believed.
    const isStale = wasOpen && known instanceof BmcError && known.code === "AuthFailed";
    const problem = isStale ? { ...found, final: false } : found;
    const previous = session.seen.device;
    const failures = previous?.final === problem.final ? previous.failures + 1 : 1;
    const inMs = problem.final
      ? DEVICE_FINAL_RETRY_MS
      : backoffMs(runtime.random, DEVICE_RETRY_MIN_MS, DEVICE_RETRY_MAX_MS, failures - 1);
    const retryAtMs = session.now().monotonicMs + inMs;
    session.seen = { ...session.seen, device: { ...problem, failures, retryAtMs } };
    runtime.logger.warn({ ...fieldsOf(session), reason: problem.reason, failures, err: known }, "device call failed");
    // Opened anew next time: with fresh credentials, and without a session that the BMC may have forgotten.
    await session.closeDevices();
    return { error: known };
  }
}
