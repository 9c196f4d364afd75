import { Withdrawn } from "./precedence.ts";
import type { Precedence } from "./precedence.ts";
import { BmcError } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";

/** How long evidence is read from a BMC after a power-off order, and how much of it. */
export const EVIDENCE_READ_MS_MAX = 5_000;
export const EVIDENCE_BYTES_MAX = 65_536;
/** How many Redfish requests are sent. */
export const EVIDENCE_REQUESTS_MAX = 32;
/** How many IPMI commands are sent. Each is one short datagram, and each sensor takes one or two. */
export const EVIDENCE_COMMANDS_MAX = 192;
/** The time limit including the time in which calls took precedence. */
export const EVIDENCE_WHOLE_MS_MAX = 20_000;
/** A request that takes longer is aborted, so that one log without an answer leaves time for the next. */
const REQUEST_MS_MAX = 2_500;
const WITHDRAWALS_MAX = 3;
/**
 * After a withdrawal, the next request waits for a pause between calls of this length. It is longer than the pause
 * between readings of a host that is being powered off, and shorter than the pause after the host is proven off
 * (`machine/model/decision/timings.ts`).
 */
const QUIET_MS = 700;

/**
 * What may still be read from one BMC. A request beyond it is not sent and returns undefined, like a request that
 * fails.
 */
export class ReadingBudget {
  readonly #clock: Clock;
  readonly #precedence: Precedence;
  readonly #key: string;
  readonly #endsAtMs: number;
  #leftMs = EVIDENCE_READ_MS_MAX;
  #leftBytes = EVIDENCE_BYTES_MAX;
  readonly #requestsMax: number;
  #leftRequests: number;
  #withdrawals = 0;
  #incomplete: string | undefined;

  /** @param requestsMax how many requests may be sent. */
  constructor(clock: Clock, precedence: Precedence, key: string, requestsMax = EVIDENCE_REQUESTS_MAX) {
    this.#clock = clock;
    this.#precedence = precedence;
    this.#key = key;
    this.#requestsMax = requestsMax;
    this.#leftRequests = requestsMax;
    this.#endsAtMs = clock.monotonicMs() + EVIDENCE_WHOLE_MS_MAX;
  }

  get leftBytes(): number {
    return this.#leftBytes;
  }

  /** The first reason why something was not read; undefined if there was none. */
  get incomplete(): string | undefined {
    return this.#incomplete;
  }

  get isSpent(): boolean {
    return this.#refusal() !== undefined;
  }

  /** Records bytes that were read. */
  spend(bytes: number): void {
    this.#leftBytes = Math.max(0, this.#leftBytes - bytes);
  }

  /** Records why something was not read. */
  note(why: string): void {
    this.#incomplete ??= why;
  }

  /** Sends one request when no call takes precedence. @returns undefined if it was not sent or failed. */
  async send<T>(
    what: string,
    signal: AbortSignal,
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    for (;;) {
      const refusal = this.#refusal();
      if (refusal !== undefined) {
        this.note(refusal);
        return undefined;
      }
      const leftMs = this.#endsAtMs - this.#clock.monotonicMs();
      try {
        return await withDeadline(this.#clock, what, leftMs, signal, (bounded) =>
          this.#precedence.besides(this.#key, this.#withdrawals === 0 ? 0 : QUIET_MS, bounded, (bounded) =>
            this.#timed(what, bounded, request),
          ),
        );
      } catch (error) {
        if (signal.aborted) throw abortReason(signal);
        if (error instanceof Withdrawn) {
          this.#withdrawals += 1;
          continue;
        }
        if (!(error instanceof BmcError) && !(error instanceof DeadlineError)) throw error;
        this.note(error.message);
        return undefined;
      }
    }
  }

  async #timed<T>(what: string, signal: AbortSignal, request: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#leftRequests -= 1;
    const startMs = this.#clock.monotonicMs();
    try {
      return await withDeadline(this.#clock, what, Math.min(REQUEST_MS_MAX, this.#leftMs), signal, request);
    } finally {
      this.#leftMs -= this.#clock.monotonicMs() - startMs;
    }
  }

  #refusal(): string | undefined {
    const seconds = EVIDENCE_READ_MS_MAX / 1_000;
    if (this.#leftMs <= 0 || this.#endsAtMs <= this.#clock.monotonicMs()) return `not all was read in ${seconds} s`;
    if (this.#leftBytes <= 0) return `not all was read: more than ${EVIDENCE_BYTES_MAX / 1_024} KiB`;
    if (this.#leftRequests <= 0) return `not all was read in ${this.#requestsMax} requests`;
    if (this.#withdrawals > WITHDRAWALS_MAX) return "not all was read: the BMC was slow, and the power-off came first";
    return undefined;
  }
}
