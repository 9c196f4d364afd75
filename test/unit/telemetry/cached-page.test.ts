import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cachedPage } from "../../../src/telemetry/cached-page.ts";
import type { Page } from "../../../src/telemetry/http-server.ts";
import { sleep } from "../../../src/runtime/clock.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const SIGNAL = new AbortController().signal;

describe("a page that is kept", () => {
  /** A numbered page that takes `costMs` to render. */
  function made(costMs: number, fails = false): { clock: VirtualClock; page: Page; count: () => number } {
    const clock = new VirtualClock();
    let count = 0;
    const page = cachedPage(clock, async () => {
      count += 1;
      const body = String(count);
      if (costMs > 0) await sleep(clock, costMs, SIGNAL);
      if (fails) throw new Error("it cannot be made");
      return { status: 200, contentType: "text/plain", body };
    });
    return { clock, page, count: () => count };
  }

  it("a cached page is rendered once for all requests that arrive meanwhile, and is kept for a second after that", async () => {
    const { clock, page, count } = made(10);
    const asked = [page(), page(), page()];
    await clock.advance(10);
    assert.deepEqual(
      (await Promise.all(asked)).map(({ body }) => body),
      ["1", "1", "1"],
    );
    await clock.advance(999);
    assert.equal((await page()).body, "1");
    await clock.advance(1);
    void page();
    assert.equal(count(), 2);
    await clock.advance(10);
  });

  for (const [costMs, keptMs] of [
    [200, 4_000],
    [5_000, 15_000],
  ] as const) {
    it(`a cached page is kept for ${keptMs} ms if it takes ${costMs} ms to render`, async () => {
      const { clock, page, count } = made(costMs);
      void page();
      await clock.advance(costMs);
      await clock.advance(keptMs - 1);
      void page();
      assert.equal(count(), 1);
      await clock.advance(1);
      void page();
      assert.equal(count(), 2);
      await clock.advance(costMs);
    });
  }

  it("a cached page is rendered again after a failure", async () => {
    const { page, count } = made(0, true);
    await assert.rejects(page(), /cannot be made/);
    await assert.rejects(page(), /cannot be made/);
    assert.equal(count(), 2);
  });
});
