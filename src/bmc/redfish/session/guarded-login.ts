import { logIn } from "./login.ts";
import type { Access } from "./login.ts";
import type { MonitoredConnection } from "./monitored-connection.ts";
import type { ServiceRoot } from "./service-root.ts";
import type { Connection } from "../http/connection.ts";
import type { BmcGate } from "../../gate/bmc-gate.ts";
import type { Mutex } from "../../gate/limits/mutex.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import { BmcError } from "../../interface/errors.ts";
import { sleep } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";

/** The share of the time of a call that its login may take. */
const LOGIN_SHARE = 0.9;
export const NO_SESSION_FREE = "no session is free, and basic authentication is refused";

/** What is needed to log in at a BMC and to send it requests. */
export interface AccountDeps {
  connection: Connection;
  monitored: MonitoredConnection;
  root: ServiceRoot;
  login: BmcCredentials;
  /** Identifies the account and its BMC. */
  account: string;
  /** Allows one login at a time at one BMC, so that only one of many drivers with the same wrong password tries it. */
  mutex: Mutex;
  gate: BmcGate;
  clock: Clock;
  callTimeoutMs: number;
  /** Aborts a login in progress. */
  abandonLogin: AbortSignal | undefined;
}

export interface GuardedLoginDeps extends AccountDeps {
  /** Whether basic authentication has worked for this device. */
  isBasicAccepted: () => boolean;
  /** Called after a successful login, before the next login at this BMC starts. */
  onAccess: (access: Access) => void;
}

/** Logs in within the limits of the BMC gate: one login at a time, and none that was refused a short time ago. */
export class GuardedLogin {
  readonly #deps: GuardedLoginDeps;

  constructor(deps: GuardedLoginDeps) {
    this.#deps = deps;
  }

  /**
   * Logs in with a deadline of its own instead of that of the call: an aborted login may leave an unknown session
   * behind, and BMCs have few. Only `abandonLogin` ends a login sooner.
   *
   * @param lifetime Ends the wait for other logins at this BMC.
   */
  run(lifetime: AbortSignal): Promise<Access> {
    const { clock, mutex, connection, callTimeoutMs } = this.#deps;
    const what = `login at ${connection.origin}`;
    const { abandonLogin = new AbortController().signal } = this.#deps;
    return mutex.run(lifetime, () =>
      withDeadline(clock, what, LOGIN_SHARE * callTimeoutMs, abandonLogin, (signal) => this.#logIn(signal)),
    );
  }

  async #logIn(signal: AbortSignal): Promise<Access> {
    const { connection, monitored, root, login, gate, clock, callTimeoutMs } = this.#deps;
    const { origin } = connection;
    await gate.loginThrottle.start();
    signal.throwIfAborted();
    gate.loginBreaker.check(origin, login, origin);
    const startMs = clock.monotonicMs();
    await root.refuseRedirect(signal);
    const hasTime = (): boolean => 2 * (clock.monotonicMs() - startMs) < LOGIN_SHARE * callTimeoutMs;
    const readRoot = (signal: AbortSignal) => root.read(signal);
    const { unusualSessionPaths: unusualPaths } = gate.memory;
    for (;;) {
      try {
        const access = await logIn({ connection, login, readRoot, unusualPaths, hasTime }, signal);
        this.#requireUsable(access);
        this.#deps.onAccess(access);
        // The first use of basic authentication shows whether it is accepted.
        if (access.kind === "Session") gate.loginBreaker.recordAccepted(origin, login);
        return access;
      } catch (error) {
        monitored.recordFailure(error);
        if (!(error instanceof BmcError) || error.code !== "AuthFailed") throw error;
        const pauseMs = gate.loginBreaker.recordRefusedOrSpurious(origin, login);
        if (pauseMs === undefined) throw error;
        await sleep(clock, pauseMs, signal);
      }
    }
  }

  /** @throws BmcError Busy if only basic authentication is left, and the BMC refused it a short time ago. */
  #requireUsable(access: Access): void {
    const { connection, account, gate, isBasicAccepted } = this.#deps;
    if (access.kind !== "Basic" || !access.sessionsFull) return;
    // A refusal for another device does not matter if basic authentication has worked for this one.
    if (!isBasicAccepted() && gate.memory.basicRefused.has(account)) {
      throw new BmcError("Busy", `login at ${connection.origin}: ${NO_SESSION_FREE}`);
    }
  }
}
