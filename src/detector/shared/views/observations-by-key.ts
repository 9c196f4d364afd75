import type { TimePassed } from "../model/time-passed.ts";

/**
 * The observations of each node or Machine of one health check, by its key. A pure function adds an event to the
 * observations of one key. Only these are replaced, so that an event costs the same with ten nodes and with ten
 * thousand.
 */
export class ObservationsByKey<O extends object, E> {
  readonly #nothing: O;
  readonly #observe: (observations: O, event: E | TimePassed) => O;
  readonly #byKey = new Map<string, O>();

  /** @param nothing the observations of a key without events. Every field of them is undefined. */
  constructor(nothing: O, observe: (observations: O, event: E | TimePassed) => O) {
    this.#nothing = nothing;
    this.#observe = observe;
  }

  of(key: string): O {
    return this.#byKey.get(key) ?? this.#nothing;
  }

  /** The keys that have observations. */
  entries(): IterableIterator<[string, O]> {
    return this.#byKey.entries();
  }

  add(key: string, event: E | TimePassed): void {
    const before = this.of(key);
    const observations = this.#observe(before, event);
    if (observations === before) return;
    if (Object.values(observations).every((value) => value === undefined)) this.#byKey.delete(key);
    else this.#byKey.set(key, observations);
  }

  /** Adds an event that concerns every node or Machine. */
  addToAll(event: E | TimePassed): void {
    for (const key of this.#byKey.keys()) this.add(key, event);
  }
}
