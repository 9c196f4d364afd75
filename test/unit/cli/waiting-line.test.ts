import assert from "node:assert/strict";
import { test } from "node:test";
import type { CliContext } from "../../../src/cli/terminal/context.ts";
import { WaitingLine } from "../../../src/cli/terminal/waiting-line.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

function start(isTerminal: boolean) {
  const clock = new VirtualClock();
  const written: string[] = [];
  const context = {
    clock,
    process: { stderr: { write: (text: string) => void written.push(text) } },
    terminal: isTerminal ? {} : undefined,
  } as unknown as CliContext;
  return { clock, written, line: new WaitingLine(context) };
}

test("the progress of a wait is one line of a terminal, rewritten in place and cleared before other output", async () => {
  const { clock, written, line } = start(true);
  line.show("PoweringOff");
  await clock.advance(5_000);
  line.show("Rejoining: BMC\u001b[31m");
  line.clear();
  line.clear();
  assert.deepEqual(written, [
    "\r  waiting for 0 s: PoweringOff",
    "\r  waiting for 5 s: Rejoining: BMC?[31m",
    `\r${" ".repeat(38)}\r`,
  ]);
});

test("the progress of a wait is written to a log every 30 s, in lines of its own", async () => {
  const { clock, written, line } = start(false);
  for (let second = 0; second <= 60; second++) {
    line.show("WaitingForTurn");
    await clock.advance(1_000);
  }
  line.clear();
  assert.deepEqual(written, ["  waiting for 30 s: WaitingForTurn\n", "  waiting for 60 s: WaitingForTurn\n"]);
});

test("a long line does not wrap on a terminal of 80 columns", () => {
  const { written, line } = start(true);
  line.show("BMCUnreachable: ".padEnd(200, "x"));
  assert.match(written[0] ?? "", /^\r {2}waiting for 0 s: .{59}…$/);
  assert.equal(written[0]?.length, 80, "the carriage return and 79 columns");
});
