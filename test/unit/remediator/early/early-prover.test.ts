import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { KubeRuntime } from "../../../../src/kube/runtime.ts";
import type { KubeletLeases } from "../../../../src/nodes/leases/kubelet-leases.ts";
import { EarlyProver } from "../../../../src/remediator/early/early-prover.ts";
import type { EarlyProverDeps } from "../../../../src/remediator/early/early-prover.ts";
import type { StateName } from "../../../../src/remediator/machine/model/decision/state.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { leaseOf, nodeOf, targetOf } from "./builders.ts";

const NODES = 5_000;
/** The time from overdue leases until Kubernetes sets Ready=Unknown. */
const MS = 40_000;

interface Seen {
  /** The time at which the host of each node was first opened. */
  opened: Map<string, number>;
  /** The maximum number of hosts that were open at the same time. */
  most: number;
  /** Times of live reads of leases, since the beginning. */
  liveReadsMs: number[];
  /** Times at which a proof was to be stored, since the beginning. */
  storedMs: number[];
}

interface Given {
  /** The number of nodes with overdue renewals. */
  count?: number;
  /** Nodes whose renewals become overdue later, with the time. */
  laterMs?: Readonly<Record<string, number>>;
  /** The reading of each BMC; undefined if it does not answer. */
  power?: (name: string) => "On" | "Off" | undefined;
  /** The resource version of the lease in a live read. The watched one is 1. */
  liveVersion?: string;
  node?: (name: string) => Node;
  isStopped?: boolean;
  /** The state of each remediation that has begun early and still exists. */
  begun?: readonly StateName[];
  forMs?: number;
}

/** Runs the prover on nodes of which none renews its lease in time. */
async function proveAll(given: Given): Promise<Seen> {
  const { count = NODES, laterMs = {}, power = () => "Off", liveVersion = "1", begun = [], forMs = MS } = given;
  const clock = new VirtualClock();
  const fromMs = clock.monotonicMs();
  const names = Array.from({ length: count }, (_, index) => `n${index}`);
  const nodes = new Map(names.map((name) => [name, (given.node ?? nodeOf)(name)]));
  const targets = new Map(names.map((name) => [name, targetOf(name)]));
  const seen: Seen = { opened: new Map(), most: 0, liveReadsMs: [], storedMs: [] };
  let open = 0;
  const lease = leaseOf(fromMs - 13_000);
  const openHost = (name: string) => {
    if (!seen.opened.has(name)) seen.opened.set(name, clock.monotonicMs());
    open += 1;
    seen.most = Math.max(seen.most, open);
    return {
      verifyIdentity: async () => ({ verified: true, message: "" }),
      readPower: async () => {
        const state = power(name);
        return state === undefined ? new Promise(() => undefined) : { state, raw: state };
      },
      close: async () => void (open -= 1),
    };
  };
  const leases: Pick<KubeletLeases, "start" | "synced" | "overdue" | "nextOverdueInMs" | "of" | "readLive"> = {
    start: () => undefined,
    synced: true,
    overdue: () => names.filter((name) => clock.monotonicMs() - fromMs >= (laterMs[name] ?? 0)),
    nextOverdueInMs: 0,
    of: () => lease,
    readLive: async () => {
      seen.liveReadsMs.push(clock.monotonicMs() - fromMs);
      return { ...lease, resourceVersion: liveVersion };
    },
  };
  const runtime = {
    clock,
    logger: createLogger("silent"),
    contact: () => ({ sinceMs: -Infinity }),
    get client() {
      seen.storedMs.push(clock.monotonicMs() - fromMs);
      throw new Error("nothing is to be written");
    },
  } as unknown as KubeRuntime;
  const deps = {
    runtime,
    nodes: { synced: true, get: ({ name }: { name: string }) => nodes.get(name) },
    targets: { synced: true },
    leases,
    directory: {
      index: {
        byNode: ({ name }: { name: string }) => [targets.get(name)],
        byUid: (uid: string) => targets.get(uid),
      },
      conflictOf: () => undefined,
      find: ({ nodeName }: { nodeName: string }) => ({
        found: true,
        host: {
          open: async () => openHost(nodeName),
        },
      }),
    },
    proofs: { whenEarlyWanted: async () => undefined, isEarlyWantedFor: () => true },
    isStopped: () => given.isStopped ?? false,
    remediations: () =>
      begun.map((phase, index) => ({
        metadata: { uid: `r${index}` },
        spec: { powerOnNotBefore: "2026-01-01T00:10:00Z" },
        status: { phase },
      })),
    isManaged: () => false,
  } as unknown as EarlyProverDeps;
  const end = new AbortController();
  const ended = new EarlyProver(deps).run(end.signal);
  await clock.advance(forMs);
  end.abort();
  await ended;
  return seen;
}

