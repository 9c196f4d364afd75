import { BmcError } from "../../../bmc/interface/errors.ts";
import type { OnOptions } from "../../../bmc/topology/topology.ts";
import { HeldError, PartlyTakenError } from "../../../bmc/topology/order-errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import type { EffectContext } from "../context/effect-context.ts";
import { fieldsOf } from "../context/effect-context.ts";
import { ownerOf } from "./claim-host.ts";
import type { PowerOrder, Observations } from "../../machine/model/facts/observations.ts";
import type { HostPower, OrderCheck } from "../../hosts/model/host.ts";
import { OrderNotDueError } from "../../hosts/model/host.ts";
import type { OrderObstacle } from "../../machine/rules/orders/order-obstacle.ts";
import { identityLeftMs, obstacleBesidesIdentity, orderObstacle } from "../../machine/rules/orders/order-obstacle.ts";
import type { IdentityCheck } from "../../../bmc/identity/identity-check.ts";
import { deviceProblem } from "../../hosts/model/device-problem.ts";
import type { OrderFailure } from "../../machine/model/facts/event.ts";

// Effects on a host's devices. Failures of devices are events, for `decide` to judge. Errors of the API server are
// thrown, and `recover` in controller/recover.ts backs off.

/** Verifies that the host that answers is the one that is meant. */
export async function verifyIdentity(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  // While the live read of the node is running, the watched node shows its hardware equally well.
  const node = session.observations.examined?.node ?? context.node;
  const checked = await onDevice<IdentityCheck>(context, signal, (power) => power.verifyIdentity(node, signal));
  if ("value" in checked) {
    session.observe({ type: "IdentityRead", verdict: checked.value, atMs: session.now().monotonicMs });
  }
}

/** Reads the power state. @param withinMs bounds the time of the reading; undefined does not bound it. */
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
    // If a Secret cannot be read, the power is not known either.
    session.observe({ type: "PowerReadFailed", atMs: session.now().monotonicMs });
    throw error;
  });
  const atMs = session.now().monotonicMs;
  if ("value" in reading) session.observe({ type: "PowerRead", reading: reading.value, atMs });
  else session.observe({ type: "PowerReadFailed", atMs });
}

/** Reads the power of every device of every level. */
export async function readWhole(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session } = context;
  const reading = await onDevice(context, signal, (power) => power.readWhole(signal));
  const atMs = session.now().monotonicMs;
  session.observe({ type: "WholePowerRead", reading: "value" in reading ? reading.value : undefined, atMs });
}

/**
 * Sends one power order, once. Its intent is stored and the identity was verified. Neither may be used for a second
 * order. If the check of the identity is too old, a power-off is not sent, and everything is checked again, as after a
 * restart. An On may be repeated, so only the identity is checked again: a slow API server must not keep a host off.
 */
export async function orderPower(
  context: EffectContext,
  action: PowerOrder,
  attemptId: string,
  signal: AbortSignal,
  options: Pick<OnOptions, "outletsOnly"> = {},
): Promise<void> {
  const { session, runtime } = context;
  const obstacle = (): OrderObstacle | undefined =>
    orderObstacle(action, session.observations.identity, context.orderFacts(), session.now().monotonicMs);
  if (action === "On" && obstacle() === "IdentityTooOld") await verifyIdentity(context, signal);
  const { identity } = session.observations;
  const drop = (isLate: boolean): void => {
    // The order is dropped for one of two reasons. This process was suspended or waited for the API server, and another
    // process may hold the agent lease now. Or a hold began, or the target was edited, during the calls to the API
    // server.
    runtime.logger.warn({ ...fieldsOf(session), action, attempt: attemptId, isLate }, "power order not sent");
    session.observe({ type: "OrderDropped", attemptId, action, isLate, atMs: session.now().monotonicMs });
  };
  const found = obstacle();
  if (found !== undefined) return drop(found === "IdentityTooOld");
  session.observe({ type: "OrderStarted" });
  runtime.logger.info({ ...fieldsOf(session), action, attempt: attemptId }, "power order");
  const sent = await onDevice(context, signal, async (power) => {
    if (action === "On") return powerOn(context, power, signal, options);
    return powerOff(context, power, identity, signal);
  });
  if ("value" in sent && sent.value instanceof OrderNotDueError) {
    return drop(sent.value.isLate);
  }
  const failure = "error" in sent ? failureOf(sent.error) : undefined;
  session.observe({ type: "OrderAnswered", attemptId, action, failure, atMs: session.now().monotonicMs });
}

