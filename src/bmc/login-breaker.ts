import { BmcError } from "./errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Secret } from "../runtime/secret.ts";

/** Pause after the first refusal of a login; it is four times as long after each further one. */
const PAUSE_MS = 30_000;
const PAUSE_MS_MAX = 15 * 60_000;
/** Different logins that a BMC may refuse within the pause; then it is asked no more, whatever the login. */
const REFUSED_LOGINS_MAX = 3;
/** A refusal is remembered for so long, to go on counting from there. */
const MEMORY_MS = 30 * 60_000;

/** A login that worked within this time, and is refused now, may have met one of the 401s that some BMCs send at random. */
const WORKED_MS = 24 * 3_600_000;
/** Tries that such a login gets beyond the first; each comes as much later as there were before. */
const STRAYS_MAX = 2;
const STRAY_PAUSE_MS = 1_000;

export interface Login {
  username: string;
  password: Secret;
}

interface Success extends Login {
  atMs: number;
  /** Refusals since, each taken for a stray one. */
  strays: number;
}

interface Refusal extends Login {
  count: number;
  pausedUntilMs: number;
  forgottenAtMs: number;
}

/**
 * Keeps refused logins from being tried again and again: BMCs lock accounts, and some lock up altogether. One breaker serves
 * all who talk to any BMC in this process.
 */
export class LoginBreaker {
  readonly #clock: Clock;
  /** By BMC, the longest unchanged first. */
  readonly #refusals = new Map<string, Refusal[]>();
  /** The password that worked last, by BMC and user, the longest ago first. */
  readonly #successes = new Map<string, Success>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Asks before a login.
   *
   * @throws BmcError AuthFailed where this very login was refused a short time ago, Busy where too many others were.
   */
  check(bmc: string, login: Login, text: string): void {
    this.checkRefused(bmc, login, text);
    const paused = this.#paused(bmc);
    if (paused.length >= REFUSED_LOGINS_MAX) {
      throw new BmcError("Busy", `${text}: too many logins refused; none is tried for ${this.#left(paused)}`);
    }
  }

  /**
   * Asks before a login that has worked is used again: those of others count for nothing.
   *
   * @throws BmcError AuthFailed where it was refused a short time ago.
   */
  checkRefused(bmc: string, login: Login, text: string): void {
    const same = this.#paused(bmc).find((refusal) => isSame(refusal, login));
    if (same !== undefined) {
      throw new BmcError("AuthFailed", `${text}: user or password refused; not tried again for ${this.#left([same])}`);
    }
  }

  /**
   * Takes in a refusal of user or password that may be a stray one: HPE, AMI and NVIDIA BMCs send such to valid logins.
   *
   * @returns the time after which the login may be tried again; undefined if it is refused permanently.
   */
  refusedMaybe(bmc: string, login: Login): number | undefined {
    const pauseMs = this.strayPause(bmc, login);
    if (pauseMs === undefined) this.refused(bmc, login);
    return pauseMs;
  }

  /** The same, where a refusal that is no stray one may have another reason than user and password: it is not kept. */
  strayPause(bmc: string, login: Login): number | undefined {
    const success = this.#successes.get(accountOf(bmc, login));
    const isRecent = success !== undefined && this.#clock.monotonicMs() - success.atMs < WORKED_MS;
    if (isRecent && isSame(success, login) && success.strays < STRAYS_MAX) {
      success.strays += 1;
      return success.strays * STRAY_PAUSE_MS;
    }
    return undefined;
  }

  /** Records that user or password were refused. */
  refused(bmc: string, login: Login): void {
    const nowMs = this.#clock.monotonicMs();
    const refusals = this.#of(bmc);
    const count = (refusals.find((refusal) => isSame(refusal, login))?.count ?? 0) + 1;
    const pauseMs = Math.min(PAUSE_MS_MAX, PAUSE_MS * 4 ** (count - 1));
    const refusal = { ...login, count, pausedUntilMs: nowMs + pauseMs, forgottenAtMs: nowMs + MEMORY_MS };
    const others = refusals.filter((other) => !isSame(other, login)).slice(1 - REFUSED_LOGINS_MAX);
    this.#refusals.delete(bmc);
    this.#refusals.set(bmc, [...others, refusal]);
  }

  /** Records a login that was accepted. */
  accepted(bmc: string, login: Login): void {
    const atMs = this.#clock.monotonicMs();
    const account = accountOf(bmc, login);
    this.#successes.delete(account);
    this.#successes.set(account, { ...login, atMs, strays: 0 });
    for (const [other, success] of this.#successes) {
      if (atMs - success.atMs < WORKED_MS) break;
      this.#successes.delete(other);
    }
    const others = this.#of(bmc).filter((refusal) => !isSame(refusal, login));
    if (others.length === 0) this.#refusals.delete(bmc);
    else this.#refusals.set(bmc, others);
  }

  #of(bmc: string): readonly Refusal[] {
    const nowMs = this.#clock.monotonicMs();
    for (const [other, refusals] of this.#refusals) {
      if (refusals.some(({ forgottenAtMs }) => forgottenAtMs > nowMs)) break;
      this.#refusals.delete(other);
    }
    return this.#refusals.get(bmc) ?? [];
  }

  #paused(bmc: string): readonly Refusal[] {
    return this.#of(bmc).filter(({ pausedUntilMs }) => pausedUntilMs > this.#clock.monotonicMs());
  }

  #left(refusals: readonly Refusal[]): string {
    const endMs = Math.min(...refusals.map(({ pausedUntilMs }) => pausedUntilMs));
    return `${Math.ceil((endMs - this.#clock.monotonicMs()) / 1_000)} s`;
  }
}

function accountOf(bmc: string, { username }: Login): string {
  return `${bmc} ${username}`;
}

function isSame(a: Login, b: Login): boolean {
  return a.username === b.username && a.password.equals(b.password);
}
