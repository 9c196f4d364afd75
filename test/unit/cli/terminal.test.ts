import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PassThrough, Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { openTerminal } from "../../../src/cli/terminal/terminal.ts";

interface Pty {
  input: PassThrough & { isRaw: boolean };
  /** Everything that the terminal has shown. */
  shown: () => string;
  terminal: NonNullable<ReturnType<typeof openTerminal>>;
}

/** A fake terminal. Like a real one in raw mode, it shows only what the program writes. */
function pty(): Pty {
  const input = Object.assign(new PassThrough(), {
    isTTY: true,
    isRaw: false,
    setRawMode(raw: boolean) {
      input.isRaw = raw;
      return input;
    },
  });
  let text = "";
  const screen = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      assert.ok(input.isRaw || chunk.toString() === "\n", "nothing is asked before the terminal is raw");
      text += chunk.toString();
      done();
    },
  });
  const output = Object.assign(screen, { isTTY: true, columns: 80 });
  const terminal = openTerminal(input as unknown as ReadStream, output as unknown as WriteStream);
  assert.ok(terminal !== undefined);
  return { input, shown: () => text, terminal };
}

const forever = new AbortController().signal;

// With TERM=dumb, as in a shell of Emacs, Node's readline does not edit lines, so a backspace would be part of the
// answer.
process.env.TERM = "xterm";

describe("the terminal", () => {
  it("the terminal shows what a user types as an answer, but not if the answer is a secret", async () => {
    const open = pty();
    const name = open.terminal.ask("User: ", { echo: true }, forever);
    open.input.write("fencing\r");
    assert.equal(await name, "fencing");
    assert.match(open.shown(), /User: .*fencing/s);

    const hidden = pty();
    const password = hidden.terminal.ask("Password: ", { echo: false }, forever);
    assert.equal(hidden.input.isRaw, true, "or the terminal itself would show it");
    hidden.input.write("hunter3\u007f2\r");
    assert.equal(await password, "hunter2");
    assert.equal(hidden.shown(), "Password: \n");
    assert.equal(hidden.input.isRaw, false);
  });

  it("the terminal takes Ctrl-C, Ctrl-D and the end of the process for no answer, and leaves the terminal as it was", async () => {
    for (const key of ["\u0003", "\u0004"]) {
      const { terminal, input } = pty();
      const answer = terminal.ask("Type yes: ", { echo: true }, forever);
      input.write(`y${key}${key === "\u0004" ? "\u007f\u0004" : ""}`);
      await assert.rejects(answer, /ended at the prompt/);
      assert.equal(input.isRaw, false);
    }
    const { terminal, input } = pty();
    const stop = new AbortController();
    const answer = terminal.ask("Type yes: ", { echo: true }, stop.signal);
    stop.abort(new Error("stopped"));
    await assert.rejects(answer, /stopped/);
    assert.equal(input.isRaw, false);
  });

  it("the terminal is missing in a script", () => {
    const stream = new PassThrough();
    assert.equal(openTerminal(stream as unknown as ReadStream, stream as unknown as WriteStream), undefined);
  });
});
