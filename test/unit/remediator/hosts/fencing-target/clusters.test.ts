import assert from "node:assert/strict";
import { test } from "node:test";
import { NODES } from "../../../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../../../src/api/ironfence/fencing-target.ts";
import type { ClusterConnection, ClusterRef } from "../../../../../src/clusters/workload-clusters.ts";
import type { Subject } from "../../../../../src/nodes/subject.ts";
import { localNode } from "../../../../../src/nodes/subject.ts";
import type { FencingTargetDirectory } from "../../../../../src/remediator/hosts/fencing-target/directory.ts";
import { createFencingTargetDirectory } from "../../../../../src/remediator/hosts/fencing-target/directory.ts";
import { expectedIdentity } from "../../../../../src/remediator/hosts/model/identity.ts";
import { address, device, FakeBmc, NAMESPACE, startController as start, uuid, World } from "../targets-fixture.ts";

// FencingTargets of nodes that have the same name in several clusters.

const W1: ClusterRef = { namespace: "caps", name: "w1" };
const nodeOf = (nodeName: string, cluster: ClusterRef): Subject => ({ nodeName, cluster, machine: undefined });

function directoryOf(world: World): FencingTargetDirectory {
  const { runtime, openDevice } = world;
  const targets = world.view<FencingTarget>(FENCING_TARGETS);
  const deps = { runtime, targets, namespace: NAMESPACE, openDevice };
  return createFencingTargetDirectory(deps, new AbortController().signal);
}

const readyOf = (world: World, name: string): string => {
  const ready = world.liveTarget(name).status?.conditions?.find(({ type }) => type === "Ready");
  return `${ready?.status} ${ready?.reason}`;
};

/** Adds a target for node n1 of w1, in addition to the host n1 of this cluster. @returns its BMC. */
function withTarget(world: World, systemUUID: string): FakeBmc {
  world.secret("w1-n1-bmc", { username: "admin", password: "secret-1" });
  const bmc = new FakeBmc({ systemUUID });
  world.bmcs.set(address("w1-n1"), bmc);
  world.target("w1-n1", { nodeName: "n1", clusterRef: W1, devices: [device("w1-n1")] });
  return bmc;
}

/** Connects another world to the first one as the cluster w1. */
function connect(world: World, workload: World): void {
  const connection: ClusterConnection = {
    state: "connected",
    runtime: workload.runtime,
    nodes: workload.view<Node>(NODES),
  };
  world.workloadClusters = { hold: (ref) => ({ ref, connection, release: () => undefined }) };
}

test("each of two nodes with one name is found by its cluster", () => {
  const world = new World();
  world.host("n1", uuid(1));
  withTarget(world, uuid(2));
  const directory = directoryOf(world);
  const [here, there] = [directory.find(localNode("n1")), directory.find(nodeOf("n1", W1))];
  assert.ok(here.found && there.found);
  assert.deepEqual([here.host.ref.name, there.host.ref.name], ["n1", "w1-n1"]);
  assert.equal(here.host.mismatchWith(nodeOf("n1", W1)), "names node n1 now");
  assert.equal(there.host.mismatchWith(localNode("n1")), "names node n1 of cluster caps/w1 now");
  assert.equal(there.host.mismatchWith(nodeOf("n1", W1)), undefined);
  const missing = directory.find(nodeOf("n1", { ...W1, name: "w2" }));
  assert.ok(!missing.found && missing.reason === "NoTarget");
  assert.match(missing.message, /spec\.nodeName n1 and spec\.clusterRef caps\/w2/);
});

test("two targets conflict over a node within one cluster, over hardware across all", () => {
  const world = new World();
  world.host("n1", uuid(1), { identity: { verification: "Required", systemUUID: uuid(1) } });
  withTarget(world, uuid(2));
  const directory = directoryOf(world);
  assert.ok(directory.find(nodeOf("n1", W1)).found);
  const inCluster = { nodeName: "n1", clusterRef: W1 };
  world.target("w1-n1-again", { ...inCluster, devices: [device("elsewhere")] });
  assert.equal(directory.find(nodeOf("n1", W1)).found, false, "two name the same node");
  world.target("w1-n1-again", { ...inCluster, nodeName: "n7", devices: [device("n1")] });
  assert.equal(directory.find(localNode("n1")).found, false, "two point at one System");
  const identity = { verification: "Required", systemUUID: uuid(1) } as const;
  world.target("w1-n1-again", { ...inCluster, nodeName: "n7", devices: [device("elsewhere")], identity });
  assert.equal(directory.find(localNode("n1")).found, false, "two claim one system UUID");
});

test("a host is pinned by the node of its own cluster, not by the namesake", async (t) => {
  const [world, workload] = [new World(), new World()];
  connect(world, workload);
  world.host("n1", uuid(1));
  workload.node("n1", uuid(2));
  withTarget(world, uuid(2));
  await start(t, world);
  const pin = { nodeName: "n1", systemUUID: uuid(2), clusterRef: W1 };
  assert.deepEqual(world.liveTarget("w1-n1").status?.identity, pin);
  assert.deepEqual([readyOf(world, "w1-n1"), readyOf(world, "n1")], ["True Usable", "True Usable"]);
});

test("a host of another cluster that has the namesake's hardware is a mismatch", async (t) => {
  const [world, workload] = [new World(), new World()];
  connect(world, workload);
  world.node("n1", uuid(1));
  workload.node("n1", uuid(2));
  withTarget(world, uuid(1));
  await start(t, world);
  assert.equal(readyOf(world, "w1-n1"), "False Mismatch");
});

test("an identity that was pinned from a node counts for no namesake of another cluster", () => {
  const world = new World();
  const status = { identity: { nodeName: "n1", systemUUID: uuid(1) } };
  assert.equal(expectedIdentity(world.target("n1", {}, status))?.systemUUID, uuid(1));
  assert.equal(expectedIdentity(world.target("n1", { clusterRef: W1 }, status)), undefined);
});

test("a node whose cluster cannot be reached is neither pinned nor reported as missing", async (t) => {
  const world = new World();
  world.node("n1", uuid(1));
  withTarget(world, uuid(1));
  world.target("w1-n1", {
    nodeName: "n1",
    clusterRef: W1,
    devices: [device("w1-n1")],
    identity: { verification: "Required", systemUUID: uuid(1) },
  });
  await start(t, world);
  assert.equal(readyOf(world, "w1-n1"), "True Usable");
  assert.equal(world.liveTarget("w1-n1").status?.identity, undefined);
});
