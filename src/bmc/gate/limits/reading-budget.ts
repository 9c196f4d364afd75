import { Withdrawn } from "./precedence.ts";
import type { Precedence } from "./precedence.ts";
import { BmcError } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";

/** How much is read of a BMC after a power-off order, and for how long. */
export const EVIDENCE_READ_MS_MAX = 5_000;
export const EVIDENCE_BYTES_MAX = 65_536;
/** Redfish requests. */
export const EVIDENCE_REQUESTS_MAX = 32;
/** IPMI commands: each is one datagram of some bytes, and each sensor takes one or two. */
export const EVIDENCE_COMMANDS_MAX = 192;
/** With the time in which calls took precedence. */
export const EVIDENCE_WHOLE_MS_MAX = 20_000;
/** A request that takes longer is given up, so that one log that is never answered leaves time for the next. */
const REQUEST_MS_MAX = 2_500;
const WITHDRAWALS_MAX = 3;
/**
 * After a withdrawal, the next request waits for such a pause between calls: longer than the one between readings of a
 * host that is being powered off, and shorter than the one once it is proven off (`machine/model/decision/timings.ts`).
 */
const QUIET_MS = 700;

/**
 * What may still be read of one BMC. A request that would exceed it is not sent, and yields nothing, like one that
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

  /** Why not all was read; the first reason. */
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

  /** Sends one request when no call takes precedence. @returns undefined if it was not sent or has failed. */
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
