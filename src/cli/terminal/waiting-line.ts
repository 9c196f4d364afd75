import type { CliContext } from "./context.ts";
import { printNote } from "./context.ts";
import { withoutControls } from "../../runtime/text/printable.ts";

/** Without a terminal, the command prints this often that it still waits. */
const NOTE_PERIOD_MS = 30_000;
/** One less than the 80 columns of the narrowest usual terminal: a line that wraps is not written over. */
const WIDTH_MAX = 79;

/**
 * Shows that a command waits, for how long and for what: on a terminal one line that is updated in place, in a log one
 * line every 30 s.
 */
export class WaitingLine {
  readonly #context: CliContext;
  readonly #startMs: number;
  #width = 0;
  #notedMs: number;

  constructor(context: CliContext) {
    this.#context = context;
    this.#startMs = context.clock.monotonicMs();
    this.#notedMs = this.#startMs;
  }

  show(what: string): void {
    const nowMs = this.#context.clock.monotonicMs();
    const text = withoutControls(`  waiting for ${Math.round((nowMs - this.#startMs) / 1_000)} s: ${what}`);
    if (this.#context.terminal === undefined) {
      if (nowMs - this.#notedMs < NOTE_PERIOD_MS) return;
      this.#notedMs = nowMs;
      printNote(this.#context, text);
      return;
    }
    const line = text.length > WIDTH_MAX ? `${text.slice(0, WIDTH_MAX - 1)}…` : text;
    this.#context.process.stderr.write(`\r${line.padEnd(this.#width)}`);
    this.#width = line.length;
  }

  /** Clears the line. Call it before anything else is printed. */
  clear(): void {
    if (this.#width === 0) return;
    this.#context.process.stderr.write(`\r${" ".repeat(this.#width)}\r`);
    this.#width = 0;
  }
}
