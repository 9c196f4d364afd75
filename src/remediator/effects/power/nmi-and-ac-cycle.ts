import { BmcError } from "../../../bmc/interface/errors.ts";
import type { OnceAnswer } from "../../../bmc/topology/send-once.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import type { HostPower } from "../../hosts/model/host.ts";
import { HostRefusal } from "../../hosts/model/host.ts";
import type { OrderObstacle } from "../../machine/rules/orders/order-obstacle.ts";
import { identityLeftMs, obstacleBesidesIdentity, orderObstacle } from "../../machine/rules/orders/order-obstacle.ts";
import type { EffectContext } from "../context/effect-context.ts";
import { fieldsOf } from "../context/effect-context.ts";

/**
 * An NMI or an AC cycle, which is sent at most once. Its intent is stored in the status before. Power orders are not of
 * this kind: `devices.ts` sends them, and a state may order again.
 */
interface StoredOrder {
  name: string;
  /**
   * Whether the API server has stored the intent. The CRD of an older version drops the field, so a restart would
   * repeat the order.
   */
  isStored: boolean;
  by: HostPower["acCycle"];
  withinMs: number;
}

/** Sends an NMI to a host that may be powered off now. */
export async function sendNmi(context: EffectContext, withinMs: number, signal: AbortSignal): Promise<void> {
  const { power, status } = context.session;
  const isStored = status.diagnostics !== undefined;
  const order: StoredOrder = { name: "NMI", isStored, by: power?.sendNmi?.bind(power), withinMs };
  context.session.observe({ type: "NmiAnswered", answer: await sendOnce(context, order, signal) });
}

/** Orders an AC cycle of a host that is off. */
export async function acCycle(
  context: EffectContext,
  attemptId: string,
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { power, status } = context.session;
  const isStored = status.acCycle?.attemptID === attemptId;
  const order: StoredOrder = { name: "AC cycle", isStored, by: power?.acCycle?.bind(power), withinMs };
  context.session.observe({ type: "AcCycleAnswered", answer: await sendOnce(context, order, signal) });
}

/**
 * Sends an order once. What holds a power-off holds this order too. A failure is an answer, because the fence does not
 * depend on it.
 */
async function sendOnce(context: EffectContext, order: StoredOrder, signal: AbortSignal): Promise<OnceAnswer> {
  const { session, runtime } = context;
  const answer = await send(context, order, signal);
  if (signal.aborted) throw abortReason(signal);
  const fields = { ...fieldsOf(session), order: order.name, outcome: answer.outcome, detail: answer.message };
  runtime.logger.info(fields, "order that is sent once");
  return answer;
}

async function send(context: EffectContext, order: StoredOrder, signal: AbortSignal): Promise<OnceAnswer> {
  const { session, host, runtime } = context;
  if (!order.isStored) return notSent("the API server has not stored it: update the CRDs");
  const { identity } = session.observations;
  const obstacle = (): OrderObstacle | undefined =>
    orderObstacle("ForceOff", identity, context.orderFacts(), session.now().monotonicMs);
  try {
    const leftMs = Math.max(identityLeftMs(identity, session.now().monotonicMs), 0);
    await withDeadline(runtime.clock, "the read of the owner of the host", leftMs, signal, async (bounded) => {
      await host?.ensureOurs(session.subject, "ForceOff", bounded);
    });
  } catch (error) {
    if (error instanceof DeadlineError || error instanceof HostRefusal || isKubeError(error)) {
      return notSent(error.message);
    }
    throw error;
  }
  const found = obstacle();
  if (found !== undefined) return notSent(`power-offs are held: ${found}`);
  if (order.by === undefined) return notSent(`no device of the host can send an ${order.name}`);
  try {
    const { by } = order;
    // The driver identifies the host again right before the order, so the age of the identity does not count here. All
    // other obstacles do.
    const held = (): OrderObstacle | undefined => obstacleBesidesIdentity("ForceOff", context.orderFacts());
    const sending = (bounded: AbortSignal): Promise<OnceAnswer> => by(bounded, held);
    return await withDeadline(runtime.clock, `the ${order.name}`, order.withinMs, signal, sending);
  } catch (error) {
    if (error instanceof DeadlineError || (error instanceof BmcError && error.code !== "Aborted")) {
      return { outcome: "Uncertain", message: error.message };
    }
    throw error;
  }
}

function notSent(message: string): OnceAnswer {
  return { outcome: "NotSent", message };
}
