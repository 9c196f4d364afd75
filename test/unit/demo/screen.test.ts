import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { describe, it } from "node:test";
import { jsonScreen, textScreen } from "../../../hack/demo/screen.ts";
import type { Screen } from "../../../hack/demo/screen.ts";

function linesOf(draw: (out: Writable) => void): string[] {
  let text = "";
  const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
    text += chunk.toString();
    done();
  };
  draw(new Writable({ write }));
  return text.split("\n").filter((line) => line !== "");
}

const ENTRY = {
  atMs: 1_234,
  timeMs: 0,
  scene: 1,
  host: "node-1",
  step: "off",
  text: "power Off",
  tone: "good",
} as const;
const GOOD = { scene: "a host hangs", ok: true, stepsMs: { off: 1_234 }, problems: [] };
const BAD = { scene: "a disk dies", ok: false, stepsMs: {}, problems: ['no "taint"'] };

function tell(screen: Screen): void {
  screen.title("Scene 1");
  screen.entry(ENTRY);
}

describe("the demo's output", () => {
  it("the demo's output is one JSON object a line if asked for, the summary last", () => {
    const lines = linesOf((out) => {
      const screen = jsonScreen(out);
      tell(screen);
      screen.summary([GOOD], []);
    });
    assert.deepEqual(
      lines.map((line) => JSON.parse(line) as unknown),
      [
        { atMs: 1_234, time: "1970-01-01T00:00:00.000Z", scene: 1, host: "node-1", step: "off", text: "power Off" },
        { summary: [{ scene: "a host hangs", ok: true, stepsMs: { off: 1_234 } }] },
      ],
    );
  });

  it("the demo's output reports in the summary what went wrong", () => {
    const lines = linesOf((out) => jsonScreen(out).summary([BAD], ["node-2 was tainted while it was on"]));
    assert.deepEqual(JSON.parse(lines[0] ?? ""), {
      summary: [{ scene: "a disk dies", ok: false, stepsMs: {}, problems: ['no "taint"'] }],
      violations: ["node-2 was tainted while it was on"],
    });
  });

  it("the demo's output is plain lines if it is piped, without a control character, and a table at the end", () => {
    const lines = linesOf((out) => {
      const screen = textScreen(out);
      tell(screen);
      screen.summary([GOOD, BAD], ["node-2 was tainted while it was on"]);
    });
    assert.doesNotMatch(lines.join(""), /\p{Cc}/u);
    assert.deepEqual(lines, [
      "Scene 1",
      "  1.234 s  node-1   power Off",
      "When each step came, in seconds from its scene's outage on:",
      "Scene 1: a host hangs: ok",
      "  off             1.234 s",
      "Scene 2: a disk dies: FAILED",
      '  no "taint"',
      "UNSAFE: node-2 was tainted while it was on",
    ]);
  });
});
