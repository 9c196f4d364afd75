import type { Clock } from "../../runtime/clock.ts";
import { KubeError } from "../errors.ts";
import type { KubeObject } from "../resource.ts";

/** How much may be read from an untrusted API server. */
export interface ReadBudget {
  /** Objects in a page, unless the caller chooses another number. A page with more objects exceeds the budget. */
  pageSize: number;
  /** The largest number of objects in a watched collection. Each takes memory in addition to its text. */
  objects: number;
  /** The same for a collection that is listed once and not watched. */
  listObjects: number;
  /** The length of what is kept of a watched collection, as JSON text. */
  textLength: number;
  /** The same for a collection that is listed once and not watched. */
  listTextLength: number;
  /** The time from the first to the last page of a list. */
  listMs: number;
  /** The longest line of a watch. */
  lineLength: number;
  /** JSON values in one answer, whatever its length. */
  answerValues: number;
  /** JSON values in one event of a watch, which contains one object. */
  eventValues: number;
  /** How long the data of the server may keep the main thread busy in each minute. */
  busyMs: number;
}

/**
 * How long the agent waits before it sends the next request to a server that exceeded its budget. This bounds the load
 * that such a server causes.
 */
const REST_MS = 60_000;

/** How many events a watch may send at once and in each second, in addition to those for each of its objects. */
const EVENTS_AT_ONCE = 500;
const EVENTS_PER_SECOND = 50;
/** Each object may change twice at once, as in an outage, and every 10 s permanently. */
const EVENTS_AT_ONCE_EACH = 2;
const EVENTS_PER_SECOND_EACH = 0.1;
/** The event of a node with 50 images has 20 KiB. */
const TEXT_LENGTH_OF_EVENT = 32 * 1024;

/** A chunk of a stream counts as at least this long, because even a short chunk takes some time. */
const TEXT_LENGTH_MIN = 64;

/** @param what the call, for the message. */
export function overBudget(what: string, why: string): KubeError {
  return new KubeError("OverBudget", `${what}: ${why}; the agent asks again in a minute`, { retryAfterMs: REST_MS });
}

/** Counts the objects that are kept, and the length of their text. */
export class HeldSize {
  readonly #budget: Pick<ReadBudget, "objects" | "textLength"> | undefined;
  #objects = 0;
  #textLength = 0;
  /** The length that each object was counted with, so that exactly this length is subtracted when it is removed. */
  readonly #lengths = new WeakMap<KubeObject, number>();

  constructor(budget: Pick<ReadBudget, "objects" | "textLength"> | undefined) {
    this.#budget = budget;
  }

  get objects(): number {
    return this.#objects;
  }

  /**
   * @param kept undefined if the object was dropped. It counts as an object without text then.
   * @throws KubeError OverBudget if its length cannot be measured; the count is then as it was.
   */
  add(kept: KubeObject | undefined): void {
    if (this.#budget === undefined) return;
    const length = kept === undefined ? 0 : lengthOf(kept);
    if (kept !== undefined) this.#lengths.set(kept, length);
    this.#objects += 1;
    this.#textLength += length;
  }

  /** Never throws, so that no object stays whose length was already subtracted. */
  remove(kept: KubeObject): void {
    const length = this.#lengths.get(kept);
    if (length === undefined) return;
    this.#lengths.delete(kept);
    this.#objects -= 1;
    this.#textLength -= length;
  }

  /** @throws KubeError OverBudget */
  check(what: string): void {
    if (this.#budget === undefined) return;
    const { objects, textLength } = this.#budget;
    if (this.#objects > objects) throw overBudget(what, `more than ${objects} objects`);
    if (this.#textLength > textLength) throw overBudget(what, `more than ${textLength} characters to be kept`);
  }
}

function lengthOf(kept: KubeObject): number {
  try {
    return JSON.stringify(kept).length;
  } catch {
    throw overBudget(kept.kind, "an object is nested too deeply to be kept");
  }
}

/**
 * How long the main thread may still work on the data of a server. It refills completely within a minute. All code that
 * reads from one server shares one allowance.
 */
export class WorkAllowance {
  readonly #clock: Clock;
  readonly #busyMs: number | undefined;
  #leftMs: number;
  #filledMs: number;

  /** @param budget undefined for no bound. */
  constructor(clock: Clock, budget: Pick<ReadBudget, "busyMs"> | undefined) {
    this.#clock = clock;
    this.#busyMs = budget?.busyMs;
    this.#leftMs = this.#busyMs ?? 0;
    this.#filledMs = clock.monotonicMs();
  }

  /**
   * Runs `work`, and counts how long it took. @throws KubeError OverBudget, before it runs `work`, if no time is left.
   */
  run<T>(what: string, work: () => T): T {
    this.charge(what, 0);
    const startedMs = this.#clock.monotonicMs();
    try {
      return work();
    } finally {
      this.#leftMs -= this.#clock.monotonicMs() - startedMs;
    }
  }

  /**
   * Counts work whose duration cannot be measured, such as reading from a connection. @throws KubeError OverBudget if
   * no time is left.
   */
  charge(what: string, ms: number): void {
    if (this.#busyMs === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const filled = ((nowMs - this.#filledMs) / REST_MS) * this.#busyMs;
    this.#leftMs = Math.min(this.#busyMs, this.#leftMs + filled) - ms;
    this.#filledMs = nowMs;
    if (this.#leftMs <= 0)
      throw overBudget(what, `reading its answers took more than ${this.#busyMs} ms within a minute`);
  }
}

/** How many events a watch may still send. It refills over time, faster if there are more objects. */
export class EventAllowance {
  readonly #clock: Clock;
  readonly #objects: () => number;
  #events: number;
  #textLength: number;
  #filledMs: number;

  constructor(clock: Clock, objects: () => number) {
    this.#clock = clock;
    this.#objects = objects;
    this.#events = this.#eventsMax();
    this.#textLength = this.#events * TEXT_LENGTH_OF_EVENT;
    this.#filledMs = clock.monotonicMs();
  }

  /** @throws KubeError OverBudget */
  take(what: string, events: number, textLength: number): void {
    this.#fill();
    this.#events -= events;
    this.#textLength -= Math.max(textLength, events === 0 ? TEXT_LENGTH_MIN : 0);
    if (this.#events < 0) throw overBudget(what, "more events than the number of its objects allows");
    if (this.#textLength < 0) throw overBudget(what, "longer events than the number of its objects allows");
  }

  #fill(): void {
    const nowMs = this.#clock.monotonicMs();
    const seconds = (nowMs - this.#filledMs) / 1_000;
    this.#filledMs = nowMs;
    const events = seconds * (EVENTS_PER_SECOND + EVENTS_PER_SECOND_EACH * this.#objects());
    const eventsMax = this.#eventsMax();
    this.#events = Math.min(eventsMax, this.#events + events);
    this.#textLength = Math.min(eventsMax * TEXT_LENGTH_OF_EVENT, this.#textLength + events * TEXT_LENGTH_OF_EVENT);
  }

  #eventsMax(): number {
    return EVENTS_AT_ONCE + EVENTS_AT_ONCE_EACH * this.#objects();
  }
}
