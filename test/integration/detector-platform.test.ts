import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { crdOf, DetectorWorld } from "./detector-fixture.ts";

const CHECKS: ResourceType = {
  group: "machine.openshift.io",
  version: "v1beta1",
  kind: "MachineHealthCheck",
  plural: "machinehealthchecks",
  namespaced: true,
};
const VERSIONS: ResourceType = {
  group: "config.openshift.io",
  version: "v1",
  kind: "ClusterVersion",
  plural: "clusterversions",
  namespaced: false,
};
const BUDGETS: ResourceType = {
  group: "policy",
  version: "v1",
  kind: "PodDisruptionBudget",
  plural: "poddisruptionbudgets",
  namespaced: true,
};
const CURRENT = "machineconfiguration.openshift.io/currentConfig";
const DESIRED = "machineconfiguration.openshift.io/desiredConfig";

let world: DetectorWorld;
afterEach(() => world.stop());

function okd(): void {
  world = new DetectorWorld();
  world.server.load(crdOf(CHECKS));
  world.server.load(crdOf(VERSIONS));
  world.server.collection(NAMESPACES).create({ metadata: { name: "openshift-machine-api" } });
  world.server.collection(VERSIONS).create({ metadata: { name: "version" } });
  progressing("False");
  world.template();
  world.nodes(3);
  world.check();
}

function progressing(status: string): void {
  const conditions = [{ type: "Progressing", status }];
  world.server.collection(VERSIONS).mergePatch({ name: "version" }, { status: { conditions } }, "status");
}

function machineCheck(name: string, ...types: string[]): void {
  const unhealthyConditions = types.map((type) => ({ type, status: "True", timeout: "0s" }));
  const metadata = { namespace: "openshift-machine-api", name };
  world.server.collection(CHECKS).create({ metadata, spec: { unhealthyConditions } });
}

const enabled = () => world.until("enabled", () => world.status().phase === "Enabled");

describe("detector: OKD's own health checks", () => {
  it("detector: OKD's own health checks disable a health check, and one that is under way creates no more, until they are gone", async () => {
    okd();
    machineCheck("workers", "Ready");
    world.start();
    await world.until("disabled", () => world.status().phase === "Disabled");
    assert.equal(world.condition("Disabled")?.reason, "ConflictingMachineHealthCheckDetected");
    assert.match(world.condition("Disabled")?.message ?? "", /openshift-machine-api\/workers/);
    assert.deepEqual([world.status().observedNodes, world.status().healthyNodes], [3, 3]);
    world.ready("n1", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual(world.fences(), []);
    world.server.collection(CHECKS).delete({ namespace: "openshift-machine-api", name: "workers" });
    await world.until("a CR", () => world.fences().length > 0, 2_000);
  });

  it("detector: OKD's own health checks that come later disable it too", async () => {
    okd();
    world.start();
    await enabled();
    machineCheck("workers", "Ready");
    await world.until("disabled", () => world.status().phase === "Disabled", 2_000);
  });

  it("detector: OKD's own health checks are no conflict if they only handle nodes that the cloud terminates, and those nodes are left to them", async () => {
    okd();
    machineCheck("machine-api-termination-handler", "Terminating");
    world.start();
    await enabled();
    const now = new Date(world.clock.nowMs()).toISOString();
    const conditions = ["Ready", "Terminating"].map((type) => ({ type, status: "Unknown", lastTransitionTime: now }));
    world.server.collection(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
    world.ready("n2", "Unknown");
    await world.until("a CR", () => world.fences().length > 0, 12_000);
    await world.clock.advance(5_000);
    assert.deepEqual(
      world.fences().map(({ metadata }) => metadata.name),
      ["n2"],
    );
    assert.ok(world.told("RemediationSkipped").some((note) => /node n1: its cloud provider terminates it/.test(note)));
  });
});

describe("detector: cluster upgrades", () => {
  it("detector: cluster upgrades postpone remediation while the cluster version is progressing; counts and clean-up go on", async () => {
    okd();
    world.ready("n0", "Unknown");
    world.start();
    await world.until("a CR", () => world.fences().length === 1, 12_000);
    progressing("True");
    world.ready("n1", "Unknown");
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    assert.deepEqual([world.status().observedNodes, world.status().healthyNodes], [3, 1]);
    assert.equal(world.told("RemediationSkipped").filter((note) => /ongoing cluster upgrade/.test(note)).length, 1);
    world.ready("n0", "True");
    await world.until("cleaned up", () => world.fences().length === 0, 2_000);
    progressing("False");
    await world.until("a CR", () => world.fences().length === 1, 2_000);
  });

  it("detector: cluster upgrades are also recognized by an unhealthy node whose configuration is being changed", async () => {
    okd();
    const annotate = (current: string, desired: string) =>
      world.server
        .collection(NODES)
        .mergePatch({ name: "n1" }, { metadata: { annotations: { [CURRENT]: current, [DESIRED]: desired } } });
    annotate("rendered-1", "rendered-2");
    world.start();
    await enabled();
    world.ready("n1", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual(world.fences(), []);
    annotate("rendered-2", "rendered-2");
    await world.until("a CR", () => world.fences().length === 1, 2_000);
  });

  it("detector: cluster upgrades that begin between the decision and the CR still count", async () => {
    okd();
    world.start();
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases" };
    world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 4_000 } });
    world.ready("n1", "Unknown");
    await world.clock.advance(11_000);
    progressing("True");
    await world.clock.advance(20_000);
    assert.deepEqual(world.fences(), []);
  });

  it("detector: cluster upgrades postpone every remediation if the agent may not read whether one is running", async () => {
    okd();
    const match = { pathPrefix: "/apis/config.openshift.io/v1/clusterversions" };
    world.server.faults.inject({ match, times: 1_000, action: { kind: "status", status: 403 } });
    world.ready("n1", "Unknown");
    world.start();
    await world.until("told", () => world.told("RemediationSkipped").some((note) => /forbidden/i.test(note)), 30_000);
    await world.clock.advance(20_000);
    assert.deepEqual(world.fences(), []);
  });
});

