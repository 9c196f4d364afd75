import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { LEASES } from "../../src/api/kubernetes/core-types.ts";
import { toMicroTime } from "../../src/runtime/time.ts";
import { crdOf, DetectorWorld, vendorType } from "./detector-fixture.ts";

let world: DetectorWorld;
afterEach(() => world.stop());

async function enabled(options: Parameters<DetectorWorld["enabled"]>[0] = {}): Promise<void> {
  world = new DetectorWorld(options);
  await world.enabled(options);
}

const fenced = (name?: string, kind?: string) => world.fenced(name, kind);
const fenceOf = (node: string, kind?: string) => world.fenceOf(node, kind);
const label = (name: string, labels: Record<string, string | null>) => world.label(name, labels);

describe("detector: who is left alone", () => {
  it("a paused health check starts nothing new; recovery and status go on", async () => {
    await enabled();
    await fenced("n1");
    world.edit({ pauseRequests: ["upgrade"] });
    world.ready("n2", "Unknown");
    await world.until("told", () => world.told("RemediationSkipped").length === 1);
    await world.clock.advance(30_000);
    assert.equal(fenceOf("n2"), undefined);
    assert.deepEqual(
      [world.status().phase, world.status().observedNodes, world.status().healthyNodes],
      ["Paused", 3, 1],
    );
    world.ready("n1", "True");
    await world.until("clean", () => world.fences().length === 0, 1_000);
    world.edit({ pauseRequests: [] });
    await world.until("a CR", () => fenceOf("n2") !== undefined, 1_000);
  });

  it("an excluded node is not remediated, and an empty label only warns and excludes nothing", async () => {
    await enabled();
    label("n1", { "remediation.medik8s.io/exclude-from-remediation": "true" });
    label("n2", { "remediation.medik8s.io/exclude-from-remediation": "" });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("n2", () => fenceOf("n2") !== undefined);
    assert.equal(fenceOf("n1"), undefined);
    assert.equal(world.told("InvalidNodeLabel").length, 1);
    assert.match(world.told("RemediationSkipped").join(), /n1: node has Exclude/);
    label("n1", { "remediation.medik8s.io/exclude-from-remediation": null });
    // The list that was used for n2 may be out of date. It is reused only for a short time.
    await world.until("n1", () => fenceOf("n1") !== undefined, 1_500);
  });

  it("a node whose lease a maintenance tool holds is not remediated until it is free, and that lease is not touched", async () => {
    await enabled();
    const lease = {
      metadata: { namespace: "medik8s-leases", name: "node-n1" },
      spec: {
        holderIdentity: "node-maintenance",
        leaseDurationSeconds: 3600,
        acquireTime: toMicroTime(world.clock.nowMs()),
        renewTime: toMicroTime(world.clock.nowMs()),
      },
    };
    world.server.collection(LEASES).create(lease);
    world.ready("n1", "Unknown");
    await world.until("told", () => world.told("RemediationSkipped").some((note) => /node-maintenance/.test(note)));
    await world.clock.advance(60_000);
    assert.deepEqual(world.fences(), []);
    assert.equal(world.leases()[0]?.spec.holderIdentity, "node-maintenance");
    assert.equal(world.told("RemediationSkipped").length, 1);
    world.server.collection(LEASES).delete({ namespace: "medik8s-leases", name: "node-n1" });
    await world.until("a CR", () => fenceOf("n1") !== undefined, 20_000);
    assert.equal(world.leases()[0]?.spec.holderIdentity, "NodeHealthCheck-check");
  });

  it("a CR that another client made for a node is reported, and stays", async () => {
    await enabled();
    const foreign = world.server.collection(vendorType("Fence")).create({
      metadata: {
        namespace: "fencing",
        name: "n1",
        ownerReferences: [
          {
            apiVersion: "remediation.medik8s.io/v1alpha1",
            kind: "NodeHealthCheck",
            name: "check",
            uid: "of-an-earlier-one",
          },
        ],
      },
      spec: {},
    });
    world.ready("n1", "Unknown");
    await world.until("told", () => world.told("RemediationSkipped").some((note) => /it has another owner/.test(note)));
    world.ready("n1", "True");
    await world.clock.advance(30_000);
    assert.deepEqual(
      world.fences().map(({ metadata }) => metadata.uid),
      [foreign.metadata.uid],
    );
  });

  it("a node that two health checks select is remediated by the older one, and the other one says so", async () => {
    await enabled();
    await world.clock.advance(2_000);
    world.check({ selector: { matchExpressions: [{ key: "pool", operator: "Exists" }] } }, "a-younger-one");
    await world.until("enabled", () => world.status("a-younger-one").phase === "Enabled");
    world.ready("n1", "Unknown");
    await world.until("a CR", () => world.fences().length > 0);
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    assert.equal(world.fences()[0]?.metadata.ownerReferences?.[0]?.name, "check");
    assert.ok(
      world
        .told("RemediationSkipped")
        .some((note) => /older NodeHealthCheck check|NodeHealthCheck check is/.test(note)),
    );
  });

  it("a node outside the selector is not remediated, and is judged at once when a label brings it in", async () => {
    await enabled();
    label("n1", { pool: "elsewhere" });
    world.ready("n1", "Unknown");
    await world.clock.advance(60_000);
    assert.deepEqual([world.fences().length, world.status().observedNodes], [0, 2]);
    label("n1", { pool: "a" });
    await world.until("a CR", () => fenceOf("n1") !== undefined, 500);
  });
});

