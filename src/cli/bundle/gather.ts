import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { inParallel } from "../../runtime/in-parallel.ts";
import type { Part, PartDeps, PartFile } from "./part.ts";

const PARTS_AT_ONCE_MAX = 4;

/** The results of all parts. */
export interface Gathered {
  files: PartFile[];
  /** What is missing, by part. */
  gaps: { part: string; why: string }[];
}

/**
 * Reads every part, each within its own deadline and all of them within `timeoutMs`. A part that fails leaves a gap.
 *
 * @param onEnd called after each part.
 * @throws the reason of `signal` on abort.
 */
export async function gather(
  parts: readonly Part[],
  deps: PartDeps,
  { clock, timeoutMs, onEnd }: { clock: Clock; timeoutMs: number; onEnd: (part: string, isComplete: boolean) => void },
  signal: AbortSignal,
): Promise<Gathered> {
  const endMs = clock.monotonicMs() + timeoutMs;
  const results = await inParallel(parts, PARTS_AT_ONCE_MAX, async (part) => {
    const leftMs = endMs - clock.monotonicMs();
    const result = await readPart(part, deps, { clock, leftMs }, signal);
    onEnd(part.name, result.gaps.length === 0);
    return result;
  });
  return { files: results.flatMap(({ files }) => files), gaps: results.flatMap(({ gaps }) => gaps) };
}

async function readPart(
  { name, timeoutMs, read }: Part,
  deps: PartDeps,
  { clock, leftMs }: { clock: Clock; leftMs: number },
  signal: AbortSignal,
): Promise<Gathered> {
  if (leftMs <= 0) return { files: [], gaps: [{ part: name, why: "the time of the whole bundle was over" }] };
  try {
    const deadlineMs = Math.ceil(Math.min(timeoutMs, leftMs));
    const { files, gaps } = await withDeadline(clock, name, deadlineMs, signal, (within) => read(deps, within));
    return { files: [...files], gaps: gaps.map((why) => ({ part: name, why })) };
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    return { files: [], gaps: [{ part: name, why: error instanceof DeadlineError ? `cut off: ${why}` : why }] };
  }
}