describe("detector: etcd's quorum on OKD", () => {
  const ETCD = "openshift-etcd";
  const CONTROL_PLANE = { "node-role.kubernetes.io/master": "" };

  /** Creates three control plane nodes with a guard pod each. `disruptionsAllowed` of them may be down. */
  async function guarded(disruptionsAllowed: number): Promise<void> {
    okd();
    world.server.load(crdOf(BUDGETS));
    world.server.collection(NAMESPACES).create({ metadata: { name: ETCD } });
    budget("etcd-guard-pdb", disruptionsAllowed);
    for (const name of ["m0", "m1", "m2"]) {
      world.node(name, CONTROL_PLANE);
      world.server.collection(PODS).create({
        metadata: { namespace: ETCD, name: `etcd-guard-${name}`, labels: { app: "guard" } },
        spec: { nodeName: name, containers: [{ name: "guard", image: "guard" }] },
      });
      guardReady(name, "True");
    }
    world.start();
    await enabled();
    world.ready("m1", "Unknown");
  }
  const budget = (name: string, disruptionsAllowed: number) => {
    const key = { namespace: ETCD, name };
    const budgets = world.server.collection(BUDGETS);
    budgets.create({ metadata: key, spec: { selector: { matchLabels: { app: "guard" } } } });
    budgets.mergePatch(key, { status: { disruptionsAllowed } }, "status");
  };
  const guardReady = (node: string, status: string) =>
    world.server
      .collection(PODS)
      .mergePatch(
        { namespace: ETCD, name: `etcd-guard-${node}` },
        { status: { conditions: [{ type: "Ready", status }] } },
        "status",
      );
  const told = (words: RegExp) => () => world.told("RemediationSkipped").some((note) => words.test(note));

  it("detector: a control plane node on OKD waits while etcd needs every member", async () => {
    await guarded(0);
    world.ready("n1", "Unknown");
    await world.until("told", told(/m1: etcd would lose its quorum: etcd-guard-pdb allows no disruption/), 12_000);
    await world.clock.advance(60_000);
    assert.deepEqual(
      world.fences().map(({ metadata }) => metadata.name),
      ["n1"],
    );
    assert.equal(world.leases().length, 1, "no other client is kept from the node meanwhile");
    const patch = { status: { disruptionsAllowed: 1 } };
    world.server.collection(BUDGETS).mergePatch({ namespace: ETCD, name: "etcd-guard-pdb" }, patch, "status");
    await world.until("its admission", () => world.fences().length === 2, 61_000);
  });

  it("detector: etcd's quorum on OKD is kept if a guard has no status", async () => {
    await guarded(0);
    world.server
      .collection(PODS)
      .mergePatch({ namespace: ETCD, name: "etcd-guard-m1" }, { status: { conditions: null } }, "status");
    await world.until("told", told(/m1: etcd would lose its quorum/), 12_000);
    assert.deepEqual(world.fences(), []);
  });

  it("detector: etcd's quorum on OKD is kept if the budget has not been evaluated yet", async () => {
    await guarded(0);
    const key = { namespace: ETCD, name: "etcd-guard-pdb" };
    world.server.collection(BUDGETS).mergePatch(key, { status: { disruptionsAllowed: null } }, "status");
    await world.until("told", told(/m1: etcd would lose its quorum/), 12_000);
    assert.deepEqual(world.fences(), []);
  });

  it("detector: etcd's quorum on OKD is not touched by a node whose own member is down", async () => {
    await guarded(0);
    guardReady("m1", "False");
    await world.until("a CR", () => world.fences().length === 1, 12_000);
  });

  it("detector: etcd's quorum on OKD leaves room if the budget says so", async () => {
    await guarded(1);
    await world.until("a CR", () => world.fences().length === 1, 12_000);
  });

  it("detector: etcd's quorum on OKD counts as lost if it is unknown: no budget, two budgets, one that selects nothing, or no permission to read it", async () => {
    await guarded(0);
    const key = { namespace: ETCD, name: "etcd-guard-pdb" };
    world.server.collection(BUDGETS).delete(key);
    await world.until(
      "the missing budget is reported",
      told(/cannot check etcd quorum: found 0 PodDisruptionBudgets/),
      12_000,
    );
    for (const name of ["a", "b"]) budget(name, 1);
    await world.until(
      "the two budgets are reported",
      told(/cannot check etcd quorum: found 2 PodDisruptionBudgets/),
      61_000,
    );
    world.server.collection(BUDGETS).delete({ ...key, name: "b" });
    world.server.collection(BUDGETS).mergePatch({ ...key, name: "a" }, { spec: { selector: null } });
    world.server.collection(BUDGETS).mergePatch({ ...key, name: "a" }, { status: { disruptionsAllowed: 0 } }, "status");
    await world.until(
      "the empty selector is reported",
      told(/cannot check etcd quorum: a: the selector is empty/),
      61_000,
    );
    const match = { pathPrefix: `/apis/policy/v1/namespaces/${ETCD}` };
    world.server.faults.inject({ match, times: 100, action: { kind: "status", status: 403 } });
    await world.until("the missing permission is reported", told(/cannot check etcd quorum \(forbidden\)/), 61_000);
    assert.deepEqual(world.fences(), []);
  });
});
