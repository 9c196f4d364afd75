import type { Clock } from "../runtime/clock.ts";

/** A page is never older than this, however long it takes to make. */
const AGE_MAX_MS = 15_000;
/** Nor is it made more often than this. */
const AGE_MIN_MS = 1_000;
/**
 * A page that takes a millisecond is kept for so many of them: a twentieth of the time goes into making it, or more if
 * it takes over 0.75 s.
 */
const AGE_BY_COST = 20;

/**
 * A page, or what pages are made from, that is made once for all that ask within a while: the longer it takes to make,
 * the longer it is kept. A client that asks for it again and again gets no more than a small part of the process's
 * time.
 */
export function cachedPage<T>(clock: Clock, make: () => Promise<T>, ageByCost = AGE_BY_COST): () => Promise<T> {
  let made: { answer: Promise<T>; untilMs: number } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (made !== undefined && nowMs < made.untilMs) return made.answer;
    // Until it is there, all wait for the same one.
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
