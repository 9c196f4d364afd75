import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { NODES } from "../../src/api/core-types.ts";
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
  it("disable a health check, and one that is under way creates no more, until they are gone", async () => {
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

  it("that come later disable it too", async () => {
    okd();
    world.start();
    await enabled();
    machineCheck("workers", "Ready");
    await world.until("disabled", () => world.status().phase === "Disabled", 2_000);
  });

  it("are no conflict where they only see to nodes that their cloud terminates, and those nodes are theirs", async () => {
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
    assert.ok(world.told("RemediationSkipped").some((note) => /node n1: its cloud terminates it/.test(note)));
  });
});

describe("detector: cluster upgrades", () => {
  it("postpone remediation while the cluster version is progressing; counts and clean-up go on", async () => {
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

  it("show by an unhealthy node that is being brought to another configuration too", async () => {
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

  it("that begin between the decision and the CR still count", async () => {
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

  it("nothing starts where it may not be read whether one goes on", async () => {
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
