import type { Clock } from "../../runtime/clock.ts";
import { abortReason } from "../../runtime/clock.ts";
import { KubeError } from "../errors.ts";

/**
 * A watch that has received nothing for this long counts as dead. It is reopened from its last version, which costs one
 * request and loses no event. The API server sends a bookmark about every minute (60 s, plus up to 1.25 s of jitter),
 * so a working watch is never silent for much longer; the other half minute is for slow machines. A shorter time would
 * end working watches. TCP keepalive notices a server that vanished earlier.
 */
const SILENCE_MAX_MS = 90_000;

/**
 * Aborts its signal when `lastReceivedMs` is too long ago, or when `parent` aborts. Events do not reset the timer: it
 * reads `lastReceivedMs` when it runs.
 */
export class SilenceGuard {
  readonly #clock: Clock;
  readonly #lastReceivedMs: () => number;
  readonly #parent: AbortSignal;
  readonly #controller = new AbortController();
  readonly #onAbort: () => void;
  #timer: { cancel(): void } | undefined;
  #hasEnded = false;

  constructor(clock: Clock, lastReceivedMs: () => number, parent: AbortSignal) {
    this.#clock = clock;
    this.#lastReceivedMs = lastReceivedMs;
    this.#parent = parent;
    this.#onAbort = () => this.#controller.abort(abortReason(parent));
    if (parent.aborted) this.#onAbort();
    else parent.addEventListener("abort", this.#onAbort, { once: true });
    this.#check();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether `end` was called. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  end(): void {
    this.#hasEnded = true;
    this.#timer?.cancel();
    this.#parent.removeEventListener("abort", this.#onAbort);
    // This also closes the connection if it is still open.
    this.#controller.abort(new KubeError("Aborted", "the watch has ended"));
  }

  #check(): void {
    const leftMs = this.#lastReceivedMs() + SILENCE_MAX_MS - this.#clock.monotonicMs();
    if (leftMs > 0) {
      this.#timer = this.#clock.schedule(leftMs, () => this.#check());
      return;
    }
    this.#controller.abort(new KubeError("Timeout", `nothing received on the watch for ${SILENCE_MAX_MS} ms`));
  }
}
