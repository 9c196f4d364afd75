import { VERSION } from "../../runtime/version.ts";
import type { Input, DecisionLogEntry } from "./entry.ts";
import { encode, LOG_VERSION } from "./entry.ts";

/** The largest size of a log. After that, nothing more is recorded. A fence takes about 200 KiB. */
export const LOG_BYTES_MAX = 256 * 1_024 * 1_024;

export interface RecorderOptions {
  /** Identifies this process among others that write to the same log. */
  process: string;
  /** Takes one line. Returns false if it cannot take more. */
  write(line: string): boolean;
  bytesMax?: number;
}

/**
 * Records the events and decisions of one process. Values are written at once. Only the last input of each session is
 * kept, so that a line holds only the fields that have changed since.
 */
export class DecisionRecorder {
  readonly #options: RecorderOptions;
  readonly #inputs = new Map<string, Map<string, string>>();
  #bytesLeft: number;
  #hasEnded = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#bytesLeft = options.bytesMax ?? LOG_BYTES_MAX;
    this.#write({ process: options.process, kind: "process", version: LOG_VERSION, agent: VERSION });
  }

  /** Begins a session. @param name the kind and name of the object, for the operator. */
  begin(uid: string, name: string): void {
    if (this.#hasEnded) return;
    this.#inputs.set(uid, new Map());
    this.#write({ process: this.#options.process, kind: "session", uid, name });
  }

  /** Forgets a session that is over. */
  end(uid: string): void {
    this.#inputs.delete(uid);
  }

  event(uid: string, event: unknown): void {
    this.#write({ process: this.#options.process, kind: "event", uid, event });
  }

  /** @param by names the pure function that has decided. */
  decision(uid: string, by: string, input: Input, now: unknown, decision: unknown): void {
    if (this.#hasEnded) return;
    const known = this.#inputs.get(uid) ?? new Map<string, string>();
    const changed: Record<string, unknown> = {};
    const absent: string[] = [];
    for (const [field, value] of Object.entries(input)) {
      const text = value === undefined ? "" : encode(value);
      if (known.get(field) === text) continue;
      known.set(field, text);
      if (value === undefined) absent.push(field);
      else changed[field] = value;
    }
    this.#inputs.set(uid, known);
    this.#write({ process: this.#options.process, kind: "decision", uid, by, now, changed, absent, decision });
  }

  #write(entry: DecisionLogEntry): void {
    if (this.#hasEnded) return;
    const line = `${encode(entry)}\n`;
    this.#bytesLeft -= Buffer.byteLength(line);
    if (this.#bytesLeft >= 0 && this.#options.write(line)) return;
    this.#hasEnded = true;
    this.#inputs.clear();
    const why = this.#bytesLeft < 0 ? "the log has reached its largest size" : "the log cannot be written fast enough";
    this.#options.write(`${encode({ process: this.#options.process, kind: "end", why } satisfies DecisionLogEntry)}\n`);
  }
}
