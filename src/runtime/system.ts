import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

// The only code that uses the time and randomness of the machine. Only entry points import it.

/** The machine's own clocks and timers. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule: (delayMs, callback) => {
    const handle = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** The machine's own randomness. */
export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => randomUUID(),
  bytes: (size) => randomBytes(size),
};
