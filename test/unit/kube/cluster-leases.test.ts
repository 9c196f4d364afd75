import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../../hack/kube-mock/api-server.ts";
import type { FaultAction } from "../../../hack/kube-mock/faults.ts";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import { ClusterLeases } from "../../../src/kube/lease/cluster-leases.ts";
import type { LeaderLease } from "../../../src/kube/lease/lease-record.ts";
import { LEASE } from "../../../src/kube/lease/lease-record.ts";
import { LeadershipLostError } from "../../../src/kube/lease/lease-term.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";
import { evenRandom, silentLogger } from "./support.ts";

const CLUSTER = "kube-system";
const OWN = "default";
const NAMES = ["detector", "remediator"];
/** Duration of a lease, and the time after which a holder stops if it cannot renew it. */
const [DURATION_MS, DEADLINE_MS] = [15_000, 10_000];
/** Maximum time between two attempts with the random numbers of these tests. */
const RETRY_MS = 3_200;
const REFUSED: FaultAction = { kind: "status", status: 403 };

interface Agent {
  leading: { fromMs: number; toMs: number | undefined }[];
  isHeld: () => boolean;
  leases: ClusterLeases;
  /** The distinct log messages before it led. */
  said: string[];
  result: Promise<unknown>;
  stop: () => Promise<unknown>;
}

let clock: VirtualClock;
let server: ApiServer;

beforeEach(createServer);

function createServer(): void {
  clock = new VirtualClock();
  server = createApiServer({ clock, random: evenRandom });
  for (const name of NAMES) free(CLUSTER, name);
  for (const name of ["first", "second", "third"]) free(OWN, name);
}

function free(namespace: string, name: string): void {
  server.collection(LEASE).create({ metadata: { namespace, name }, spec: {} });
}

/** An agent of an installation. `name` is its client name at the API server. */
function agent(name: string, installation: string, names: readonly string[] = ["remediator"]): Agent {
  const stop = new AbortController();
  const client = createKubeClient({ transport: server.transport({ client: name }), clock, random: evenRandom });
  const said: string[] = [];
  const leases: ClusterLeases = new ClusterLeases(
    { client, clock, random: evenRandom, logger: silentLogger },
    {
      namespace: CLUSTER,
      names,
      installation: `${OWN}/${installation}`,
      onChange: () => said.push(leases.states.map(({ state }) => state.is).join(" ")),
    },
  );
  const self: Agent = {
    leading: [],
    isHeld: () => false,
    leases,
    said,
    result: Promise.resolve(),
    stop: async () => {
      stop.abort();
      await clock.advance(0);
      return self.result;
    },
  };
  const election = {
    namespace: OWN,
    name: installation,
    identity: name,
    lead: async (signal: AbortSignal, isHeld: () => boolean) => {
      const term: Agent["leading"][number] = { fromMs: clock.monotonicMs(), toMs: undefined };
      self.leading.push(term);
      self.isHeld = isHeld;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      term.toMs = clock.monotonicMs();
    },
  };
  self.result = leases.run(election, stop.signal).catch((error: unknown) => error);
  return self;
}

/**
 * Injects a fault into an agent's calls on leases, optionally of one namespace. @returns a function that removes it.
 */
function hamper(client: string, namespace: string | undefined, action: FaultAction): () => void {
  const pathPrefix = namespace === undefined ? "/apis/coordination.k8s.io/v1" : LEASES_OF(namespace);
  return server.faults.inject({ match: { client, pathPrefix }, times: Infinity, action });
}

const LEASES_OF = (namespace: string): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;

function holder(name: string, namespace = CLUSTER): string | undefined {
  return server.collection<LeaderLease>(LEASE).get({ namespace, name })?.spec?.holderIdentity;
}

async function ended(...agents: Agent[]): Promise<void> {
  for (const { stop } of agents) await stop();
  assert.equal(clock.pending, 0, "nothing is left running");
}

