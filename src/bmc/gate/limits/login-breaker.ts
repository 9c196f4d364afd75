import { sameCredentials } from "../../interface/credentials.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** The pause after the first refusal of a login. Each further refusal makes it four times as long. */
const PAUSE_MS = 30_000;
const PAUSE_MS_MAX = 15 * 60_000;
/** How many different logins of a BMC may be paused at the same time. With this many, no login is tried. */
const REFUSED_LOGINS_MAX = 3;
/** How long a refusal is remembered, so that the next one increases its pause. */
const MEMORY_MS = 30 * 60_000;

/** If a login worked within this time and is refused now, the 401 may be one of those that some BMCs send at random. */
const WORKED_MS = 24 * 3_600_000;
/** How many more attempts such a login gets. The pause before each grows by `SPURIOUS_PAUSE_MS`. */
const SPURIOUS_MAX = 2;
const SPURIOUS_PAUSE_MS = 1_000;

interface Success extends BmcCredentials {
  atMs: number;
  /** How many refusals since then were taken for spurious ones. */
  spurious: number;
}

interface PausedLogin extends BmcCredentials {
  count: number;
  pausedUntilMs: number;
  forgottenAtMs: number;
}

/**
 * A circuit breaker for logins: BMCs lock accounts after refused logins, and some stop answering altogether. One
 * breaker serves all drivers of this process.
 */
export class LoginBreaker {
  readonly #clock: Clock;
  /** By BMC, the least recently changed first. */
  readonly #refusals = new Map<string, PausedLogin[]>();
  /** The login that worked last, by BMC and user, the oldest first. */
  readonly #successes = new Map<string, Success>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Call it before each login.
   *
   * @throws BmcError AuthFailed if this login was refused a short time ago, Busy if too many other logins were.
   */
  check(bmc: string, login: BmcCredentials, text: string): void {
    this.checkRefused(bmc, login, text);
    const paused = this.#paused(bmc);
    if (paused.length >= REFUSED_LOGINS_MAX) {
      throw new BmcError("Busy", `${text}: too many logins refused; none is tried for ${this.#left(paused)}`);
    }
  }

  /**
   * Call it before a login that has worked is used again. Refusals of other logins do not stop it.
   *
   * @throws BmcError AuthFailed if this login was refused a short time ago.
   */
  checkRefused(bmc: string, login: BmcCredentials, text: string): void {
    const same = this.#paused(bmc).find((refusal) => sameCredentials(refusal, login));
    if (same !== undefined) {
      throw new BmcError("AuthFailed", `${text}: user or password refused; not tried again for ${this.#left([same])}`);
    }
  }

  /**
   * Records a refusal of user or password that may be spurious: BMCs of HPE, AMI and NVIDIA refuse valid logins at
   * times.
   *
   * @returns the time after which the login may be tried again; undefined if the refusal counts.
   */
  recordRefusedOrSpurious(bmc: string, login: BmcCredentials): number | undefined {
    const pauseMs = this.recordSpurious(bmc, login);
    if (pauseMs === undefined) this.recordRefused(bmc, login);
    return pauseMs;
  }

  /**
   * Records a refusal if it may be spurious. Otherwise it records nothing, because the refusal may have another reason
   * than user and password.
   *
   * @returns the time after which the login may be tried again; undefined if the refusal is not spurious.
   */
  recordSpurious(bmc: string, login: BmcCredentials): number | undefined {
    const success = this.#successes.get(accountOf(bmc, login));
    const isRecent = success !== undefined && this.#clock.monotonicMs() - success.atMs < WORKED_MS;
    if (isRecent && sameCredentials(success, login) && success.spurious < SPURIOUS_MAX) {
      success.spurious += 1;
      return success.spurious * SPURIOUS_PAUSE_MS;
    }
    return undefined;
  }

  /** Records that user or password were refused. */
  recordRefused(bmc: string, login: BmcCredentials): void {
    const nowMs = this.#clock.monotonicMs();
    const refusals = this.#of(bmc);
    const count = (refusals.find((refusal) => sameCredentials(refusal, login))?.count ?? 0) + 1;
    const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS * 4 ** (count - 1));
    const refusal = { ...login, count, pausedUntilMs: nowMs + pauseMs, forgottenAtMs: nowMs + MEMORY_MS };
    const others = refusals.filter((other) => !sameCredentials(other, login)).slice(1 - REFUSED_LOGINS_MAX);
    this.#refusals.delete(bmc);
    this.#refusals.set(bmc, [...others, refusal]);
  }

  /** Records a login that was accepted. */
  recordAccepted(bmc: string, login: BmcCredentials): void {
    const atMs = this.#clock.monotonicMs();
    const account = accountOf(bmc, login);
    this.#successes.delete(account);
    this.#successes.set(account, { ...login, atMs, spurious: 0 });
    for (const [other, success] of this.#successes) {
      if (atMs - success.atMs < WORKED_MS) break;
      this.#successes.delete(other);
    }
    const others = this.#of(bmc).filter((refusal) => !sameCredentials(refusal, login));
    if (others.length === 0) this.#refusals.delete(bmc);
    else this.#refusals.set(bmc, others);
  }

  #of(bmc: string): readonly PausedLogin[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [other, refusals] of this.#refusals) {
      if (refusals.some(({ forgottenAtMs }) => forgottenAtMs > nowMs)) break;
      this.#refusals.delete(other);
    }
    return this.#refusals.get(bmc) ?? [];
  }

  #paused(bmc: string): readonly PausedLogin[] {
    return this.#of(bmc).filter(({ pausedUntilMs }) => pausedUntilMs > this.#clock.monotonicMs());
  }

  #left(refusals: readonly PausedLogin[]): string {
    const endMs = Math.min(...refusals.map(({ pausedUntilMs }) => pausedUntilMs));
    return `${Math.ceil((endMs - this.#clock.monotonicMs()) / 1_000)} s`;
  }
}

function accountOf(bmc: string, { username }: BmcCredentials): string {
  return `${bmc} ${username}`;
}
