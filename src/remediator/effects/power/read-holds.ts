import { isKubeError } from "../../../kube/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import type { EffectContext } from "../context/effect-context.ts";
import { fieldsOf } from "../context/effect-context.ts";
import { IDENTITY_AGE_MAX_MS } from "../../machine/model/decision/timings.ts";
import type { PauseReason, Hold } from "../../machine/model/facts/hold.ts";
import { holdOf } from "../../machine/model/facts/hold.ts";
import type { RemediationEvent } from "../../machine/model/facts/event.ts";

/**
 * Reads the holds on power orders live, because a watch may be late: the stop switch, and the maintenance of the
 * target. A failed read holds power-offs but no power-on, because a host must not stay off because of it.
 */
export async function readHolds(context: EffectContext, signal: AbortSignal): Promise<HoldsRead> {
  const { session, host } = context;
  const readLive = <T>(what: string, read: (signal: AbortSignal) => Promise<T>): Promise<LiveRead<T>> =>
    readOnce(context, what, read, signal);
  const target = host === undefined ? "the target" : `${host.ref.kind} ${host.ref.namespace}/${host.ref.name}`;
  const [paused, maintenance] = await Promise.all([
    readLive("the stop switch", (bounded) => context.readStopSwitch(bounded)),
    readLive(target, (bounded) => host?.readMaintenance(bounded) ?? Promise.resolve(undefined)),
  ]);
  const failed = "failed" in paused || "failed" in maintenance;
  return { type: "HoldsRead", found: holdFrom(paused, maintenance), failed, atMs: session.now().monotonicMs };
}

export type HoldsRead = Extract<RemediationEvent, { type: "HoldsRead" }>;

type LiveRead<T> = { value: T } | { failed: string };

function holdFrom(
  paused: LiveRead<PauseReason | undefined>,
  maintenance: LiveRead<string | undefined>,
): Hold | undefined {
  const held = "value" in maintenance ? maintenance.value : undefined;
  const [failed] = [paused, maintenance].flatMap((read) => ("failed" in read ? read.failed : []));
  const found = "value" in paused ? paused.value : undefined;
  const unread: PauseReason | undefined = failed === undefined ? undefined : { reason: failed, isUnread: true };
  return holdOf(found ?? unread, held);
}

async function readOnce<T>(
  { runtime, session }: EffectContext,
  what: string,
  read: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<LiveRead<T>> {
  try {
    // A later answer would be too late for the order.
    return { value: await withDeadline(runtime.clock, `the read of ${what}`, IDENTITY_AGE_MAX_MS, signal, read) };
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    if (!isKubeError(error) && !(error instanceof DeadlineError)) throw error;
    runtime.logger.warn({ ...fieldsOf(session), what, err: error }, "not read before a power order");
    return { failed: `${what} could not be read: ${error.message}` };
  }
}
