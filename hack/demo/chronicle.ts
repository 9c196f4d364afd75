import type { Clock } from "../../src/runtime/clock.ts";
import { sleep } from "../../src/runtime/clock.ts";

const POLL_MS = 50;
const NEVER = new AbortController().signal;

/** The steps that the demo looks for, in the order of a fence. */
export const STEPS = [
  "fault",
  "unknown",
  "remediation",
  "forceOff",
  "off",
  "taint",
  "podGone",
  "podRunning",
  "quarantine",
  "on",
  "ready",
  "restored",
  "succeeded",
  "failed",
  "escalated",
  "networkBoot",
  "nodeDeleted",
  "nodeRejoined",
  "healthy",
  "stormGuard",
] as const;
export type Step = (typeof STEPS)[number];

/** One line of the timeline. */
export interface Entry {
  /** Milliseconds since the chronicle began, on a clock that does not jump. */
  atMs: number;
  /** Wall-clock time. */
  timeMs: number;
  scene: number;
  host: string;
  step: Step | undefined;
  text: string;
  tone: "plain" | "good" | "bad";
}

/** Everything that happened, in order; each entry wakes all that wait for something. */
export class Chronicle {
  readonly entries: Entry[] = [];
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #listeners = new Set<(entry: Entry) => void>();
  /** The time that was allowed in addition so far, in milliseconds. */
  #allowedMs = 0;
  /** The scene that entries belong to from now on; 0 before the first. */
  scene = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  note(host: string, text: string, step?: Step, tone: Entry["tone"] = "plain"): void {
    const atMs = Math.round(this.#clock.monotonicMs() - this.#startMs);
    const entry: Entry = { atMs, timeMs: this.#clock.nowMs(), scene: this.scene, host, step, text, tone };
    this.entries.push(entry);
    for (const listener of this.#listeners) listener(entry);
  }

  subscribe(listener: (entry: Entry) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The first or last entry of this scene for a step of a host. */
  find(host: string, step: Step, which: "first" | "last" = "first"): Entry | undefined {
    const fits = (entry: Entry): boolean => entry.scene === this.scene && entry.host === host && entry.step === step;
    return which === "first" ? this.entries.find(fits) : this.entries.findLast(fits);
  }

  /** Allows more time to each wait that is under way. */
  allowMore(ms: number): void {
    this.#allowedMs += ms;
  }

  /** Resolves to true when `holds` is true, or to false after `timeoutMs`. */
  async until(holds: () => boolean, timeoutMs: number): Promise<boolean> {
    const deadlineMs = this.#clock.monotonicMs() + timeoutMs - this.#allowedMs;
    while (!holds()) {
      if (this.#clock.monotonicMs() >= deadlineMs + this.#allowedMs) return false;
      // The condition may become true without a new entry, so it is also checked periodically.
      await sleep(this.#clock, POLL_MS, NEVER);
    }
    return true;
  }
}
