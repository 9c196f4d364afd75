import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Account } from "./accounts.ts";

export interface Session {
  id: string;
  token: string;
  account: Account;
  createdAtMs: number;
  lastUsedMs: number;
}

/** The sessions of one service. As on a real BMC, there are few, and they expire. */
export class SessionTable {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #sessionsMax: number;
  readonly #sessions = new Map<string, Session>();
  /** A session that is not used for this long ends: `SessionService.SessionTimeout`. */
  timeoutMs = 300_000;

  constructor(deps: { clock: Clock; random: Random }, sessionsMax: number) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#sessionsMax = sessionsMax;
  }

  /** @returns undefined if the table is full. */
  open(account: Account): Session | undefined {
    if (this.#alive().size >= this.#sessionsMax) return undefined;
    const session = {
      id: this.#random.uuid(),
      token: Buffer.from(this.#random.bytes(16)).toString("hex"),
      account,
      createdAtMs: this.#clock.nowMs(),
      lastUsedMs: this.#clock.monotonicMs(),
    };
    this.#sessions.set(session.id, session);
    return session;
  }

  /** The session of a token. Restarts its idle time. */
  use(token: string): Session | undefined {
    const session = this.values().find((session) => session.token === token);
    if (session !== undefined) session.lastUsedMs = this.#clock.monotonicMs();
    return session;
  }

  get(id: string): Session | undefined {
    return this.#alive().get(id);
  }

  delete(id: string): void {
    this.#sessions.delete(id);
  }

  clear(): void {
    this.#sessions.clear();
  }

  values(): Session[] {
    return [...this.#alive().values()];
  }

  #alive(): ReadonlyMap<string, Session> {
    const oldestMs = this.#clock.monotonicMs() - this.timeoutMs;
    for (const session of this.#sessions.values()) {
      if (session.lastUsedMs < oldestMs) this.#sessions.delete(session.id);
    }
    return this.#sessions;
  }
}
