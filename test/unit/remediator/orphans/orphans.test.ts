import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { createApiServer } from "../../../../hack/kube-mock/api-server.ts";
import { readCrds } from "../../../../hack/lib/crds.ts";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../../src/api/ironfence/fencing-target.ts";
import type { ClusterConnection, WorkloadClusters } from "../../../../src/clusters/workload-clusters.ts";
import { createKubeRuntime } from "../../../../src/kube/connection/create-runtime.ts";
import { createMetrics } from "../../../../src/remediator/telemetry/metrics.ts";
import { NodeClusters } from "../../../../src/remediator/clusters/node-clusters.ts";
import { tendOrphans } from "../../../../src/remediator/orphans/orphans.ts";
import type { NodeId } from "../../../../src/nodes/subject.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const NODE: NodeId = { cluster: { namespace: "tenant", name: "w1" }, name: "n1" };

/** Runs the controller of orphans. The workload cluster is connected unless the test changes that. */
async function tending(clock: VirtualClock) {
  const random = seededRandom(1);
  const server = createApiServer({ clock, random });
  for (const text of await readCrds()) server.load(text);
  const transport = server.transport({ client: "agent" });
  const logger = createLogger("silent");
  const names = { controllerName: "ironfence.io/test", instance: "test" };
  const runtime = createKubeRuntime({ transport, clock, random, logger, ...names });
  const stop = new AbortController();
  const nodes = runtime.watch<Node>({ type: NODES, trim: (raw) => raw as Node }, stop.signal);
  const world = {
    server,
    connection: { state: "connected", runtime, nodes } as ClusterConnection,
    holders: 0,
    looks: 0,
    letGo: (_node: NodeId): void => assert.fail("there is no listener"),
    onLook: (_node: NodeId): void => undefined,
    stop: async (): Promise<void> => {
      stop.abort(new Error("the test is over"));
      await clock.advance(1_000);
      await ended;
    },
  };
  const workload: WorkloadClusters = {
    hold: (ref) => {
      world.holders += 1;
      return { ref, connection: world.connection, release: () => void (world.holders -= 1) };
    },
  };
  const ended = tendOrphans(
    {
      runtime,
      clusters: new NodeClusters({ runtime, nodes, clusters: workload }),
      targets: runtime.watch({ type: FENCING_TARGETS, trim: (raw) => raw as FencingTarget }, stop.signal),
      remediations: runtime.watch(
        { type: BARE_METAL_REMEDIATIONS, trim: (raw) => raw as BareMetalRemediation },
        stop.signal,
      ),
      isServed: (node) => {
        world.looks += 1;
        world.onLook(node);
        return false;
      },
      onSessionEnd: (listener) => {
        world.letGo = listener;
        return () => undefined;
      },
      metrics: createMetrics(new Registry()),
    },
    stop.signal,
  );
  await clock.advance(1_000);
  return world;
}

describe("a node of a workload cluster that may have been left during a fence", () => {
  it("a node of a workload cluster that is requested again during its check for orphans is checked again, with its cluster kept connected until then", async () => {
    const clock = new VirtualClock();
    const world = await tending(clock);
    world.onLook = (node) => {
      if (world.looks === 1) world.letGo(node);
    };
    world.letGo(NODE);
    await clock.advance(60_000);
    assert.equal(world.looks, 2, "no look failed");
    assert.equal(world.holders, 0, "its cluster is let go");
    await world.stop();
  });

  for (const [reason, holders] of [
    ["KubeconfigMissing", 0],
    ["Unreachable", 1],
  ] as const) {
    const what = holders === 0 ? "released" : "kept";
    it(`a node that may have been left during a fence has its workload cluster ${what} if that has long been disconnected as ${reason}`, async () => {
      const clock = new VirtualClock();
      const world = await tending(clock);
      world.connection = { state: "disconnected", reason, message: "no way", sinceMs: clock.nowMs() };
      world.letGo(NODE);
      await clock.advance(300_000);
      assert.equal(world.holders, 1, "it may come back");
      await clock.advance(600_000);
      assert.equal(world.holders, holders);
      await world.stop();
    });
  }
});

