import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import { runLeaderElection } from "../../../src/kube/lease/leader-election.ts";
import type { LeaderElectionOptions } from "../../../src/kube/lease/leader-election.ts";
import { LeadershipLostError } from "../../../src/kube/lease/lease-term.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import type { KubeTransport, TransportRequest, TransportResponse } from "../../../src/kube/transport.ts";
import { abortReason, sleep } from "../../../src/runtime/clock.ts";
import { failure } from "./api-stub.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";
import { answer } from "./scripted-transport.ts";
import { evenRandom, silentLogger } from "./support.ts";

interface StoredLease {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    resourceVersion: string;
    annotations?: Record<string, string>;
  };
  spec: { holderIdentity: string; leaseTransitions: number; renewTime: string; leaseDurationSeconds: number };
}

/** A Lease that its last holder has released. */
function freeLease(uid: string): StoredLease {
  return {
    metadata: { name: "ironfence", namespace: "ironfence-system", uid, resourceVersion: "0" },
    spec: {
      holderIdentity: "",
      leaseTransitions: 0,
      renewTime: "2025-12-31T00:00:00.000000Z",
      leaseDurationSeconds: 1,
    },
  };
}

/** An API server with only the Lease, and a transport for each candidate that can be cut. */
class LeaseServer {
  lease: StoredLease | undefined = freeLease("lease-0");
  readonly writes: string[] = [];
  #version = 0;

  /**
   * While `cut` is set, requests of this transport hang until their signal aborts. Writes are answered after
   * `answerMs`.
   */
  wire(state: { cut: boolean; answerMs: number }): KubeTransport {
    return {
      send: async (request, signal) => {
        if (state.cut) {
          await new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(new KubeError("Aborted", abortReason(signal).message)));
          });
        }
        assert.equal(request.lane, "lease");
        const answered = this.#answer(request);
        if (request.method !== "GET" && state.answerMs > 0) await sleep(clock, state.answerMs, signal);
        return answered;
      },
      stream: () => Promise.reject(new Error("no watch here")),
      close: async () => undefined,
    };
  }

  #answer(request: TransportRequest): TransportResponse {
    if (request.method === "GET") {
      return this.lease === undefined ? answer(404, failure(404, "NotFound", "none")) : answer(200, this.#served());
    }
    const body = JSON.parse(request.body ?? "") as StoredLease;
    if (request.method === "POST") {
      if (this.lease !== undefined) return answer(409, failure(409, "AlreadyExists", "there is one"));
      this.lease = { ...body, metadata: { ...body.metadata, uid: `made-${this.#version}`, resourceVersion: "" } };
    } else {
      const { metadata } = this.lease ?? {};
      if (metadata === undefined) return answer(404, failure(404, "NotFound", "none"));
      const fits = body.metadata.uid === metadata.uid && body.metadata.resourceVersion === metadata.resourceVersion;
      if (!fits) return answer(409, failure(409, "Conflict", "modified"));
      const changed = Object.entries({ ...metadata.annotations, ...body.metadata.annotations });
      // A merge patch removes what it sets to null.
      const annotations = Object.fromEntries(changed.filter(([, text]) => (text as string | null) !== null));
      this.lease = { metadata: { ...metadata, annotations }, spec: { ...this.lease?.spec, ...body.spec } };
    }
    this.#version += 1;
    this.lease.metadata.resourceVersion = String(this.#version);
    this.writes.push(this.lease.spec.holderIdentity);
    return answer(200, this.#served());
  }

  #served(): object {
    return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", ...this.lease };
  }
}

interface Candidate {
  leading: { fromMs: number; toMs: number | undefined }[];
  saw: (string | undefined)[];
  result: Promise<unknown>;
  stop: AbortController;
  cut: boolean;
  answerMs: number;
}

let clock: VirtualClock;
let server: LeaseServer;

beforeEach(() => {
  clock = new VirtualClock();
  server = new LeaseServer();
});

function candidate(identity: string, options: Partial<LeaderElectionOptions> = {}): Candidate {
  const stop = new AbortController();
  const self: Candidate = { leading: [], saw: [], stop, cut: false, answerMs: 0, result: Promise.resolve() };
  const client = createKubeClient({ transport: server.wire(self), clock, random: evenRandom, lane: "lease" });
  const run = runLeaderElection(
    { client, clock, random: evenRandom, logger: silentLogger },
    {
      namespace: "ironfence-system",
      name: "ironfence",
      identity,
      lead: async (signal) => {
        const term: Candidate["leading"][number] = { fromMs: clock.monotonicMs(), toMs: undefined };
        self.leading.push(term);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        term.toMs = clock.monotonicMs();
      },
      onChange: (leader) => self.saw.push(leader),
      ...options,
    },
    stop.signal,
  );
  self.result = run.catch((error: unknown) => error);
  return self;
}

