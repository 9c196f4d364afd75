import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { measureClock } from "../../../src/kube/connection/measure-clock.ts";
import type { KubeTransport } from "../../../src/kube/transport.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const REQUEST = { method: "GET", path: "/", lane: "api", timeoutMs: 1_000 } as const;

/** A server whose clock is `aheadMs` ahead of our clock, and whose answers take `tookMs`. */
function measured(server: { aheadMs: number; tookMs: number; date?: string }) {
  const clock = new VirtualClock();
  const wire: KubeTransport = {
    async send() {
      const date = server.date ?? new Date(clock.nowMs() + server.aheadMs).toUTCString();
      await clock.advance(server.tookMs);
      return { status: 200, headers: { date }, body: "" };
    },
    stream: () => Promise.reject(new Error("not streamed here")),
    close: () => Promise.resolve(),
  };
  return { clock, ...measureClock(wire, clock) };
}
const { signal } = new AbortController();

describe("clock offset", () => {
  for (const aheadMs of [0, 60_000, -60_000, 1_500]) {
    it(`the bounds of the clock offset contain the clock of an API server that is ${aheadMs} ms ahead`, async () => {
      const { transport, clockOffset } = measured({ aheadMs, tookMs: 300 });
      await transport.send(REQUEST, signal);
      const { minMs = NaN, maxMs = NaN } = clockOffset() ?? {};
      assert.ok(minMs <= aheadMs && aheadMs <= maxMs, `${minMs} to ${maxMs}`);
      assert.ok(maxMs - minMs <= 1_300);
    });
  }

  it("the clock offset is unknown before an answer, and if answers do not tell", async () => {
    const { transport, clockOffset } = measured({ aheadMs: 0, tookMs: 0, date: "yesterday" });
    assert.equal(clockOffset(), undefined);
    await transport.send(REQUEST, signal);
    assert.equal(clockOffset(), undefined);
  });

  it("the clock offset keeps the best measurement for ten minutes, and no longer", async () => {
    const server = { aheadMs: 0, tookMs: 10 };
    const { clock, transport, clockOffset } = measured(server);
    await transport.send(REQUEST, signal);
    const best = clockOffset();
    Object.assign(server, { aheadMs: 60_000, tookMs: 900 });
    await transport.send(REQUEST, signal);
    assert.deepEqual(clockOffset(), best);
    await clock.advance(600_000);
    await transport.send(REQUEST, signal);
    assert.ok((clockOffset()?.maxMs ?? 0) >= 60_000);
  });
});