describe("labels of a Node that was deleted for a remediation which is gone", () => {
  for (const [hours, isGivenBack] of [
    [23, true],
    [25, false],
  ] as const) {
    it(`the labels of a Node that a lost remediation has deleted are ${isGivenBack ? "restored on" : "no longer kept for"} a Node that joins ${hours} hours later`, async () => {
      const clock = new VirtualClock();
      const world = await tending(clock);
      const { server } = world;
      const key = { namespace: "default", name: "n1" };
      const remediations = server.collection(BARE_METAL_REMEDIATIONS);
      remediations.create({ metadata: key, spec: {} });
      const awaited = { type: "PermanentNodeDeletionExpected", status: "True", reason: "NodeDeleted", message: "" };
      const status = {
        phase: "Restoring",
        node: { name: "n1" },
        backup: { nodeUID: "uid-1", labels: { team: "a" } },
        conditions: [{ ...awaited, lastTransitionTime: "2026-01-01T00:00:00Z" }],
      };
      remediations.mergePatch(key, { status }, "status");
      await clock.advance(1_000);
      remediations.delete(key);
      await clock.advance(hours * 3_600_000);
      server.collection(NODES).create({ metadata: { name: "n1" }, status: {} });
      await clock.advance(60_000);
      const { labels } = server.collection(NODES).get({ name: "n1" })?.metadata ?? {};
      assert.equal(labels?.["team"], isGivenBack ? "a" : undefined);
      await world.stop();
    });
  }
});

describe("the host of a Ready node whose owner is gone", () => {
  for (const [kind, isKept] of [
    ["BareMetalRemediation", false],
    ["SomebodyElse", true],
  ] as const) {
    it(`the host of a Ready node is ${isKept ? "kept for an owner that is not a BareMetalRemediation" : "released if its owner is gone"}`, async () => {
      const clock = new VirtualClock();
      const world = await tending(clock);
      const { server } = world;
      const key = { namespace: "default", name: "n1" };
      server
        .collection(NODES)
        .create({ metadata: { name: "n1" }, status: { conditions: [{ type: "Ready", status: "True" }] } });
      server.collection(FENCING_TARGETS).create({
        metadata: key,
        spec: {
          nodeName: "n1",
          devices: [{ address: "redfish://n1.example/1", credentialsSecretRef: { name: "n1-bmc" } }],
        },
      });
      const owner = { uid: "gone", kind, namespace: "default", name: "n1", since: "2026-01-01T00:00:00Z" };
      server.collection(FENCING_TARGETS).mergePatch(key, { status: { owner } }, "status");
      await clock.advance(60_000);
      const target = server.collection<FencingTarget>(FENCING_TARGETS).get(key);
      assert.equal(target?.status?.owner?.uid, isKept ? "gone" : undefined);
      await world.stop();
    });
  }
});

describe("a node that was left during a fence", () => {
  it("a node that was left during a fence is tended though the API server of a workload cluster answers no call", async () => {
    const clock = new VirtualClock();
    const world = await tending(clock);
    const match = { method: "GET", pathPrefix: "/api/v1/nodes/hung" };
    world.server.faults.inject({ match, times: Infinity, action: { kind: "hang" } });
    for (let index = 0; index < 20; index += 1) world.letGo({ ...NODE, name: `hung${index}` });
    await clock.advance(1_000);
    world.looks = 0;
    world.letGo({ cluster: undefined, name: "n1" });
    world.letGo({ cluster: { namespace: "tenant", name: "w2" }, name: "n1" });
    await clock.advance(1_000);
    assert.equal(world.looks, 2, "neither that of the agent's own cluster waits, nor that of another one");
    await world.stop();
  });
});