describe("two installations", () => {
  it("the second of two installations stands by, and reports which one leads", async () => {
    const a = agent("a", "first");
    await clock.advance(1_000);
    const b = agent("b", "second");
    await clock.advance(120_000);
    assert.deepEqual([a.leading.length, b.leading.length], [1, 0]);
    assert.deepEqual([holder("first", OWN), holder("second", OWN), holder("remediator")], ["a", "b", "default/first"]);
    assert.deepEqual(b.said, ["taken"]);
    assert.deepEqual(b.leases.states[0]?.state, { is: "taken", by: "default/first" });
    assert.deepEqual([a.leases.blocking, b.leases.blocking], [[], b.leases.states]);
    await ended(a, b);
  });

  it("two installations follow each other once the first has been gone for a lease duration, and not before it has stopped", async () => {
    for (const cutAfterMs of [0, 700, 1_999, 2_000]) {
      createServer();
      const a = agent("a", "first");
      await clock.advance(1_000);
      const b = agent("b", "second");
      await clock.advance(20_000 + cutAfterMs);
      const mend = hamper("a", undefined, { kind: "hang" });
      const cutMs = clock.monotonicMs();
      await clock.advance(60_000);
      const stoppedMs = a.leading[0]?.toMs ?? Infinity;
      const tookOverMs = b.leading[0]?.fromMs ?? Infinity;
      assert.ok(stoppedMs < tookOverMs, `stopped at ${stoppedMs}, taken over at ${tookOverMs}`);
      assert.ok(tookOverMs >= cutMs + DURATION_MS - 2_000 && tookOverMs <= cutMs + DURATION_MS + RETRY_MS + 100);
      mend();
      await ended(a, b);
    }
  });

  it("a second installation leads one lease duration after the last agent of the first one has stopped", async () => {
    const a = agent("a", "first");
    await clock.advance(1_000);
    const b = agent("b", "second");
    await clock.advance(20_000);
    await a.stop();
    const stoppedMs = clock.monotonicMs();
    await clock.advance(60_000);
    const tookOverMs = b.leading[0]?.fromMs ?? Infinity;
    assert.ok(tookOverMs >= stoppedMs + DURATION_MS - 2_000, `stopped at ${stoppedMs}, taken over at ${tookOverMs}`);
    await ended(b);
  });

  it("two installations share the work if each has leases of its own", async () => {
    const a = agent("a", "first", ["detector"]);
    const b = agent("b", "second", ["remediator"]);
    await clock.advance(1_000);
    assert.deepEqual([a.leading.length, b.leading.length], [1, 1]);
    await ended(a, b);
  });

  it("two installations do not occupy one lease while they wait for another", async () => {
    const a = agent("a", "first", ["remediator"]);
    await clock.advance(1_000);
    const b = agent("b", "second", NAMES);
    await clock.advance(30_000);
    assert.equal(b.leading.length, 0);
    assert.deepEqual([holder("detector"), b.said], [undefined, ["free taken"]]);
    const c = agent("c", "third", ["detector"]);
    await clock.advance(1_000);
    assert.equal(c.leading.length, 1);
    await ended(a, b, c);
  });
});

describe("agents of one installation", () => {
  it("agents of one installation take over from each other at once", async () => {
    const a = agent("a", "first", NAMES);
    await clock.advance(1_000);
    const b = agent("b", "first", NAMES);
    const other = agent("c", "second", NAMES);
    await clock.advance(20_000);
    await a.stop();
    await clock.advance(RETRY_MS);
    assert.deepEqual([b.leading.length, other.leading.length], [1, 0]);
    assert.equal(holder("remediator"), "default/first");
    await ended(b, other);
  });

  it("agents of one installation lead after two calls more on each lease, all leases at once", async () => {
    const calls: string[] = [];
    server.onRequest(({ method, path }) => {
      if (path.startsWith(LEASES_OF(CLUSTER))) calls.push(method);
    });
    const a = agent("a", "first", NAMES);
    await clock.advance(0);
    assert.equal(a.leading.length, 1);
    // The first two are the checks that continue during the wait for the agent's own lease.
    assert.deepEqual(calls.toSorted(), ["GET", "GET", "GET", "GET", "PATCH", "PATCH"]);
    await ended(a);
  });

  it("agents of one installation wait for missing leases side by side, and make them", async () => {
    const leases = server.collection(LEASE);
    for (const name of NAMES) leases.delete({ namespace: CLUSTER, name });
    leases.delete({ namespace: OWN, name: "first" });
    const a = agent("a", "first", NAMES);
    await clock.advance(DURATION_MS);
    assert.equal(a.leading.length, 0);
    await clock.advance(RETRY_MS + 200);
    assert.equal(a.leading.length, 1);
    assert.deepEqual(
      NAMES.map((name) => holder(name)),
      ["default/first", "default/first"],
    );
    await ended(a);
  });
});

