import type { CliContext } from "../terminal/context.ts";
import { printNote } from "../terminal/context.ts";
import { withoutControls } from "../../runtime/text/printable.ts";

const BAR_WIDTH = 20;
/** One less than the 80 columns of the narrowest usual terminal. */
const WIDTH_MAX = 79;

/** Shows on standard error how many parts are done: a bar on a terminal, and lines in a log. */
export class Progress {
  readonly #context: CliContext;
  readonly #total: number;
  #done = 0;

  constructor(context: CliContext, total: number) {
    this.#context = context;
    this.#total = total;
  }

  /** Shows that one part has ended. */
  end(part: string, isComplete: boolean): void {
    this.#done += 1;
    const count = `${this.#done}/${this.#total}`;
    const outcome = isComplete ? part : `${part} (not complete)`;
    if (this.#context.terminal === undefined) {
      printNote(this.#context, `${count} ${outcome}`);
      return;
    }
    const filled = Math.round((BAR_WIDTH * this.#done) / this.#total);
    const bar = "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled);
    const line = withoutControls(`${bar} ${count} ${outcome}`).slice(0, WIDTH_MAX);
    this.#context.process.stderr.write(`\r${line.padEnd(WIDTH_MAX)}`);
  }

  /** Removes the bar. Call it before anything else is printed. */
  clear(): void {
    if (this.#context.terminal === undefined || this.#done === 0) return;
    this.#context.process.stderr.write(`\r${" ".repeat(WIDTH_MAX)}\r`);
  }
}