test("the first candidate leads and renews; the second waits and says for which holder", async () => {
  const a = candidate("a");
  await settle();
  const b = candidate("b");
  await clock.advance(60_000);
  assert.equal(a.leading.length, 1);
  assert.equal(b.leading.length, 0);
  assert.deepEqual(b.saw, ["a"]);
  assert.equal(server.writes.length, 31, "the first write and a renewal every two seconds");
  assert.match(server.lease?.spec.renewTime ?? "", /\.\d{6}Z$/);
  a.stop.abort();
  b.stop.abort();
  await settle();
  assert.equal(await a.result, undefined);
  assert.equal(await b.result, undefined);
  assert.equal(clock.pending, 0);
});

test("the leader describes itself in the lease's annotations, as it is at each renewal", async () => {
  let notReady = "";
  candidate("a", { describe: () => ({ version: "1.2.3", notReady }) });
  await settle();
  assert.deepEqual(server.lease?.metadata.annotations, { version: "1.2.3", notReady: "" });
  notReady = "may not watch nodes";
  await clock.advance(3_000);
  assert.deepEqual(server.lease?.metadata.annotations, { version: "1.2.3", notReady: "may not watch nodes" });
});

test("a lease that was released names no holder, and keeps the annotations of others", async () => {
  server.lease = freeLease("lease-0");
  server.lease.metadata.annotations = { note: "keep" };
  const a = candidate("a", { describe: () => ({ version: "1.2.3", notReady: "may not watch nodes" }) });
  await settle();
  assert.equal(server.lease?.metadata.annotations?.["version"], "1.2.3");
  a.stop.abort();
  await settle();
  assert.equal(server.lease?.spec.holderIdentity, "");
  assert.deepEqual(server.lease?.metadata.annotations, { note: "keep" });
});

test("the lease is held until the work has ended on a clean stop, and then released at once", async () => {
  let finish: () => void = () => undefined;
  const a = candidate("a", {
    lead: async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    },
  });
  await settle();
  const b = candidate("b");
  a.stop.abort();
  await clock.advance(20_000);
  assert.equal(
    server.lease?.spec.holderIdentity,
    "a",
    "winding down takes longer than the lease, and still it is held",
  );
  assert.equal(b.leading.length, 0);
  finish();
  await settle();
  assert.equal(await a.result, undefined);
  assert.equal(server.lease?.spec.holderIdentity, "");
  await clock.advance(5_000);
  assert.equal(b.leading.length, 1);
  assert.equal(server.lease?.spec.leaseTransitions, 2);
  b.stop.abort();
  await settle();
});

