import type { Clock } from "../../runtime/clock.ts";
import { KubeError } from "../errors.ts";
import type { KubeObject } from "../resource.ts";

/** How much may be read from an untrusted API server. */
export interface ReadBudget {
  /** Objects that are asked for at once. A server that sends more has not kept to it. */
  pageSize: number;
  /** Objects of one collection. */
  objects: number;
  /** What is kept of a watched collection, as JSON text. */
  textLength: number;
  /** The same of one that is listed once, and looked at whole. */
  listTextLength: number;
  /** From the first to the last page of a list. */
  listMs: number;
  /** The longest line of a watch. */
  lineLength: number;
  /** JSON values in one answer, whatever its length. */
  answerValues: number;
  /** The same in one event of a watch, which holds one object. */
  eventValues: number;
  /** How long all that the server sends may keep the main thread busy, by the minute. */
  busyMs: number;
}

/** A server that has gone over its budget is asked again after this: what it may cost is bounded by that. */
const REST_MS = 60_000;

/** What a watch may send at once, and by the second, in addition to what its objects allow. */
const EVENTS_AT_ONCE = 500;
const EVENTS_PER_SECOND = 50;
/** Each object may change twice in a moment, as in an outage, and every ten seconds all the time. */
const EVENTS_AT_ONCE_EACH = 2;
const EVENTS_PER_SECOND_EACH = 0.1;
/** An event of a node with 50 images has 20 KiB. */
const TEXT_LENGTH_OF_EVENT = 32 * 1024;

/** A part of a stream counts as at least this long: each costs its work, however short it is. */
const TEXT_LENGTH_MIN = 64;

/** @param what the call, for messages. */
export function overBudget(what: string, why: string): KubeError {
  return new KubeError("OverBudget", `${what}: ${why}; it is asked again in a minute`, { retryAfterMs: REST_MS });
}

/** How many objects are held, and how long their text is. */
export class HeldSize {
  readonly #budget: Pick<ReadBudget, "objects" | "textLength"> | undefined;
  #objects = 0;
  #textLength = 0;
  /** What each object was counted with, so that exactly that is taken off. */
  readonly #lengths = new WeakMap<KubeObject, number>();

  constructor(budget: Pick<ReadBudget, "objects" | "textLength"> | undefined) {
    this.#budget = budget;
  }

  get objects(): number {
    return this.#objects;
  }

  /**
   * @param kept undefined for one that was dropped, which counts anyway.
   * @throws KubeError OverBudget if its length cannot be measured; the count is then as it was.
   */
  add(kept: KubeObject | undefined): void {
    if (this.#budget === undefined) return;
    const length = kept === undefined ? 0 : lengthOf(kept);
    if (kept !== undefined) this.#lengths.set(kept, length);
    this.#objects += 1;
    this.#textLength += length;
  }

  /** Never throws, so that no object can be kept whose length was taken off. */
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
 * How long the main thread may still work on what a server sends: it fills up within a minute. Everything that reads
 * from one server shares one.
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
   * Does `work`, and counts how long it took. @throws KubeError OverBudget if nothing is left of the time, without
   * doing it.
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
   * Counts work whose duration cannot be measured, such as the reading of a connection. @throws KubeError OverBudget if
   * nothing is left.
   */
  charge(what: string, ms: number): void {
    if (this.#busyMs === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const filled = ((nowMs - this.#filledMs) / REST_MS) * this.#busyMs;
    this.#leftMs = Math.min(this.#busyMs, this.#leftMs + filled) - ms;
    this.#filledMs = nowMs;
    if (this.#leftMs <= 0) throw overBudget(what, `it took more than ${this.#busyMs} ms of a minute to read`);
  }
}

/** What a watch may still send: it fills up with time, by how many objects there are. */
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
    if (this.#events < 0) throw overBudget(what, "more events than its objects account for");
    if (this.#textLength < 0) throw overBudget(what, "longer events than its objects account for");
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
