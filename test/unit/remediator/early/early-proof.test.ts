import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { KubeletLease } from "../../../../src/nodes/leases/kubelet-leases.ts";
import type { EarlyProofDeps } from "../../../../src/remediator/early/early-proof.ts";
import { EarlyProof } from "../../../../src/remediator/early/early-proof.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { leaseOf, nodeOf, targetOf } from "./builders.ts";

/** The facts that are watched while a host is being proven off. */
interface Watched {
  node: Node | undefined;
  target: FencingTarget | undefined;
  lease: KubeletLease;
  /** The time since which the API server has answered. */
  contactSinceMs: number;
  isAmbiguous: boolean;
  /** Whether the BMC answers as the host of the node. */
  isVerified: boolean;
}

interface Outcome {
  /** Why there was no proof; undefined if the detector got it. */
  why: string | undefined;
  readAtMs: number[];
  identified: number;
}

/** Proves a host off whose lease has been silent for long enough. `change` happens right after the first reading. */
async function prove(given: Partial<Watched>, change: Partial<Watched> = {}): Promise<Outcome> {
  const clock = new VirtualClock();
  const subject = { name: "n1", node: nodeOf("n1"), target: targetOf("n1"), lease: leaseOf(0) };
  const watched: Watched = {
    ...subject,
    lease: leaseOf(clock.monotonicMs() - 20_000),
    contactSinceMs: -Infinity,
    isAmbiguous: false,
    isVerified: true,
    ...given,
  };
  const readAtMs: number[] = [];
  let identified = 0;
  const power = {
    verifyIdentity: async () => {
      identified += 1;
      return { verified: watched.isVerified, message: "the BMC answers as another host" };
    },
    readPower: async () => {
      readAtMs.push(clock.monotonicMs());
      Object.assign(watched, change);
      return { state: "Off", raw: "Off", agrees: true };
    },
    close: async () => undefined,
  };
  const deps = {
    runtime: { clock, contact: () => ({ sinceMs: watched.contactSinceMs }) },
    leases: { of: () => watched.lease, readLive: async () => watched.lease },
    directory: {
      index: { byUid: () => watched.target },
      conflictOf: () => (watched.isAmbiguous ? "n1-again" : undefined),
      find: () => ({ found: true, host: { open: async () => power } }),
    },
    nodes: { get: () => watched.node },
  } as unknown as EarlyProofDeps;
  const end = new AbortController();
  const granted = Promise.withResolvers<undefined>();
  const proof = new EarlyProof(deps, subject, {
    onLag: () => undefined,
    onFirstReading: () => undefined,
    onDeviceFailure: () => undefined,
    mayGrant: () => true,
    onGranted: (isGranted) => {
      if (isGranted) granted.resolve(undefined);
    },
  });
  const ended = proof.run(end.signal).catch(() => "aborted");
  const outcome = Promise.race([granted.promise, ended]);
  await clock.advance(10_000);
  end.abort();
  await ended;
  return { why: await outcome, readAtMs, identified };
}

describe("an early proof", () => {
  it("an early proof takes two readings at least 1 s apart, after the identity of the host was read again", async () => {
    const { why, readAtMs, identified } = await prove({});
    assert.equal(why, undefined);
    assert.equal(identified, 1);
    const [first = 0, second = 0] = readAtMs;
    assert.ok(second - first >= 1_000, readAtMs.join(", "));
  });

  it("an early proof is not made if the BMC answers as another host than when it was last probed", async () => {
    const { why, readAtMs } = await prove({ isVerified: false });
    assert.equal(why, "the BMC answers as another host");
    assert.deepEqual(readAtMs, []);
  });

  const node = nodeOf("n1");
  const target = targetOf("n1");
  const changes: [string, Partial<Watched>, RegExp][] = [
    ["the node renews its lease", { lease: leaseOf(0, "2") }, /has renewed its lease/],
    [
      "the API server was away after the last renewal",
      { contactSinceMs: Infinity },
      /the API server could not be reached for a while/,
    ],
    [
      "the Node is made again",
      { node: { ...node, metadata: { ...node.metadata, uid: "other" } } },
      /the Node was replaced/,
    ],
    [
      "the node is in another boot",
      { node: { ...node, status: { ...node.status, nodeInfo: { bootID: "next" } } } },
      /another boot/,
    ],
    ["the node is cordoned", { node: { ...node, spec: { unschedulable: true } } }, /the node is cordoned/],
    [
      "the target is edited",
      { target: { ...target, metadata: { ...target.metadata, generation: 2 } } },
      /the target was edited/,
    ],
    [
      "the target is edited and probed again",
      {
        target: {
          ...target,
          metadata: { ...target.metadata, generation: 2 },
          status: { ...target.status, observedGeneration: 2 },
        },
      },
      /the target was edited/,
    ],
    ["the target is deleted", { target: undefined }, /the target was edited/],
    ["another target names the node", { isAmbiguous: true }, /the target is ambiguous/],
  ];
  for (const [what, change, expected] of changes) {
    it(`an early proof is void if ${what} between the two readings`, async () => {
      const { why, readAtMs } = await prove({}, change);
      assert.match(why ?? "granted", expected);
      assert.equal(readAtMs.length, 1);
    });
  }
});