test("work that ends by itself releases the lease, and its error is passed on", async () => {
  const fine = candidate("a", { lead: async () => undefined });
  await settle();
  assert.equal(await fine.result, undefined);
  const bad = candidate("b", {
    lead: async () => {
      throw new Error("the work's own fault");
    },
  });
  await settle();
  assert.match(String(await bad.result), /the work's own fault/);
  assert.equal(server.lease?.spec.holderIdentity, "");
});

test("work that throws its signal's reason when asked to stop has stopped cleanly", async () => {
  const a = candidate("a", { lead: (signal) => sleep(clock, 1_000_000, signal) });
  await settle();
  a.stop.abort(new Error("SIGTERM"));
  await settle();
  assert.equal(await a.result, undefined);
  assert.equal(server.lease?.spec.holderIdentity, "");
});

/** Starts two candidates, and cuts off the one that leads. */
async function cutLeaderOff(afterMs: number): Promise<{ a: Candidate; b: Candidate }> {
  clock = new VirtualClock();
  server = new LeaseServer();
  const a = candidate("a");
  await settle();
  const b = candidate("b");
  await clock.advance(20_000 + afterMs);
  a.cut = true;
  return { a, b };
}

test("a leader that is cut off stops before any other agent can lead", async () => {
  for (const cutAfterMs of [0, 500, 1_999, 2_000, 3_700]) {
    const { a, b } = await cutLeaderOff(cutAfterMs);
    await clock.advance(60_000);
    const stoppedMs = a.leading[0]?.toMs;
    const tookOverMs = b.leading[0]?.fromMs;
    assert.ok(stoppedMs !== undefined && tookOverMs !== undefined);
    assert.ok(stoppedMs < tookOverMs, `stopped at ${stoppedMs}, taken over at ${tookOverMs}`);
    assert.ok((await a.result) instanceof LeadershipLostError);
    b.stop.abort();
    await settle();
    assert.equal(clock.pending, 0);
  }
});

test("a leader that comes back does not take over the lease that another agent has taken", async () => {
  const a = candidate("a");
  await settle();
  const b = candidate("b");
  await clock.advance(4_000);
  a.cut = true;
  await clock.advance(30_000);
  a.cut = false;
  await clock.advance(30_000);
  assert.equal(a.leading.length, 1);
  assert.equal(b.leading.length, 1);
  assert.equal(b.leading[0]?.toMs, undefined, "the new leader leads on");
  b.stop.abort();
  await settle();
});

test("a leader whose lease another client took by force stops at once", async () => {
  const a = candidate("a");
  await settle();
  assert.ok(server.lease !== undefined);
  server.lease = {
    metadata: { ...server.lease.metadata, resourceVersion: "77" },
    spec: { ...server.lease.spec, holderIdentity: "intruder" },
  };
  await clock.advance(2_000);
  assert.equal(a.leading[0]?.toMs, 2_000);
  assert.match(String(await a.result), /intruder has taken the lease/);
  assert.equal(server.lease.spec.holderIdentity, "intruder", "and it does not touch the lease any more");
});

test("the times in a lease do not show its age: only a lease that was observed without a renewal has expired", async () => {
  server.lease = {
    metadata: { name: "ironfence", namespace: "ironfence-system", uid: "u", resourceVersion: "1" },
    spec: {
      holderIdentity: "other",
      leaseTransitions: 4,
      renewTime: "1999-01-01T00:00:00.000000Z",
      leaseDurationSeconds: 40,
    },
  };
  const a = candidate("a");
  await clock.advance(40_000);
  assert.equal(a.leading.length, 0);
  await clock.advance(5_000);
  assert.equal(a.leading.length, 1);
  assert.equal(server.lease.spec.leaseTransitions, 5);
  a.stop.abort();
  await settle();
});

test("work that does not stop after a loss is left behind before the lease can be taken", async () => {
  const a = candidate("a", { lead: () => new Promise(() => undefined) });
  await settle();
  a.cut = true;
  let endedMs = 0;
  const ended = (async () => {
    await a.result;
    endedMs = clock.monotonicMs();
  })();
  await clock.advance(60_000);
  assert.ok((await a.result) instanceof LeadershipLostError);
  await ended;
  assert.equal(endedMs, 15_000, "one lease duration after the last renewal was sent");
});

test("work that does not stop when asked to ends the process without a release of the lease", async () => {
  const a = candidate("a", { lead: () => new Promise(() => undefined) });
  await settle();
  a.stop.abort();
  await clock.advance(25_000);
  assert.match(String(await a.result), /did not end within 25000 ms/);
  assert.equal(server.lease?.spec.holderIdentity, "a");
  assert.equal(clock.pending, 0);
});

test("no two agents lead while the Lease is deleted under a leader that is cut off from the API", async () => {
  for (const putBack of [undefined, freeLease("put-back")]) {
    for (const cutAfterMs of [0, 700, 1_400, 1_999, 3_300]) {
      const { a, b } = await cutLeaderOff(cutAfterMs);
      await clock.advance(100);
      server.lease = putBack;
      // A candidate that starts now has seen no holder, and cannot distinguish this from a cluster in which no agent
      // has led before.
      const late = putBack === undefined ? [candidate("c")] : [];
      await clock.advance(60_000);
      const stoppedMs = a.leading[0]?.toMs ?? Infinity;
      const others = [b, ...late];
      const tookOverMs = others.flatMap(({ leading }) => leading.map(({ fromMs }) => fromMs));
      assert.equal(tookOverMs.length, 1);
      assert.ok(stoppedMs < (tookOverMs[0] ?? 0), `stopped at ${stoppedMs}, taken over at ${tookOverMs.join(", ")}`);
      for (const { stop } of others) stop.abort();
      await settle();
      await a.result;
    }
  }
});

test("the first candidate of all waits for one lease duration, and for no more", async () => {
  server.lease = undefined;
  const a = candidate("a");
  await clock.advance(15_000);
  assert.deepEqual([a.leading.length, server.writes.length], [0, 0]);
  await clock.advance(4_400);
  assert.equal(a.leading.length, 1);
  a.stop.abort();
  await settle();
});

test("a Lease that was released before it was deleted may have been taken unseen", async () => {
  const b = candidate("b", { identity: "b" });
  await settle();
  b.stop.abort();
  await settle();
  const a = candidate("a");
  a.answerMs = 0;
  server.lease = undefined;
  await clock.advance(14_000);
  assert.equal(a.leading.length, 0);
  a.stop.abort();
  await settle();
});

test("a lease that a user deleted is created again", async () => {
  const a = candidate("a");
  await settle();
  server.lease = undefined;
  await clock.advance(30_000);
  assert.equal(a.leading[0]?.toMs, undefined);
  assert.equal((server.lease as StoredLease | undefined)?.spec.holderIdentity, "a");
  a.stop.abort();
  await settle();
});

test("a candidate keeps trying while the API server cannot be reached, and ends with its signal", async () => {
  const a = candidate("a");
  a.cut = true;
  await clock.advance(60_000);
  assert.equal(a.leading.length, 0);
  a.cut = false;
  await clock.advance(20_000);
  assert.equal(a.leading.length, 1);
  a.stop.abort();
  await settle();
  const b = candidate("b");
  b.cut = true;
  b.stop.abort();
  await settle();
  assert.equal(await b.result, undefined);
});

test("periods that could not keep the promise are refused", async () => {
  const a = candidate("a", { leaseDurationMs: 10_000, renewDeadlineMs: 10_000 });
  assert.ok((await a.result) instanceof RangeError);
});

test("a process that was suspended knows that another one may have its lease before any timer runs", async () => {
  let suspendedMs = 0;
  const running = clock.monotonicMs.bind(clock);
  clock.monotonicMs = () => running() + suspendedMs;
  let isHeld: () => boolean = () => false;
  const a = candidate("a", {
    lead: (signal, held) => {
      isHeld = held;
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
    },
  });
  await settle();
  assert.equal(isHeld(), true);
  suspendedMs = 9_900;
  assert.equal(isHeld(), true);
  suspendedMs = 10_000;
  assert.equal(isHeld(), false);
  a.stop.abort();
  await settle();
  await a.result;
});

/** A clock whose wall time can be moved ahead by `byMs`. */
function wallAhead(): { byMs: number } {
  const ahead = { byMs: 0 };
  const now = clock.nowMs.bind(clock);
  clock.nowMs = () => now() + ahead.byMs;
  return ahead;
}

/** A candidate, and whether its work still sees the lease as held. */
function asked(identity: string): { self: Candidate; isHeld: () => boolean } {
  let isHeld: () => boolean = () => false;
  const self = candidate(identity, {
    lead: (signal, held) => {
      isHeld = held;
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
    },
  });
  return { self, isHeld: () => isHeld() };
}

test("a leader on a machine that was suspended, with its monotonic clock stopped, has lost the lease as soon as it continues", async () => {
  const wall = wallAhead();
  const { self, isHeld } = asked("a");
  await clock.advance(5_000);
  assert.equal(isHeld(), true);
  wall.byMs = 120_000;
  assert.equal(isHeld(), false, "before any timer runs");
  await clock.advance(2_000);
  assert.match(String(await self.result), /the machine was suspended, its wall clock was set forward/);
  assert.equal(server.writes.length, 3, "it is not renewed: an agent that took it meanwhile keeps it");
});

test("a machine that was suspended while its renewal was on its way has lost the lease, though the answer says otherwise", async () => {
  const wall = wallAhead();
  const { self, isHeld } = asked("a");
  await clock.advance(1_000);
  self.answerMs = 2_000;
  await clock.advance(2_000);
  wall.byMs = 30_000;
  await clock.advance(1_500);
  assert.equal(isHeld(), false);
  assert.ok((await self.result) instanceof LeadershipLostError);
});

test("a machine that was suspended as it took the lease does not begin by that", async () => {
  const wall = wallAhead();
  const { self, isHeld } = asked("a");
  self.answerMs = 3_000;
  await clock.advance(1_000);
  wall.byMs = 60_000;
  await clock.advance(2_500);
  assert.deepEqual([isHeld(), server.writes.length], [false, 1]);
  self.stop.abort();
  await settle();
});

test("a wall clock that is slewed or set back neither shortens nor extends the lease", async () => {
  const wall = wallAhead();
  const { self, isHeld } = asked("a");
  await clock.advance(1_000);
  for (let second = 0; second < 120; second += 1) {
    wall.byMs += 83;
    await clock.advance(1_000);
    assert.equal(isHeld(), true);
  }
  wall.byMs -= 600_000;
  self.cut = true;
  await clock.advance(8_900);
  assert.equal(isHeld(), true);
  await clock.advance(100);
  assert.equal(isHeld(), false);
  assert.ok((await self.result) instanceof LeadershipLostError);
});

test("a lease counts from when the request for it was sent: others may have seen it as early", async () => {
  for (const renewals of [0, 1]) {
    clock = new VirtualClock();
    server = new LeaseServer();
    const a = candidate("a");
    if (renewals === 0) a.answerMs = 3_000;
    await clock.advance(1_000);
    a.answerMs = 3_000;
    await clock.advance(renewals * 2_000);
    // The request in progress is answered, and all later ones are not.
    a.cut = true;
    await clock.advance(30_000);
    assert.equal(a.leading[0]?.toMs, 10_000 + renewals * 2_000);
    assert.ok((await a.result) instanceof LeadershipLostError);
  }
});

test("a lease that is created counts from the time at which its request was sent", async () => {
  server.lease = undefined;
  const a = candidate("a");
  a.answerMs = 3_000;
  await clock.advance(17_000);
  assert.deepEqual(server.writes, ["a"], "it looks every 3.2 s, and made the Lease at 16 s");
  a.cut = true;
  await clock.advance(30_000);
  assert.equal(a.leading[0]?.toMs, 26_000);
  assert.ok((await a.result) instanceof LeadershipLostError);
});

test("a renewal that hangs leaves the time for another one", async () => {
  const a = candidate("a");
  await clock.advance(1_000);
  a.cut = true;
  await clock.advance(2_000);
  a.cut = false;
  await clock.advance(30_000);
  assert.equal(a.leading[0]?.toMs, undefined);
  a.stop.abort();
  await settle();
});

test("a process that was suspended as it took the lease does not begin by it", async () => {
  let suspendedMs = 0;
  const running = clock.monotonicMs.bind(clock);
  clock.monotonicMs = () => running() + suspendedMs;
  const heldAtStart: boolean[] = [];
  const a = candidate("a", {
    lead: (signal, isHeld) => {
      heldAtStart.push(isHeld());
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
    },
  });
  a.answerMs = 3_000;
  await clock.advance(1_000);
  suspendedMs = 20_000;
  await clock.advance(20_000);
  assert.deepEqual(heldAtStart, [true]);
  a.stop.abort();
  await clock.advance(10_000);
});

test("work that winds down after its lease was taken knows that it is not held, though its time is not over", async () => {
  let isHeld: () => boolean = () => true;
  const a = candidate("a", {
    lead: (_signal, held) => {
      isHeld = held;
      return new Promise(() => undefined);
    },
  });
  await settle();
  assert.ok(server.lease !== undefined);
  server.lease = {
    metadata: { ...server.lease.metadata, resourceVersion: "77" },
    spec: { ...server.lease.spec, holderIdentity: "intruder" },
  };
  await clock.advance(2_000);
  assert.equal(isHeld(), false);
  await clock.advance(10_000);
  assert.ok((await a.result) instanceof LeadershipLostError);
});

test("a lease that was lost is not renewed while the work winds down: others wait for it", async () => {
  const a = candidate("a", { lead: () => new Promise(() => undefined) });
  await settle();
  a.cut = true;
  await clock.advance(10_000);
  a.cut = false;
  await clock.advance(10_000);
  assert.deepEqual(server.writes, ["a"]);
  assert.ok((await a.result) instanceof LeadershipLostError);
});

test("a lease that another one has at the time of a clean stop is left to it", async () => {
  const a = candidate("a");
  await settle();
  assert.ok(server.lease !== undefined);
  server.lease = {
    metadata: { ...server.lease.metadata, resourceVersion: "77" },
    spec: { ...server.lease.spec, holderIdentity: "intruder" },
  };
  a.stop.abort();
  await settle();
  assert.equal(await a.result, undefined);
  assert.equal(server.lease.spec.holderIdentity, "intruder");
});
