import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

// The one place that touches the machine's time and randomness; only entry points import it.

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
