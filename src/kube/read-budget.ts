import type { Clock } from "../runtime/clock.ts";
import { KubeError } from "./errors.ts";
import type { KubeObject } from "./resource.ts";

/** How much may be read from an API server that anybody may run. */
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

/** @param what the call, for messages. */
export function overBudget(what: string, why: string): KubeError {
  return new KubeError("OverBudget", `${what}: ${why}; it is asked again in a minute`, { retryAfterMs: REST_MS });
}

/** How many objects are held, and how long their text is. */
export class Holding {
  readonly #budget: Pick<ReadBudget, "objects" | "textLength"> | undefined;
  #objects = 0;
  #textLength = 0;

  constructor(budget: Pick<ReadBudget, "objects" | "textLength"> | undefined) {
    this.#budget = budget;
  }

  get objects(): number {
    return this.#objects;
  }

  /** @param kept undefined for one that was dropped, which counts all the same. */
  add(kept: KubeObject | undefined): void {
    if (this.#budget === undefined) return;
    this.#objects += 1;
    this.#textLength += lengthOf(kept);
  }

  remove(kept: KubeObject): void {
    if (this.#budget === undefined) return;
    this.#objects -= 1;
    this.#textLength -= lengthOf(kept);
  }

  /** @throws KubeError OverBudget */
  check(what: string): void {
    if (this.#budget === undefined) return;
    const { objects, textLength } = this.#budget;
    if (this.#objects > objects) throw overBudget(what, `more than ${objects} objects`);
    if (this.#textLength > textLength) throw overBudget(what, `more than ${textLength} characters to be kept`);
  }
}

function lengthOf(kept: KubeObject | undefined): number {
  return kept === undefined ? 0 : JSON.stringify(kept).length;
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
    this.#textLength -= textLength;
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
