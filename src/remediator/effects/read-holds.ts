import { isKubeError } from "../../kube/errors.ts";
import { abortReason } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { EffectContext } from "./effect-context.ts";
import { fieldsOf } from "./effect-context.ts";
import { IDENTITY_AGE_MAX_MS } from "../machine/model/timings.ts";
import type { Paused, Stop } from "../machine/model/hold.ts";
import { stopFor } from "../machine/model/hold.ts";
import type { RemediationEvent } from "../machine/model/event.ts";

/**
 * Looks live at what holds power orders, since a watch may be late: the stop switch, and maintenance of the target. A look that
 * fails holds power-offs, and no power-on: a host must not stay off for it.
 */
export async function lookAtStops(context: EffectContext, signal: AbortSignal): Promise<HoldsRead> {
  const { session, host } = context;
  const look = <T>(what: string, read: (signal: AbortSignal) => Promise<T>): Promise<Look<T>> =>
    lookOnce(context, what, read, signal);
  const target = host === undefined ? "the target" : `${host.ref.kind} ${host.ref.namespace}/${host.ref.name}`;
  const [paused, maintenance] = await Promise.all([
    look("the stop switch", (bounded) => context.readStopSwitch(bounded)),
    look(target, (bounded) => host?.lookAtMaintenance(bounded) ?? Promise.resolve(undefined)),
  ]);
  const failed = "failed" in paused || "failed" in maintenance;
  return { type: "HoldsRead", found: stopFrom(paused, maintenance), failed, atMs: session.now().monotonicMs };
}

export type HoldsRead = Extract<RemediationEvent, { type: "HoldsRead" }>;

type Look<T> = { value: T } | { failed: string };

function stopFrom(paused: Look<Paused | undefined>, maintenance: Look<string | undefined>): Stop | undefined {
  const held = "value" in maintenance ? maintenance.value : undefined;
  const [failed] = [paused, maintenance].flatMap((look) => ("failed" in look ? look.failed : []));
  const found = "value" in paused ? paused.value : undefined;
  const unread: Paused | undefined = failed === undefined ? undefined : { reason: failed, isUnread: true };
  return stopFor(found ?? unread, held);
}

async function lookOnce<T>(
  { runtime, session }: EffectContext,
  what: string,
  read: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<Look<T>> {
  try {
    // Whatever comes later is too late for the order that it is for.
    return { value: await withDeadline(runtime.clock, `the read of ${what}`, IDENTITY_AGE_MAX_MS, signal, read) };
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    if (!isKubeError(error) && !(error instanceof DeadlineError)) throw error;
    runtime.logger.warn({ ...fieldsOf(session), what, err: error }, "not looked at before a power order");
    return { failed: `${what} could not be looked at: ${error.message}` };
  }
}
