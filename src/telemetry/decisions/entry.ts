// The log of decisions: JSON lines, from which a replay can repeat every decision.

/** The version of the format. A log of another version is not read. */
export const LOG_VERSION = 2;

/** Everything that a decision depends on, except the observations, which follow from the events. */
export type Input = Readonly<Record<string, unknown>>;

/** One line. `process` identifies the process, since several may write to one log. */
export type DecisionLogEntry = { process: string } & (
  | { kind: "process"; version: typeof LOG_VERSION; agent: string }
  /** A process begins to work on a remediation or a health check, without observations. */
  | { kind: "session"; uid: string; name: string }
  | { kind: "event"; uid: string; event: unknown }
  /**
   * `changed` holds the fields of the input that differ from those of the last decision of this session, and `absent`
   * names the fields that are now undefined.
   */
  | {
      kind: "decision";
      uid: string;
      /** The name of the pure function that decided. */
      by: string;
      now: unknown;
      changed: Input;
      absent: readonly string[];
      decision: unknown;
    }
  /** The log is not complete after this line. */
  | { kind: "end"; why: string }
);

/** Encodes a value as JSON, with the numbers that JSON lacks. Values with the same encoding are equal. */
export function encode(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "number" && !Number.isFinite(part) ? { $number: String(part) } : part,
  );
}

/** Reads what `encode` wrote. @throws SyntaxError if the text is not JSON. */
export function decode(text: string): unknown {
  return JSON.parse(text, (_key, part: unknown) => {
    if (typeof part !== "object" || part === null || !("$number" in part)) return part;
    return Number(part.$number);
  });
}
