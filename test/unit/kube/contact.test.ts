import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { followContact } from "../../../src/kube/connection/follow-contact.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import type { KubeTransport } from "../../../src/kube/transport.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const REQUEST = { method: "GET", path: "/", lane: "api", timeoutMs: 1_000 } as const;
const WRITE = { ...REQUEST, method: "PATCH", path: "/api/v1/nodes/n1" } as const;
const { signal } = new AbortController();

/** A server that answers with `status` or fails calls with `fails`. Its clock is ahead of our clock. */
function served(server: {
  status?: number;
  body?: string;
  fails?: "Network" | "Timeout" | "Aborted";
  aheadMs?: number;
  /** How long an answer takes. */
  takesMs?: number;
}) {
  const clock = new VirtualClock();
  const answer = async () => {
    if (server.takesMs !== undefined) await clock.advance(server.takesMs);
    if (server.fails !== undefined) throw new KubeError(server.fails, "no answer");
    const date = new Date(clock.nowMs() + (server.aheadMs ?? 0)).toUTCString();
    return { status: server.status ?? 200, headers: { date }, body: server.body ?? "" };
  };
  const wire: KubeTransport = {
    send: answer,
    stream: async () => ({ ...(await answer()), body: (async function* () {})() }),
    close: () => Promise.resolve(),
  };
  const { transport, contact } = followContact(wire, clock);
  const call = async (): Promise<void> => {
    await transport.send(REQUEST, signal).catch(() => undefined);
  };
  const write = async (path: string = WRITE.path): Promise<void> => {
    await transport.send({ ...WRITE, path }, signal).catch(() => undefined);
  };
  const watch = async (): Promise<void> => {
    await transport.stream(REQUEST, signal).catch(() => undefined);
  };
  return { clock, contact, call, write, watch };
}

