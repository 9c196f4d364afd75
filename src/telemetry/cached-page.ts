import type { Clock } from "../runtime/clock.ts";

/** A page is never older than this, however long it takes to make. */
const AGE_MAX_MS = 15_000;
/** A page is kept for at least this time. */
const AGE_MIN_MS = 1_000;
/**
 * A page is kept for so many times the time that it takes to make. Making it then takes a twentieth of the time, or
 * more if one page takes over 0.75 s.
 */
const AGE_BY_COST = 20;

/**
 * Makes a page, or the data for pages, once for all requests within a short time: the longer it takes to make, the
 * longer it is kept. So a client that repeats its requests takes only a small part of the process's time.
 */
export function cachedPage<T>(clock: Clock, make: () => Promise<T>, ageByCost = AGE_BY_COST): () => Promise<T> {
  let made: { answer: Promise<T>; untilMs: number } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (made !== undefined && nowMs < made.untilMs) return made.answer;
    // While it is being made, all requests wait for the same page.
    const mine = { answer: make(), untilMs: Infinity };
    made = mine;
    const keep = (): void => {
      const doneMs = clock.monotonicMs();
      mine.untilMs = doneMs + Math.min(AGE_MAX_MS, Math.max(AGE_MIN_MS, ageByCost * (doneMs - nowMs)));
    };
    const forget = (): void => {
      if (made === mine) made = undefined;
    };
    mine.answer.then(keep, forget);
    return mine.answer;
  };
}
