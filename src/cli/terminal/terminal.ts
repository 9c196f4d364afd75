import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { abortReason } from "../../runtime/clock.ts";
import { CommandRefusal } from "../errors/failures.ts";

/** The user at the terminal. */
export interface Terminal {
  /**
   * Asks, and returns the line that the user types. Questions go to standard error, so that standard output stays data.
   *
   * @param echo whether what is typed is shown; false for secrets.
   * @throws the reason of `signal` on abort; CommandRefusal if the user ends it with Ctrl-C or Ctrl-D.
   */
  ask(question: string, options: { echo: boolean }, signal: AbortSignal): Promise<string>;
}

/** The terminal of the process; undefined without one: in a script, a pipe or a job. */
export function openTerminal(input: ReadStream, output: WriteStream): Terminal | undefined {
  if (!input.isTTY || !output.isTTY) return undefined;
  return { ask: (question, { echo }, signal) => askOnce(input, output, question, echo, signal) };
}

function askOnce(
  input: ReadStream,
  output: WriteStream,
  question: string,
  echo: boolean,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(abortReason(signal));
      return;
    }
    // The line editor sets the terminal to raw mode and echoes what is typed. For a secret, the echo goes nowhere.
    const shown = echo ? output : new Writable({ write: (_chunk, _encoding, done) => done() });
    const editor = createInterface({ input, output: shown, terminal: true, historySize: 0 });
    const finish = (settle: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      editor.off("close", onEnd);
      editor.close();
      if (!echo) output.write("\n");
      settle();
    };
    const onAbort = (): void => finish(() => reject(abortReason(signal)));
    const onEnd = (): void =>
      finish(() => reject(new CommandRefusal("NotConfirmed", "ended at the prompt: nothing was ordered")));
    signal.addEventListener("abort", onAbort, { once: true });
    editor.once("line", (line) => finish(() => resolve(line)));
    editor.once("SIGINT", () => editor.close());
    editor.once("close", onEnd);
    // The question comes after raw mode is set: before that, the terminal itself would echo an answer that comes at
    // once.
    if (!echo) output.write(question);
    else {
      editor.setPrompt(question);
      editor.prompt();
    }
  });
}
