import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { finishFiles } from "../../../../src/cli/bundle/contents.ts";
import { renderIndex } from "../../../../src/cli/bundle/index-page.ts";
import type { PartFile } from "../../../../src/cli/bundle/part.ts";
import { Redactor } from "../../../../src/cli/bundle/redact/redactor.ts";
import { systemClock } from "../../../../src/runtime/system.ts";

const BYTES_MAX = 2 ** 26;
const SECRET = "Str0ngPw!";
const LINES = 200_000;
const hugeLog: PartFile = {
  path: "logs/a.log",
  log: Array.from({ length: LINES }, (_, index) => `line ${index} password=${SECRET}`),
};
const status: PartFile = { path: "status.json", json: { login: { password: SECRET } } };

describe("the files of a support bundle", () => {
  const { signal } = new AbortController();

  it("the files of a support bundle that are not free of secrets in time are left out, the most useful ones last", async () => {
    let readings = 0;
    // Each of the 400 batches of the log takes one millisecond.
    const clock = { ...systemClock, monotonicMs: () => (readings += 1) };
    const bounds = { clock, endMs: 100, signal };
    const { files, gaps } = await finishFiles([hugeLog, status], new Redactor(), BYTES_MAX, bounds);
    assert.deepEqual(
      files.map(({ path }) => path),
      ["status.json"],
    );
    assert.deepEqual(
      gaps.map(({ part }) => part),
      ["logs/a.log"],
    );
    assert.match(gaps[0]?.why ?? "", /the time of the whole bundle was over before its secrets were removed/);
    for (const { text } of files) assert.ok(!text.includes(SECRET));
  });

  it("the files of a support bundle are given up at once if the user presses Ctrl-C", async () => {
    const stop = new AbortController();
    const startMs = systemClock.monotonicMs();
    const timer = systemClock.schedule(300, () => stop.abort(new Error("interrupted")));
    const bounds = { clock: systemClock, endMs: startMs + 600_000, signal: stop.signal };
    await assert.rejects(finishFiles([hugeLog], new Redactor(), BYTES_MAX, bounds), /interrupted/);
    timer.cancel();
    assert.ok(systemClock.monotonicMs() - startMs < 5_000);
  });

  it("the files of a support bundle hold no secret that begins in one batch of lines and ends in the next", async () => {
    const log = [
      ...Array.from({ length: 498 }, (_, index) => `line ${index}`),
      "-----BEGIN PRIVATE KEY-----",
      ...Array.from({ length: 20 }, (_, index) => `MIIEvQIBADANBgkqhkiG9w0BAQEFAASC${index}`),
      "-----END PRIVATE KEY-----",
      "the last line",
    ];
    const bounds = { clock: systemClock, endMs: Infinity, signal };
    const { files } = await finishFiles([{ path: "logs/a.log", log }], new Redactor(), BYTES_MAX, bounds);
    assert.doesNotMatch(files[0]?.text ?? "", /MIIEv/);
    assert.match(files[0]?.text ?? "", /the last line\n$/);
  });
});

describe("the index of a support bundle", () => {
  it("the index of a support bundle shows texts from elsewhere as they are: no link, no image and no HTML", () => {
    const hostile = "![x](https://evil.example/p.png) [y](https://evil.example) <img src=x> `code` | # h\n- item";
    const index = renderIndex({
      nowMs: 0,
      server: hostile,
      files: [],
      gaps: [{ part: "logs", why: hostile }],
      redacted: new Map(),
    });
    const outside = index.replaceAll(/`[^`\n]*`/g, "");
    assert.doesNotMatch(outside, /evil|<img|\]\(/);
    assert.match(index, /- logs: `!\[x\]/);
    assert.doesNotMatch(index, /^- item/m);
  });
});