describe("a leader that loses a lease of the cluster", () => {
  it("a leader that loses a lease of the cluster has stopped before another installation leads, and keeps its own lease until that runs out", async () => {
    const a = agent("a", "first", NAMES);
    await clock.advance(1_000);
    const b = agent("b", "second", NAMES);
    await clock.advance(20_000);
    const mend = hamper("a", CLUSTER, { kind: "hang" });
    await clock.advance(60_000);
    assert.equal(a.isHeld(), false);
    assert.ok((await a.result) instanceof LeadershipLostError);
    assert.ok((a.leading[0]?.toMs ?? Infinity) < (b.leading[0]?.fromMs ?? 0));
    assert.equal(holder("first", OWN), "a");
    mend();
    await ended(b);
  });

  it("a leader that loses a lease of the cluster orders nothing once its own lease is lost, though it still holds those of the cluster", async () => {
    const a = agent("a", "first", NAMES);
    await clock.advance(1_000);
    const mend = hamper("a", OWN, { kind: "hang" });
    await clock.advance(DEADLINE_MS);
    assert.equal(a.leading[0]?.toMs, DEADLINE_MS);
    assert.equal(a.isHeld(), false);
    mend();
    await ended(a);
  });

  it("a leader that loses a lease of the cluster stops at once if another client has taken it by force", async () => {
    const a = agent("a", "first", NAMES);
    await clock.advance(1_000);
    server
      .collection(LEASE)
      .mergePatch({ namespace: CLUSTER, name: "detector" }, { spec: { holderIdentity: "default/second" } });
    await clock.advance(2_000);
    assert.notEqual(a.leading[0]?.toMs, undefined);
    assert.match(String(await a.result), /default\/second has taken the lease/);
    assert.equal(clock.pending, 0);
  });

  it("a leader that loses a lease of the cluster has stopped before another installation leads if that Lease is deleted while it is cut off", async () => {
    const a = agent("a", "first");
    await clock.advance(1_000);
    const b = agent("b", "second");
    await clock.advance(20_000);
    const mend = hamper("a", CLUSTER, { kind: "hang" });
    server.collection(LEASE).delete({ namespace: CLUSTER, name: "remediator" });
    await clock.advance(60_000);
    assert.ok((a.leading[0]?.toMs ?? Infinity) < (b.leading[0]?.fromMs ?? 0));
    mend();
    await ended(b);
  });
});

