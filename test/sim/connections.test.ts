import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isKubeError } from "../../src/kube/errors.ts";
import type { KubeTransport, Lane } from "../../src/kube/transport.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";
import { limitConnections } from "./connections.ts";

const never = new AbortController().signal;
const max: Record<Lane, number> = { api: 2, bulk: 1, watch: 128, lease: 1, review: 1, page: 1 };

/** A server that answers after `answerMs`, and what it has received, with the time. */
function slowServer(clock: VirtualClock, answerMs: number): { inner: KubeTransport; received: string[] } {
  const received: string[] = [];
  const inner: KubeTransport = {
    async send({ path }, signal) {
      received.push(`${clock.monotonicMs()} ${path}`);
      await sleep(clock, answerMs, signal);
      return { status: 200, headers: {}, body: "{}" };
    },
    stream: () => assert.fail(),
    close: async () => undefined,
  };
  return { inner, received };
}

describe("the connections of a simulated agent", () => {
  it("the connections of a simulated agent carry one call each, and further calls of the lane wait in order", async () => {
    const clock = new VirtualClock();
    const { inner, received } = slowServer(clock, 100);
    const transport = limitConnections(inner, clock, { max, callMs: () => 50 });
    const sent = (["api", "api", "api", "lease", "api"] as const).map((lane, index) =>
      transport.send({ method: "GET", path: `/${index}`, lane, timeoutMs: 1_000 }, never),
    );
    await clock.advance(300);
    await Promise.all(sent);
    assert.deepEqual(received, ["50 /0", "50 /1", "50 /3", "200 /2", "200 /4"]);
  });

  it("the connections of a simulated agent leave a call whose deadline ends while it waits, and one that is aborted", async () => {
    const clock = new VirtualClock();
    const { inner, received } = slowServer(clock, 500);
    const transport = limitConnections(inner, clock, { max: { ...max, api: 1 } });
    const abort = new AbortController();
    const send = (path: string, timeoutMs: number, signal = never): Promise<string> =>
      transport.send({ method: "GET", path, lane: "api", timeoutMs }, signal).then(
        () => "answered",
        (error: unknown) => (isKubeError(error) ? error.code : assert.fail(String(error))),
      );
    const ends = [
      send("/first", 1_000),
      send("/late", 300),
      send("/aborted", 1_000, abort.signal),
      send("/cut", 700),
      send("/last", 2_000),
    ];
    await clock.advance(100);
    abort.abort();
    await clock.advance(1_500);
    assert.deepEqual(await Promise.all(ends), ["answered", "Timeout", "Aborted", "Timeout", "answered"]);
    assert.deepEqual(received, ["0 /first", "500 /cut", "700 /last"]);
    assert.equal(clock.pending, 0);
  });
});
