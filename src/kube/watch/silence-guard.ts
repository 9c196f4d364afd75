import type { Clock } from "../../runtime/clock.ts";
import { abortReason } from "../../runtime/clock.ts";
import { KubeError } from "../errors.ts";

/**
 * A watch that has sent nothing for this long counts as dead and is opened again from where it was, which costs one
 * request and loses nothing. The API server sends a bookmark about every minute (60 s and up to 1.25 s of its own
 * timer's jitter), so a living watch of a quiet collection is never silent for much longer: half a minute more is for
 * slow machines. Sooner would cut living watches; a peer that vanished is noticed sooner by the transport's TCP
 * keep-alive.
 */
const SILENCE_MAX_MS = 90_000;

/**
 * Aborts its signal when `lastHeardMs` is too long ago, or when `parent` aborts. One timer serves any number of events.
 */
export class SilenceGuard {
  readonly #clock: Clock;
  readonly #lastHeardMs: () => number;
  readonly #parent: AbortSignal;
  readonly #controller = new AbortController();
  readonly #onAbort: () => void;
  #timer: { cancel(): void } | undefined;

  constructor(clock: Clock, lastHeardMs: () => number, parent: AbortSignal) {
    this.#clock = clock;
    this.#lastHeardMs = lastHeardMs;
    this.#parent = parent;
    this.#onAbort = () => this.#controller.abort(abortReason(parent));
    if (parent.aborted) this.#onAbort();
    else parent.addEventListener("abort", this.#onAbort, { once: true });
    this.#check();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    this.#timer?.cancel();
    this.#parent.removeEventListener("abort", this.#onAbort);
    // Whatever of the connection is left is not wanted any more.
    this.#controller.abort(new KubeError("Aborted", "the watch has ended"));
  }

  #check(): void {
    const leftMs = this.#lastHeardMs() + SILENCE_MAX_MS - this.#clock.monotonicMs();
    if (leftMs > 0) {
      this.#timer = this.#clock.schedule(leftMs, () => this.#check());
      return;
    }
    this.#controller.abort(new KubeError("Timeout", `nothing received on the watch for ${SILENCE_MAX_MS} ms`));
  }
}