async function powerOn(
  context: EffectContext,
  power: HostPower,
  signal: AbortSignal,
  options: Pick<OnOptions, "outletsOnly">,
): Promise<OrderNotDueError | undefined> {
  await context.host?.ensureOurs(context.session.subject, "On", signal);
  const obstacle = (): OrderObstacle | undefined => obstacleBesidesIdentity("On", context.orderFacts());
  if (obstacle() !== undefined) return new OrderNotDueError("the power-on is no longer allowed", false);
  try {
    await power.on(signal, { ...options, obstacle });
    return undefined;
  } catch (error) {
    if (error instanceof HeldError) return new OrderNotDueError(error.message, false, { cause: error });
    throw error;
  }
}

/** Checks that the host is still ours and orders it off, while the identity check is fresh enough. */
async function powerOff(
  context: EffectContext,
  power: HostPower,
  identity: Observations["identity"],
  signal: AbortSignal,
): Promise<OrderNotDueError | undefined> {
  const { session, host, runtime } = context;
  const check: OrderCheck = {
    leftMs: () => Math.max(identityLeftMs(identity, session.now().monotonicMs), 0),
    ensureDue: () => {
      const found = orderObstacle("ForceOff", identity, context.orderFacts(), session.now().monotonicMs);
      if (found === "IdentityTooOld") throw new OrderNotDueError("API calls took too long", true);
      if (found !== undefined) throw new OrderNotDueError("the power-off is no longer allowed", false);
    },
    obstacle: () => obstacleBesidesIdentity("ForceOff", context.orderFacts()),
  };
  try {
    await withDeadline(runtime.clock, "the read of the owner of the host", check.leftMs(), signal, async (bounded) => {
      await host?.ensureOurs(session.subject, "ForceOff", bounded);
    }).catch((error: unknown) => {
      throw error instanceof DeadlineError ? new OrderNotDueError(error.message, true, { cause: error }) : error;
    });
    check.ensureDue();
    await power.forceOff(signal, check);
    return undefined;
  } catch (error) {
    if (error instanceof OrderNotDueError) return error;
    if (error instanceof HeldError) return new OrderNotDueError(error.message, false, { cause: error });
    throw error;
  }
}

function failureOf(error: unknown): OrderFailure {
  return {
    code: error instanceof BmcError ? error.code : undefined,
    isPartlyTaken: error instanceof PartlyTakenError,
  };
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
  if ("value" in read) session.observe({ type: "BootOverrideRead", override: read.value });
}

/**
 * Calls the devices of the host and opens them first if necessary. Reports success or failure, which decides about the
 * backoff.
 */
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
    if (session.observations.devicesClosed) session.observe({ type: "DevicesOpened" });
    const value = await call(session.power);
    if (session.observations.device !== undefined) session.observe({ type: "DeviceAnswered" });
    return { value };
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    const known = error instanceof DeadlineError ? new BmcError("Timeout", error.message, { cause: error }) : error;
    const problem = deviceProblem(known);
    if (problem === undefined) throw error;
    const atMs = session.now().monotonicMs;
    session.observe({ type: "DeviceFailed", problem, wasOpen, jitter: runtime.random.next(), atMs });
    const { failures } = session.observations.device ?? {};
    runtime.logger.warn({ ...fieldsOf(session), reason: problem.reason, failures, err: known }, "device call failed");
    // The next call opens them again, with fresh credentials and without a session that the BMC may have forgotten.
    await session.closeDevices();
    return { error: known };
  }
}
