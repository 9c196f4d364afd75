import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renderRecording } from "../../../hack/demo/recording.ts";

const entry = (atMs: number, text: string) =>
  ({ atMs, timeMs: 0, scene: 1, host: "node-1", step: undefined, text, tone: "plain" }) as const;

describe("the picture of the demo", () => {
  it("the picture of the demo shows each line from the time at which it came", () => {
    const picture = renderRecording("npm run demo", "Scene 1", [entry(5_000, "first"), entry(7_500, "second")]);
    const lines = picture.split("\n").filter((line) => line.startsWith("<g>"));
    assert.deepEqual(
      lines.map((line) => /dur="([\d.]+)s".*>([\d.]+ s)<.*>(\w+)<\/text><\/g>$/.exec(line)?.slice(1)),
      [
        ["1.00", "0.0 s", "first"],
        ["3.50", "2.5 s", "second"],
      ],
    );
  });

  it("the picture of the demo takes text as text, not as markup", () => {
    const picture = renderRecording("a & b", "<script>", [entry(0, "<b>")]);
    assert.doesNotMatch(picture, /<script|<b>|& /);
  });
});
