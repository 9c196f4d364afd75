import { abortReason, sleep } from "../../runtime/clock.ts";
import { isRenewedAfter, readingDue } from "../machine/states/proven-off.ts";
import { readPower } from "../effects/power/devices.ts";
import type { EffectContext } from "../effects/context/effect-context.ts";

/** Thrown when calls to the API server were aborted because something more urgent must be decided. */
export class WorkAborted extends Error {
  override readonly name = "WorkAborted";
}

/**
 * Runs `work`, which calls the API server. Meanwhile it reads the power of a host that is proven off, because a slow
 * API call must neither let the proof expire nor hide that the host is on. The work is aborted when the proof is lost,
 * when the node renews its lease and so runs on another host, when `isCurrent` returns false, or after `withinMs`.
 * Without a proof, `work` just runs.
 *
 * @throws WorkAborted, or the error of `work`. When this function ends, `work` has ended too.
 */
export async function whileProven(
  context: EffectContext,
  { withinMs, isCurrent }: { withinMs: number; isCurrent: () => boolean },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { session, runtime } = context;
  const { provenAtMs } = session.observations.power;
  if (provenAtMs === undefined || isLost(session, provenAtMs)) return work(signal);
  const endsAtMs = session.now().monotonicMs + withinMs;
  const calls = new AbortController();
  const pause = new AbortController();
  const onAbort = (): void => calls.abort(abortReason(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  const end: { error?: unknown; isReached: boolean } = { isReached: false };
  const running = work(calls.signal)
    .catch((error: unknown) => {
      end.error = error;
    })
    .finally(() => {
      end.isReached = true;
      pause.abort();
    });
  try {
    while (!end.isReached && !calls.signal.aborted) {
      const now = session.now();
      const leftMs = endsAtMs - now.monotonicMs;
      if (isLost(session, provenAtMs) || !isCurrent() || leftMs <= 0) {
        calls.abort(new WorkAborted());
        break;
      }
      const due = readingDue(session.observations, now);
      if ("withinMs" in due) await readPower(context, due.withinMs, signal);
      else await sleep(runtime.clock, Math.min(due.inMs, leftMs), pause.signal).catch(() => undefined);
    }
  } catch (error) {
    calls.abort(error);
    throw error;
  } finally {
    await running;
    signal.removeEventListener("abort", onAbort);
  }
  if (end.error === undefined) return;
  throw calls.signal.aborted && !signal.aborted ? abortReason(calls.signal) : end.error;
}

/**
 * Whether the proof cannot be kept: the host is no longer proven off, its devices cannot be read again, or the node
 * runs on another host.
 */
function isLost({ observations }: EffectContext["session"], provenAtMs: number): boolean {
  return (
    observations.power.provenAtMs === undefined ||
    observations.device?.final === true ||
    isRenewedAfter(observations.lease, provenAtMs)
  );
}