describe("contact with an API server", () => {
  it("contact with an API server begins with its first answer", async () => {
    const server: Parameters<typeof served>[0] = { fails: "Network" };
    const { clock, contact, call } = served(server);
    await call();
    assert.equal(contact().sinceMs, Infinity);
    delete server.fails;
    await clock.advance(7_000);
    await call();
    assert.equal(contact().sinceMs, clock.monotonicMs());
  });

  for (const outage of [
    { fails: "Network" },
    { fails: "Timeout" },
    { status: 503 },
    { status: 500 },
    { status: 429 },
  ] as const) {
    it(`contact with an API server begins again after the outage ${JSON.stringify(outage)}, even if only a watch has noticed it`, async () => {
      for (const by of ["call", "watch"] as const) {
        const server: Parameters<typeof served>[0] = {};
        const { clock, contact, ...ways } = served(server);
        await ways.call();
        Object.assign(server, outage);
        await clock.advance(6_000);
        await ways[by]();
        Object.assign(server, { status: 200 });
        delete server.fails;
        await ways.call();
        assert.equal(contact().sinceMs, clock.monotonicMs());
      }
    });
  }

  for (const [server, isTrouble] of [
    [{ status: 200 }, false],
    [{ status: 404 }, false],
    [{ status: 429 }, true],
    [{ status: 500 }, true],
    [{ status: 503 }, true],
    [{ fails: "Network" }, true],
    [{ fails: "Timeout" }, true],
    [{ fails: "Aborted" }, false],
    [{ takesMs: 1_000 }, false],
    [{ takesMs: 1_001 }, true],
    [{ takesMs: 1_001, fails: "Aborted" }, true],
  ] as const) {
    it(`contact with an API server ${isTrouble ? "has" : "has no"} trouble after the call ${JSON.stringify(server)}`, async () => {
      const { clock, contact, call } = served(server);
      await call();
      assert.equal(contact().troubledAtMs, isTrouble ? clock.monotonicMs() : -Infinity);
    });
  }

  it("contact with an API server has trouble while a call other than a list waits for more than 1 s for its answer", async () => {
    const clock = new VirtualClock();
    const unanswered = (): Promise<never> => new Promise(() => undefined);
    const wire: KubeTransport = { send: unanswered, stream: unanswered, close: () => Promise.resolve() };
    const { transport, contact } = followContact(wire, clock);
    void transport.send({ ...REQUEST, path: "/api/v1/nodes?limit=500" }, signal);
    await clock.advance(5_000);
    assert.equal(contact().troubledAtMs, -Infinity);
    void transport.send({ ...REQUEST, method: "POST", path: "/api/v1/pods?fieldValidation=Strict" }, signal);
    await clock.advance(1_000);
    assert.equal(contact().troubledAtMs, -Infinity);
    void transport.send(REQUEST, signal);
    await clock.advance(1);
    assert.equal(contact().troubledAtMs, clock.monotonicMs());
  });

  it("contact with an API server begins again after a time without a leader of etcd, during which nothing can be read", async () => {
    const server: Parameters<typeof served>[0] = {};
    const { clock, contact, call } = served(server);
    await call();
    server.status = 500;
    for (let step = 0; step < 30; step += 1) {
      await clock.advance(2_000);
      await call();
    }
    server.status = 200;
    await call();
    assert.equal(contact().sinceMs, clock.monotonicMs());
  });

  it("contact with an API server is kept if a webhook refuses writes, which does not concern reads", async () => {
    const server: Parameters<typeof served>[0] = {};
    const { clock, contact, call, write } = served(server);
    await call();
    const { sinceMs } = contact();
    for (let step = 0; step < 10; step += 1) {
      server.status = 500;
      await write();
      await clock.advance(10_000);
      server.status = 200;
      await call();
    }
    assert.equal(contact().sinceMs, sinceMs);
  });

  it("contact with an API server is kept if one call fails among others, after a long time without calls, and if the agent aborts a call", async () => {
    const server: Parameters<typeof served>[0] = {};
    const { clock, contact, call } = served(server);
    await call();
    const { sinceMs } = contact();
    server.fails = "Network";
    await call();
    delete server.fails;
    await clock.advance(3_000);
    await call();
    await clock.advance(60_000);
    await call();
    server.fails = "Aborted";
    await clock.advance(60_000);
    await call();
    delete server.fails;
    await call();
    assert.equal(contact().sinceMs, sinceMs);
  });

  it("contact with an API server gives the time of the clock that is furthest behind, while several API servers answer", async () => {
    const server = { aheadMs: 0 };
    const { clock, contact, call } = served(server);
    for (const aheadMs of [-120_000, 0, 300_000, 0]) {
      server.aheadMs = aheadMs;
      await call();
      await clock.advance(5_000);
    }
    const behindMs = (): number => clock.nowMs() - (contact().earliestServerTimeMs ?? NaN);
    assert.ok(behindMs() >= 120_000 && behindMs() < 121_000, `${behindMs()} ms`);
    server.aheadMs = 0;
    for (let second = 0; second < 60; second += 2) {
      await clock.advance(2_000);
      await call();
    }
    assert.ok(behindMs() < 1_000, "a clock that is not reported any more is forgotten");
  });

  it("contact with an API server is lost at a write that etcd refuses, and begins again with the first one that it takes", async () => {
    const server: Parameters<typeof served>[0] = {};
    const { clock, contact, call, write } = served(server);
    await call();
    await clock.advance(30_000);
    Object.assign(server, { status: 500, body: "etcdserver: mvcc: database space exceeded" });
    await write();
    assert.equal(contact().sinceMs, Infinity);
    Object.assign(server, { status: 200, body: "" });
    await clock.advance(30_000);
    await call();
    assert.equal(contact().sinceMs, Infinity, "a read says nothing of writes");
    await write();
    assert.equal(contact().sinceMs, clock.monotonicMs());
  });

  it("contact with an API server stays while only another kind of object is refused, which may have an etcd of its own", async () => {
    const server: Parameters<typeof served>[0] = {};
    const { contact, call, write } = served(server);
    await call();
    const { sinceMs } = contact();
    Object.assign(server, { status: 500, body: "etcdserver: mvcc: database space exceeded" });
    await write("/apis/events.k8s.io/v1/namespaces/default/events/one");
    assert.equal(contact().sinceMs, sinceMs);
    await write("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ironfence-agent");
    assert.equal(contact().sinceMs, Infinity);
  });

  it("contact with an API server notices that the server's clock is set, forward and back, and takes no slow answer for that", async () => {
    const server = { aheadMs: 0 };
    const { clock, contact, call } = served(server);
    await call();
    for (const [byMs, isNoticed] of [
      [4_000, false],
      [60_000, true],
      [-4_000, false],
      [-60_000, true],
    ] as const) {
      await clock.advance(30_000);
      server.aheadMs += byMs;
      await call();
      assert.equal(contact().clockSteadySinceMs === clock.monotonicMs(), isNoticed, `${byMs}`);
    }
  });

  it("contact with an API server gives the server's clock, never more than it reads, and at most a second less", async () => {
    const { clock, contact, call } = served({ aheadMs: 123_456 });
    assert.equal(contact().serverTimeMs, undefined);
    for (let step = 0; step < 20; step += 1) {
      await call();
      await clock.advance(777);
      const behindMs = clock.nowMs() + 123_456 - (contact().serverTimeMs ?? NaN);
      assert.ok(behindMs >= 0 && behindMs < 1_000, `${behindMs}`);
    }
  });
});