describe("an API server that forbids a lease of the cluster", () => {
  it("an API server that forbids a lease of the cluster counts as forbidding it after a lease duration: the agent leads without the lease, and reports that", async () => {
    const allow = hamper("a", CLUSTER, REFUSED);
    const a = agent("a", "first");
    await clock.advance(DURATION_MS);
    assert.equal(a.leading.length, 0);
    await clock.advance(2 * RETRY_MS);
    assert.deepEqual([a.leading.length, a.said.at(-1)], [1, "refused"]);
    await clock.advance(60_000);
    assert.equal(a.leading[0]?.toMs, undefined);
    assert.equal(a.isHeld(), true);
    allow();
    await ended(a);
  });

  it("an API server that forbids a lease of the cluster does not make the agent lead while another installation is known to work", async () => {
    const a = agent("a", "first");
    await clock.advance(1_000);
    const b = agent("b", "second");
    await clock.advance(5_000);
    const allow = hamper("b", CLUSTER, REFUSED);
    await clock.advance(120_000);
    assert.deepEqual([a.leading.length, b.leading.length], [1, 0]);
    assert.equal(b.leases.states[0]?.state.is, "taken");
    allow();
    await ended(a, b);
  });

  it("an API server that forbids a lease of the cluster makes the agent lead without it once the lease of the other installation has expired", async () => {
    const a = agent("a", "first");
    await clock.advance(1_000);
    const match = { client: "b", pathPrefix: LEASES_OF(CLUSTER), method: "PATCH" };
    const allow = server.faults.inject({ match, times: Infinity, action: REFUSED });
    const b = agent("b", "second");
    await clock.advance(60_000);
    assert.equal(b.leading.length, 0);
    await a.stop();
    const stoppedMs = clock.monotonicMs();
    await clock.advance(60_000);
    const tookOverMs = b.leading[0]?.fromMs ?? Infinity;
    assert.ok(tookOverMs >= stoppedMs + DURATION_MS, `stopped at ${stoppedMs}, taken over at ${tookOverMs}`);
    assert.deepEqual([b.leading.length, b.isHeld(), holder("remediator")], [1, true, "default/first"]);
    // A failed call does not make the other agent lead again; its next agent does.
    const mend = hamper("b", CLUSTER, { kind: "status", status: 500 });
    await clock.advance(DEADLINE_MS / 2);
    mend();
    await clock.advance(DEADLINE_MS / 2);
    assert.equal(b.isHeld(), true);
    const next = agent("c", "first");
    await clock.advance(DEADLINE_MS);
    assert.deepEqual([b.isHeld(), next.leading.length], [false, 1]);
    allow();
    await ended(b, next);
  });

  it("an API server that forbids a lease of the cluster does not make the agent lead if it refuses twice, for a moment each", async () => {
    const a = agent("a", "first");
    await clock.advance(1_000);
    const faults = [REFUSED, { kind: "hang" } as const, REFUSED];
    let end = hamper("b", CLUSTER, REFUSED);
    const b = agent("b", "second");
    for (const action of faults) {
      end();
      end = hamper("b", CLUSTER, action);
      await clock.advance(12_000);
    }
    end();
    await clock.advance(20_000);
    assert.deepEqual([a.leading.length, b.leading.length], [1, 0]);
    await ended(a, b);
  });

  it("a term ends if the API server refuses access to a lease of the cluster that is held, so that another installation may take it", async () => {
    const a = agent("a", "first");
    await clock.advance(1_000);
    const b = agent("b", "second");
    await clock.advance(20_000);
    const allow = hamper("a", CLUSTER, REFUSED);
    await clock.advance(DEADLINE_MS + 2_000);
    assert.notEqual(a.leading[0]?.toMs, undefined);
    await clock.advance(60_000);
    assert.equal(b.leading.length, 1);
    allow();
    await ended(a, b);
  });

  it("an API server that forbids a lease of the cluster has the lease taken once it allows that, and ends the term if another installation has it by then", async () => {
    for (const other of [undefined, "default/second"]) {
      createServer();
      let allow = hamper("a", CLUSTER, REFUSED);
      const a = agent("a", "first");
      await clock.advance(DURATION_MS + 2 * RETRY_MS);
      assert.equal(a.leading.length, 1);
      if (other !== undefined) {
        const spec = { holderIdentity: other, leaseDurationSeconds: 15 };
        server.collection(LEASE).mergePatch({ namespace: CLUSTER, name: "remediator" }, { spec });
      }
      allow();
      await clock.advance(3_000);
      assert.deepEqual([a.isHeld(), holder("remediator")], [other === undefined, other ?? "default/first"]);
      // From here on it counts like any other lease.
      allow = hamper("a", CLUSTER, REFUSED);
      await clock.advance(DEADLINE_MS + 2_000);
      assert.equal(a.isHeld(), false);
      allow();
      await ended(a);
    }
  });

  it("an API server that forbids a lease of the cluster differs from one that fails: without an answer no agent leads", async () => {
    for (const action of [
      { kind: "status", status: 500 },
      { kind: "status", status: 401 },
      { kind: "drop" },
    ] as const) {
      createServer();
      const mend = hamper("a", CLUSTER, action);
      const a = agent("a", "first");
      await clock.advance(120_000);
      assert.equal(a.leading.length, 0, JSON.stringify(action));
      assert.deepEqual([a.leases.blocking[0]?.state.is, a.said.at(-1)], ["failing", "failing"]);
      mend();
      await ended(a);
    }
  });

  it("an API server that forbids a lease of the cluster leads to no second leader if only writing is refused", async () => {
    const match = { client: "a", pathPrefix: LEASES_OF(CLUSTER), method: "PATCH" };
    const allow = server.faults.inject({ match, times: Infinity, action: REFUSED });
    const a = agent("a", "first");
    await clock.advance(DURATION_MS + 2 * RETRY_MS);
    assert.deepEqual([a.leading.length, a.leases.states[0]?.state.is], [1, "refused"]);
    const b = agent("b", "second");
    await clock.advance(10_000);
    // The agent that may write the lease holds it. The agent that may only read it notices that.
    assert.deepEqual([a.isHeld(), b.leading.length], [false, 1]);
    allow();
    await ended(a, b);
  });
});