describe("detector: the lease of a node", () => {
  const lease = (holderIdentity: string, renewedMs: number) =>
    world.server.collection(LEASES).create({
      metadata: { namespace: "medik8s-leases", name: "node-n1" },
      spec: {
        holderIdentity,
        leaseDurationSeconds: 60,
        acquireTime: toMicroTime(renewedMs),
        renewTime: toMicroTime(renewedMs),
      },
    });

  it("detector: the lease of a node is taken over from a holder whose time was over long enough ago for its clock to be off", async () => {
    await enabled();
    const endsMs = world.clock.nowMs() + 60_000;
    lease("node-maintenance", world.clock.nowMs());
    world.ready("n1", "Unknown");
    await world.until("a CR", () => fenceOf("n1") !== undefined, 120_000);
    assert.ok(world.clock.nowMs() >= endsMs + 15_000, "not before the margin for another clock was over");
    const [taken] = world.leases();
    assert.equal(taken?.spec.holderIdentity, "NodeHealthCheck-check");
    assert.equal(taken?.spec.leaseTransitions, 1);
  });

  it("detector: a node is remediated without its lease if the namespace of the lease does not exist", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases" };
    world.server.faults.inject({ match, times: 100, action: { kind: "status", status: 404 } });
    await fenced();
    assert.deepEqual(world.leases(), []);
  });

  it("detector: the lease of a node counts as taken if the detector is not allowed to write leases, and that is reported", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases" };
    world.server.faults.inject({ match, times: 2, action: { kind: "status", status: 403 } });
    world.ready("n1", "Unknown");
    await world.until("told", () =>
      world.told("RemediationSkipped").some((note) => /cannot take its lease/.test(note)),
    );
    assert.deepEqual(world.fences(), []);
    await world.until("a CR", () => fenceOf("n1") !== undefined, 60_000);
  });

  it("detector: the lease of a node is released if the node is healthy again before a CR could be made", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/fence.example/v1/namespaces/fencing/fences" };
    world.server.faults.inject({ match, times: 1_000, action: { kind: "status", status: 403 } });
    world.ready("n1", "Unknown");
    await world.until("told", () => world.told("RemediationSkipped").length === 1);
    assert.equal(world.leases().length, 1);
    world.ready("n1", "True");
    await world.until("the lease is released", () => world.leases().length === 0, 2_000);
  });
});

describe("detector: the Machine of a node", () => {
  const machines = {
    group: "machine.openshift.io",
    version: "v1beta1",
    kind: "Machine",
    plural: "machines",
    namespaced: true,
  };

  async function fencedWithMachine(annotation: string) {
    world = new DetectorWorld();
    world.server.load(crdOf(machines));
    world.server.collection(NAMESPACES).create({ metadata: { name: "other" } });
    for (const namespace of ["fencing", "other"]) {
      world.server.collection(machines).create({ metadata: { namespace, name: "machine-1" }, spec: {} });
    }
    world.template();
    world.nodes(3);
    world.node("n9", {}, { "machine.openshift.io/machine": annotation });
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    const { metadata } = await fenced("n9");
    return (metadata.ownerReferences ?? []).slice(1);
  }

  it("detector: the Machine of a node owns the CR too, if it lies in the CR's namespace", async () => {
    const owners = await fencedWithMachine("fencing/machine-1");
    const { uid } = world.server.collection(machines).get({ namespace: "fencing", name: "machine-1" })?.metadata ?? {};
    assert.deepEqual(owners, [
      { apiVersion: "machine.openshift.io/v1beta1", kind: "Machine", name: "machine-1", uid, controller: false },
    ]);
  });

  it("detector: the Machine of a node does not own it from another namespace: the CR would be collected", async () => {
    assert.deepEqual(await fencedWithMachine("other/machine-1"), []);
  });

  it("detector: a node whose Machine does not exist, or has an invalid name, is remediated", async () => {
    assert.deepEqual(await fencedWithMachine("fencing/machine-2"), []);
    await world.stop();
    assert.deepEqual(await fencedWithMachine("machine-1"), []);
  });
});
