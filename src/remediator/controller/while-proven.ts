import { abortReason, sleep } from "../../runtime/clock.ts";
import { isRenewedAfter, readingDue } from "../machine/states/powering-off.ts";
import { readPower } from "../effects/devices.ts";
import type { EffectContext } from "../effects/effect-context.ts";

/** Calls to the API were given up, since something more urgent is to be decided. */
export class GivenUp extends Error {
  override readonly name = "GivenUp";
}

/**
 * Runs `work`, which calls the API, while the power of a host that is proven off is still read in time: a slow call must not
 * let the proof grow old, nor hide that the host is on. The work is given up as soon as the proof is lost, the node shows that it
 * lives on another host, `isCurrent` ceases to hold, or `withinMs` are over. Without a proof to keep it just runs.
 *
 * @throws GivenUp; else what `work` throws. Nothing of the work runs on by then.
 */
export async function whileProven(
  context: EffectContext,
  { withinMs, isCurrent }: { withinMs: number; isCurrent: () => boolean },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { session, runtime } = context;
  const { provenAtMs } = session.seen.power;
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
        calls.abort(new GivenUp());
        break;
      }
      const due = readingDue(session.seen, now);
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

/** Whether there is no proof to be kept: the host is not proven off any more, cannot be asked again, or is not the node's. */
function isLost({ seen }: EffectContext["session"], provenAtMs: number): boolean {
  return seen.power.provenAtMs === undefined || seen.device?.final === true || isRenewedAfter(seen.lease, provenAtMs);
}
