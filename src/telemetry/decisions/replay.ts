import type { Input, DecisionLogEntry } from "./entry.ts";
import { decode, encode, LOG_VERSION } from "./entry.ts";

/** The pure functions that a log is replayed with. */
export interface PureFunctions {
  /** The functions that decide, by the names that the log gives them. */
  deciders: Readonly<Record<string, (input: Input, now: unknown, observations: unknown) => unknown>>;
  /** Returns the observations of a session that begins. */
  nothingObserved: () => unknown;
  /** Returns the observations after an event of the session. */
  observe: (observations: unknown, event: unknown) => unknown;
}

/** A decision whose replay differs from the recorded one. */
export interface Difference {
  line: number;
  /** The name of the session: the remediation or the health check. */
  session: string;
  recorded: string;
  replayed: string;
}

export interface Replay {
  events: number;
  decisions: number;
  /** Sessions of remediations and health checks. A restart of the agent begins new ones. */
  sessions: number;
  /** The first difference; undefined if all decisions are the same, byte for byte. */
  difference: Difference | undefined;
  /** Why the log ends before its process did; undefined if the log does not report an early end. */
  endsEarly: string | undefined;
}

interface ReplayedSession {
  name: string;
  observations: unknown;
  input: Input;
}

/** Repeats every decision of a log, from its events and inputs alone. */
export class Replayer {
  readonly result: Replay = { events: 0, decisions: 0, sessions: 0, difference: undefined, endsEarly: undefined };
  readonly #pure: PureFunctions;
  readonly #sessions = new Map<string, ReplayedSession>();
  #line = 0;

  constructor(pure: PureFunctions) {
    this.#pure = pure;
  }

  /** Takes the next line. @returns false as soon as a decision differs. @throws Error if the line cannot be read. */
  take(line: string): boolean {
    this.#line += 1;
    if (line !== "") this.#play(readEntry(line, this.#line));
    return this.result.difference === undefined;
  }

  #play(entry: DecisionLogEntry): void {
    const { result } = this;
    switch (entry.kind) {
      case "process":
        return;
      case "end":
        result.endsEarly = entry.why;
        return;
      case "session":
        result.sessions += 1;
        this.#sessions.set(keyOf(entry), { name: entry.name, observations: this.#pure.nothingObserved(), input: {} });
        return;
      case "event": {
        const session = this.#sessionOf(entry);
        session.observations = this.#pure.observe(session.observations, entry.event);
        result.events += 1;
        return;
      }
      case "decision":
        result.decisions += 1;
        result.difference = this.#decide(entry);
    }
  }

  #decide(entry: Extract<DecisionLogEntry, { kind: "decision" }>): Difference | undefined {
    const session = this.#sessionOf(entry);
    const absent = Object.fromEntries(entry.absent.map((field) => [field, undefined]));
    session.input = { ...session.input, ...entry.changed, ...absent };
    const decide = this.#pure.deciders[entry.by];
    if (decide === undefined) throw new Error(`line ${this.#line}: this program has no decisions by ${entry.by}`);
    const again = decide(session.input, entry.now, session.observations);
    const [recorded, replayed] = [encode(entry.decision), encode(again)];
    if (recorded === replayed) return undefined;
    return { line: this.#line, session: session.name, recorded, replayed };
  }

  #sessionOf(entry: { process: string; uid: string }): ReplayedSession {
    const session = this.#sessions.get(keyOf(entry));
    if (session === undefined) throw new Error(`line ${this.#line}: ${entry.uid} has no session`);
    return session;
  }
}

function keyOf({ process, uid }: { process: string; uid: string }): string {
  return `${process} ${uid}`;
}

function readEntry(line: string, number: number): DecisionLogEntry {
  const entry = readLine(line, number);
  if (entry.kind === "process" && entry.version !== LOG_VERSION) {
    throw new Error(
      `line ${number}: the log has version ${String(entry.version)}; this program reads version ${String(LOG_VERSION)}`,
    );
  }
  return entry;
}

function readLine(line: string, number: number): DecisionLogEntry {
  try {
    return decode(line) as DecisionLogEntry;
  } catch (error) {
    throw new Error(`line ${number} is not JSON`, { cause: error });
  }
}
