import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import type { KubeRuntime } from "../../../../src/kube/runtime.ts";
import type { KubeletLeases } from "../../../../src/nodes/leases/kubelet-leases.ts";
import { EarlyProver } from "../../../../src/remediator/early/early-prover.ts";
import type { EarlyProverDeps } from "../../../../src/remediator/early/early-prover.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const NODES = 5_000;
/** Kubernetes sets Ready=Unknown about so long after the leases have become overdue. */
const MS = 40_000;

const node = (name: string): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, uid: name, resourceVersion: "1" },
  spec: {},
  status: { nodeInfo: { bootID: "boot" }, conditions: [{ type: "Ready", status: "True" }] },
});

const target = (name: string): FencingTarget =>
  ({
    metadata: { name, uid: name, namespace: "ironfence", generation: 1 },
    spec: { nodeName: name },
    status: {
      observedGeneration: 1,
      onInBoot: "boot",
      conditions: ["Ready", "IdentityVerified"].map((type) => ({ type, status: "True" })),
    },
  }) as unknown as FencingTarget;

interface Seen {
  /** When the host of each node was opened for the first time. */
  opened: Map<string, number>;
  /** Most hosts that were open at a time. */
  most: number;
  liveReads: number;
  stored: number;
}

/** Nodes of which none renews its lease in time. */
async function proveAll(clock: VirtualClock, isOff: (name: string) => boolean): Promise<Seen> {
  const names = Array.from({ length: NODES }, (_, index) => `n${index}`);
  const nodes = new Map(names.map((name) => [name, node(name)]));
  const targets = new Map(names.map((name) => [name, target(name)]));
  const seen: Seen = { opened: new Map(), most: 0, liveReads: 0, stored: 0 };
  let open = 0;
  const lease = {
    uid: "lease",
    resourceVersion: "1",
    durationMs: 40_000,
    gapsMs: [10_000, 10_000],
    sinceMs: clock.monotonicMs() - 13_000,
  };
  const openHost = (name: string) => {
    if (!seen.opened.has(name)) seen.opened.set(name, clock.monotonicMs());
    open += 1;
    seen.most = Math.max(seen.most, open);
    const state = isOff(name) ? "Off" : "On";
    return {
      verifyIdentity: async () => ({ verified: true, message: "" }),
      readPower: async () => ({ state, raw: state }),
      close: async () => void (open -= 1),
    };
  };
  const leases: Pick<KubeletLeases, "start" | "synced" | "overdue" | "nextOverdueInMs" | "of" | "readLive"> = {
    start: () => undefined,
    synced: true,
    overdue: () => names,
    nextOverdueInMs: 0,
    of: () => lease,
    readLive: async () => {
      seen.liveReads += 1;
      return lease;
    },
  };
  const runtime = {
    clock,
    logger: createLogger("silent"),
    contact: () => ({ sinceMs: -Infinity }),
    get client() {
      seen.stored += 1;
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
    isStopped: () => false,
    remediations: () => [],
    isManaged: () => false,
  } as unknown as EarlyProverDeps;
  const end = new AbortController();
  const ended = new EarlyProver(deps).run(end.signal);
  await clock.advance(MS);
  end.abort();
  await ended;
  return seen;
}

describe("5,000 nodes whose renewals are late", () => {
  it("5,000 nodes whose renewals are late, and whose hosts are on, have 8 hosts read, and nothing is proven", async () => {
    const { opened, liveReads, stored } = await proveAll(new VirtualClock(), () => false);
    assert.equal(opened.size, 8);
    assert.equal(liveReads, 8);
    assert.equal(stored, 0);
  });

  it("5,000 nodes whose renewals are late have no more than 8 hosts read in a second, and open at a time", async () => {
    const some = await proveAll(new VirtualClock(), (name) => ["n0", "n1", "n2", "n3"].includes(name));
    assert.ok(some.opened.size > 100, `${some.opened.size} hosts`);
    const times = [...some.opened.values()];
    const within = times.map((atMs) => times.filter((other) => other >= atMs && other < atMs + 1_000).length);
    assert.equal(Math.max(...within), 8);
    // Each waits for the silence of its lease.
    const all = await proveAll(new VirtualClock(), () => true);
    assert.equal(all.most, 8);
  });
});
