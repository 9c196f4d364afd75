import { growingWaits, orderWaits } from "./channel.ts";
import type { CipherSuiteId } from "./cipher-suite.ts";
import { COMPLETION } from "./codes.ts";
import { logIn } from "./login.ts";
import type { Login } from "../login-breaker.ts";
import type { Request, Response } from "./message.ts";
import type { Session } from "./session.ts";
import { sharedOn } from "../shared.ts";
import type { Shared } from "../shared.ts";
import type { Turn } from "../turn.ts";
import type { IpmiAddress } from "../address.ts";
import type { DeviceDeps, DeviceTimeouts } from "../driver.ts";
import { BmcError } from "../errors.ts";
import type { BmcErrorCode } from "../errors.ts";
import { abortReason, sleep } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { Secret } from "../../runtime/secret.ts";

/** Longest silence after a command, retransmissions included; less where the device's calls must be shorter. */
const ANSWER_TIMEOUT_MS_MAX = 5_000;
/** A session that was not used for so long is replaced: BMCs end theirs after about a minute. */
const SESSION_IDLE_MS_MAX = 25_000;
/** Longest that ending the session may take. */
const CLOSE_TIMEOUT_MS = 2_000;
/** How often a reading that the BMC was too busy for is asked for. */
const BUSY_TRIES_MAX = 3;
const BUSY_PAUSE_MS = 300;

/** Failures that leave open whether the BMC is still the one that it was. */
const SILENCES: ReadonlySet<BmcErrorCode> = new Set(["Timeout", "Unreachable", "BadResponse"]);

export interface ClientOptions {
  address: IpmiAddress;
  login: Login;
  /** The BMC's own key (K_G), where it has one. */
  bmcKey: Secret | undefined;
  suites: readonly CipherSuiteId[];
  timeouts: DeviceTimeouts;
  deps: DeviceDeps;
}