const mostInASecond = (timesMs: readonly number[]): number =>
  Math.max(...timesMs.map((atMs) => timesMs.filter((other) => other >= atMs && other < atMs + 1_000).length));

describe("5,000 nodes whose renewals are late", () => {
  it("5,000 nodes whose renewals are late, and whose hosts are on, have 8 hosts read, and nothing is proven", async () => {
    const { opened, liveReadsMs, storedMs } = await proveAll({ power: () => "On" });
    assert.equal(opened.size, 8);
    assert.equal(liveReadsMs.length, 8);
    assert.deepEqual(storedMs, []);
  });

  it("5,000 nodes whose renewals are late have no more than 8 hosts read in a second, and 8 open at a time", async () => {
    const off = ["n0", "n1", "n2", "n3"];
    const some = await proveAll({ power: (name) => (off.includes(name) ? "Off" : "On") });
    assert.ok(some.opened.size > 100, `${some.opened.size} hosts`);
    assert.equal(mostInASecond([...some.opened.values()]), 8);
    // Each proof waits for the silence of its lease.
    const all = await proveAll({});
    assert.equal(all.most, 8);
  });

  it("5,000 nodes whose renewals are late have no more than 20 leases read live in a second", async () => {
    for (const power of ["On", "Off"] as const) {
      const off = new Set(["n0", "n1", "n2", "n3"]);
      const { liveReadsMs } = await proveAll({ power: (name) => (off.has(name) ? "Off" : power) });
      assert.ok(liveReadsMs.length > 24, `${liveReadsMs.length} reads`);
      const most = mostInASecond(liveReadsMs);
      assert.ok(most <= 20, `${most} reads of leases whose hosts are ${power}`);
    }
  });
});

describe("a node whose renewal is late", () => {
  it("a node whose renewal is late has no host read while power-offs are stopped, or if the node is cordoned", async () => {
    assert.equal((await proveAll({ count: 1 })).opened.size, 1);
    assert.equal((await proveAll({ count: 1, isStopped: true })).opened.size, 0);
    const cordoned = (name: string): Node => ({ ...nodeOf(name), spec: { unschedulable: true } });
    assert.equal((await proveAll({ count: 1, node: cordoned })).opened.size, 0);
  });

  it("a node whose renewal is late has its lease read no sooner than 5 s after the watch was found to lag by another one", async () => {
    const { liveReadsMs } = await proveAll({ count: 2, laterMs: { n1: 1_000 }, liveVersion: "2", forMs: 8_000 });
    assert.equal(liveReadsMs[0], 0);
    assert.ok((liveReadsMs[1] ?? 0) >= 5_000, liveReadsMs.join(", "));
    const fresh = await proveAll({ count: 2, laterMs: { n1: 1_000 }, power: () => "On", forMs: 4_000 });
    assert.deepEqual(fresh.liveReadsMs, [0, 1_000]);
  });

  it("a node whose renewal is late is not proven off while 4 nodes are released early, or 64 were in the last 10 min", async () => {
    const isProven = async (begun: readonly StateName[]): Promise<boolean> =>
      (await proveAll({ count: 1, begun, forMs: 14_000 })).storedMs.length > 0;
    const of = (phase: StateName, count: number) => Array.from({ length: count }, () => phase);
    for (const phase of ["Resolving", "Verifying", "PoweringOff", "Releasing"] as const) {
      assert.equal(await isProven(of(phase, 3)), true, phase);
      assert.equal(await isProven(of(phase, 4)), false, phase);
    }
    for (const phase of ["PoweringOn", "Succeeded"] as const) {
      assert.equal(await isProven(of(phase, 63)), true, phase);
      assert.equal(await isProven(of(phase, 64)), false, phase);
    }
  });

  it("a node whose renewal is late is not proven off before the other hosts of the first 8 of its wave were read", async () => {
    assert.ok((await proveAll({ count: 1, forMs: 14_000 })).storedMs.length > 0);
    const power = (name: string) => (name === "n0" ? "Off" : undefined);
    assert.deepEqual((await proveAll({ count: 8, power, forMs: 14_000 })).storedMs, []);
  });
});