/** A BMC that commands can be sent to: logs in on first use, keeps the session while it is used, ends it when closed. */
export class Client {
  readonly #options: ClientOptions;
  readonly #clock: Clock;
  readonly #shared: Shared;
  readonly #turn: Turn;
  readonly #releaseTurn: () => void;
  readonly #answerTimeoutMs: number;
  readonly #lifetime = new AbortController();
  /** The login that is under way or has succeeded. */
  #session: Promise<Session> | undefined;
  /** What it has come to. */
  #current: Session | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#clock = options.deps.clock;
    this.#shared = sharedOn(this.#clock);
    const { turn, release } = this.#shared.turnOf(options.address.key);
    this.#turn = turn;
    this.#releaseTurn = release;
    // A silent session, the first contact and a login must all fit into one call.
    this.#answerTimeoutMs = Math.min(ANSWER_TIMEOUT_MS_MAX, options.timeouts.callTimeoutMs / 3);
  }

  /** Whether the BMC may have restarted a short time ago: it gave no answer that can be used, to whomever. */
  get mayHaveRestarted(): boolean {
    return this.#shared.silences.isRecent(this.#options.address.key);
  }

  /** Records that the BMC has shown its host on. */
  noteOn(): void {
    this.#shared.silences.forget(this.#options.address.key);
  }

  /**
   * Sends a command that changes nothing, and may therefore be sent again: where its answer is lost, where the session turns
   * out to be gone, where the BMC is busy.
   *
   * @param what names device and step in errors.
   * @returns the answer, whatever its completion code.
   */
  async read(what: string, request: Request, signal: AbortSignal): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#readOnce(what, request, signal);
      const { completionCode } = answer;
      const mayPass = completionCode === COMPLETION.busy || completionCode === COMPLETION.duplicate;
      if (!mayPass || tries === BUSY_TRIES_MAX) return answer;
      await sleep(this.#clock, BUSY_PAUSE_MS, signal);
    }
  }

  /**
   * Sends a command that may be carried out twice without harm, but must not be carried out late: where it had to be sent more
   * than once, the session ends with it, so that no copy still under way can take effect after what is ordered next.
   *
   * @param session the one to send it in, as `session` gave it: no other log-in takes place for an order.
   * @throws BmcError Timeout where the answer was lost: whether the command was carried out is then unknown.
   */
  async order(what: string, request: Request, session: Session, signal: AbortSignal): Promise<Response> {
    try {
      const { answer, transmissions } = await this.#command(
        session,
        what,
        request,
        orderWaits(this.#answerTimeoutMs),
        signal,
        this.#options.deps.mayOrder,
      );
      if (transmissions > 1) await this.#end(session);
      return answer;
    } catch (error) {
      this.#giveUp(session, error);
      if (!(error instanceof BmcError) || error.code === "Aborted") throw error;
      const message = `${error.message}; whether it took effect is unknown`;
      throw new BmcError("Timeout", message, { cause: error });
    }
  }

  /** Ends the session, whatever has happened before. Never throws. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#lifetime.abort(new BmcError("Aborted", `${this.#options.address.text}: closed`));
    // A login that failed has reported itself to its caller, and left no session.
    const session = await this.#session?.catch(() => undefined);
    if (session !== undefined) await this.#end(session);
    this.#releaseTurn();
  }

  async #readOnce(what: string, request: Request, signal: AbortSignal): Promise<Response> {
    const isReused = this.#session !== undefined;
    const waitsMs = growingWaits(this.#answerTimeoutMs);
    const session = await this.session(signal);
    try {
      return (await this.#command(session, what, request, waitsMs, signal)).answer;
    } catch (error) {
      this.#giveUp(session, error);
      // A BMC that has restarted, or has ended the session, does not answer in it: a new session shows which.
      if (!isReused || !(error instanceof BmcError) || signal.aborted || this.#lifetime.signal.aborted) throw error;
      const fresh = await this.session(signal);
      try {
        return (await this.#command(fresh, what, request, waitsMs, signal)).answer;
      } catch (again) {
        this.#giveUp(fresh, again);
        throw again;
      }
    }
  }

  #command(
    session: Session,
    what: string,
    request: Request,
    waitsMs: readonly number[],
    callerSignal: AbortSignal,
    mayTransmit?: () => boolean,
  ): Promise<{ answer: Response; transmissions: number }> {
    const signal = AbortSignal.any([callerSignal, this.#lifetime.signal]);
    return this.#turn.run(signal, () => session.command(what, request, waitsMs, signal, mayTransmit));
  }

  /** The session: the present one, or a new one where there is none or it is too old to be relied on. */
  async session(signal: AbortSignal): Promise<Session> {
    const present = await this.#session;
    if (present !== undefined && present.silentMs > SESSION_IDLE_MS_MAX) this.#forget(present);
    signal.throwIfAborted();
    this.#lifetime.signal.throwIfAborted();
    this.#session ??= this.#logIn();
    return this.#session;
  }

  /**
   * Logs in on the client's own time, not on that of the call that needed it: others may wait for the same login. The BMC's
   * turn is held all along, so that of many drivers with one wrong password one alone tries it.
   */
  #logIn(): Promise<Session> {
    const { address, login, bmcKey, suites, timeouts } = this.#options;
    const { breaker, pace, provenSuites } = this.#shared;
    const attempt = async (signal: AbortSignal): Promise<Session> => {
      await pace.begin();
      signal.throwIfAborted();
      breaker.check(address.key, login, address.text);
      const { connectTimeoutMs } = timeouts;
      const answerTimeoutMs = this.#answerTimeoutMs;
      const allowed = provenSuites.allowed(address.key, suites);
      try {
        const clock = this.#clock;
        const options = { address, login, bmcKey, suites: allowed, clock, connectTimeoutMs, answerTimeoutMs };
        const session = await logIn(options, signal);
        breaker.accepted(address.key, login);
        provenSuites.note(address.key, session.suite);
        if (signal.aborted) {
          session.abandon();
          throw abortReason(signal);
        }
        this.#current = session;
        return session;
      } catch (error) {
        if (error instanceof BmcError && error.code === "AuthFailed") breaker.refused(address.key, login);
        throw allowed.length < suites.length ? withAdvice(error, allowed) : error;
      }
    };
    const what = `${address.text}: login`;
    const session = this.#turn.run(this.#lifetime.signal, () =>
      withDeadline(this.#clock, what, timeouts.callTimeoutMs, this.#lifetime.signal, attempt),
    );
    session.catch((error: unknown) => {
      this.#noteSilence(error);
      if (this.#session === session) this.#session = undefined;
    });
    return session;
  }

  /** Ends a session and waits until the BMC has said so, for a short time. Never throws. */
  async #end(session: Session): Promise<void> {
    if (!this.#letGo(session)) return;
    const { address, timeouts, deps } = this.#options;
    const timeoutMs = Math.min(CLOSE_TIMEOUT_MS, timeouts.callTimeoutMs);
    const unaborted = new AbortController().signal;
    try {
      await withDeadline(this.#clock, "close", timeoutMs, unaborted, (signal) =>
        this.#turn.run(signal, () => session.close(`${address.text}: close`, growingWaits(timeoutMs / 2), signal)),
      );
    } catch (error) {
      session.abandon();
      deps.logger.warn({ address: address.text, err: error }, "ipmi session not ended");
    }
  }

  /** Gives up a session in which a command has failed. */
  #giveUp(session: Session, error: unknown): void {
    this.#noteSilence(error);
    this.#forget(session);
  }

  #noteSilence(error: unknown): void {
    const isSilence = error instanceof BmcError ? SILENCES.has(error.code) : error instanceof DeadlineError;
    if (isSilence) this.#shared.silences.note(this.#options.address.key);
  }

  /** Gives up a session that the BMC may have ended: no answer is waited for. */
  #forget(session: Session): void {
    if (this.#letGo(session)) session.abandon();
  }

  /** Whether the session was still ours: another call may have been quicker, and have opened a new one. */
  #letGo(session: Session): boolean {
    if (this.#current !== session) return false;
    this.#current = undefined;
    this.#session = undefined;
    return true;
  }
}

/** A BMC that has lost a suite looks like an attacker who makes the agent use a weaker one. */
function withAdvice(error: unknown, allowed: readonly CipherSuiteId[]): unknown {
  if (!(error instanceof BmcError) || error.code !== "Unsupported") return error;
  const why = `suite ${allowed.join(", ")} worked with this BMC before, so no weaker one is tried`;
  const advice = "name another in ipmi.cipherSuites if the BMC has changed";
  return new BmcError(error.code, `${error.message}; ${why}: ${advice}`, { cause: error });
}
