import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { DetectorWorld } from "./detector-fixture.ts";

describe("detector: the course of one node", () => {
  let world: DetectorWorld;
  beforeEach(() => {
    world = new DetectorWorld();
    world.template();
    world.nodes(3);
    world.check();
    world.start();
  });
  afterEach(() => world.stop());

  it("detector: a node gets one remediation, made by the contract, when its duration is over", async () => {
    await world.until("enabled", () => world.status().phase === "Enabled");
    assert.equal(world.status().observedNodes, 3);
    assert.equal(world.status().healthyNodes, 3);
    world.ready("n1", "Unknown");
    const tookMs = await world.until("a CR", () => world.fences().length > 0, 12_000);
    assert.ok(tookMs >= 9_000 && tookMs <= 10_100, `${tookMs} ms`);
    const [cr] = world.fences();
    const [check] = world.checks();
    assert.ok(cr !== undefined && check !== undefined);
    assert.equal(cr.metadata.name, "n1");
    assert.equal(cr.metadata.namespace, "fencing");
    assert.equal(cr.kind, "Fence");
    assert.deepEqual(cr.spec, { mode: "off" });
    assert.deepEqual(cr.metadata.annotations, {
      "remediation.medik8s.io/node-name": "n1",
      "remediation.medik8s.io/template-name": "fence-template",
    });
    assert.deepEqual(cr.metadata.labels, { "app.kubernetes.io/part-of": "node-healthcheck-controller" });
    assert.deepEqual(cr.metadata.ownerReferences, [
      {
        apiVersion: "remediation.medik8s.io/v1alpha1",
        kind: "NodeHealthCheck",
        name: "check",
        uid: check.metadata.uid,
        controller: false,
      },
    ]);
    await world.until("recorded", () => (world.status().unhealthyNodes?.[0]?.remediations?.length ?? 0) === 1);
    const { unhealthyNodes, phase, reason, observedNodes, healthyNodes } = world.status();
    assert.deepEqual(unhealthyNodes, [
      {
        name: "n1",
        remediations: [
          {
            resource: {
              apiVersion: "fence.example/v1",
              kind: "Fence",
              namespace: "fencing",
              name: "n1",
              uid: cr.metadata.uid,
            },
            started: cr.metadata.creationTimestamp,
            templateName: "fence-template",
          },
        ],
      },
    ]);
    assert.deepEqual([phase, reason], ["Remediating", "NHC is remediating 1 nodes"]);
    assert.deepEqual([observedNodes, healthyNodes], [3, 2]);
    const [lease] = world.leases();
    assert.equal(lease?.metadata.name, "node-n1");
    assert.equal(lease?.spec.holderIdentity, "NodeHealthCheck-check");
    assert.equal(lease?.spec.leaseDurationSeconds, 660);
    assert.deepEqual(world.reasons(), ["Enabled", "DetectedUnhealthy", "RemediationCreated"]);
    assert.deepEqual(world.told("RemediationCreated"), ["[remediation] Created remediation object for node n1"]);
    assert.match(
      await world.registry.metrics(),
      /nodehealthcheck_ongoing_remediation\{name="n1",namespace="fencing",remediation="Fence"\} 1/,
    );
  });

  it("detector: the course of one node deletes the CR, releases the lease and clears the status once the node is well", async () => {
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.ready("n1", "Unknown");
    await world.until("recorded", () => world.status().phase === "Remediating");
    world.ready("n1", "True");
    await world.until("gone", () => world.fences().length === 0 && world.status().phase === "Enabled", 2_000);
    await world.until("lease released", () => world.leases().length === 0, 2_000);
    assert.equal(world.status().unhealthyNodes, undefined);
    assert.equal(world.status().healthyNodes, 3);
    assert.deepEqual(world.told("RemediationRemoved").length, 1);
    const metrics = await world.registry.metrics();
    assert.doesNotMatch(metrics, /nodehealthcheck_ongoing_remediation\{/);
    assert.match(metrics, /nodehealthcheck_unhealthy_node_duration_seconds_count\{.*name="n1".*\} 1/);
  });

  it("detector: the course of one node lists the nodes once before it creates CRs if the watch has been silent", async () => {
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.requests.length = 0;
    world.ready("n1", "Unknown");
    world.ready("n2", "Unknown");
    await world.until("CRs", () => world.fences().length === 2);
    assert.equal(world.requests.filter(({ watch, path }) => !watch && path.startsWith("/api/v1/nodes?")).length, 1);
  });

  it("detector: a node is remediated only when a live list allows it, even if a watch that lags would allow it before", async () => {
    world.edit({ minHealthy: 2 });
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.ready("n1", "Unknown");
    await world.clock.advance(1_000);
    world.server.faults.lagWatches({ pathPrefix: "/api/v1/nodes" }, 3_600_000);
    world.ready("n2", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual(world.fences(), []);
    assert.match(world.told("RemediationSkipped").join(), /healthy nodes selected by the selector is 1 and should/);
    world.ready("n2", "True");
    await world.until("a CR", () => world.fences().length > 0);
  });

  it("detector: a node whose state is unknown, because a watch is silent and nodes cannot be listed, is reported and read again", async () => {
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.server.faults.inject({
      match: { method: "GET", pathPrefix: "/api/v1/nodes", watch: false },
      action: { kind: "status", status: 403 },
      times: 3,
    });
    world.ready("n1", "Unknown");
    await world.until("it is reported", () => world.told("RemediationSkipped").length > 0);
    assert.deepEqual(world.fences(), []);
    assert.match(world.told("RemediationSkipped").join(), /cannot be listed/);
    await world.until("a CR", () => world.fences().length > 0);
  });

  it("detector: a remediation needs three requests, and a cluster at rest needs none", async () => {
    await world.until("enabled", () => world.status().phase === "Enabled");
    await world.clock.advance(2_000);
    world.requests.length = 0;
    await world.clock.advance(30_000);
    assert.deepEqual(
      world.requests.filter(({ watch }) => !watch),
      [],
    );
    world.ready("n1", "Unknown");
    // With many nodes, kubelets report all the time, which proves that the watch is up to date.
    for (let second = 0; second < 20 && world.fences().length === 0; second += 1) {
      const annotations = { second: String(second) };
      world.server.collection(NODES).mergePatch({ name: "n2" }, { metadata: { annotations } });
      await world.clock.advance(1_000);
    }
    const asked = world.requests
      .filter(({ watch, path }) => !watch && !path.includes("/status"))
      .map(({ method, path }) => `${method} ${path.split("?")[0]}`);
    assert.deepEqual(asked.slice(0, 3), [
      "GET /api/v1/nodes/n1",
      "POST /apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases",
      "POST /apis/fence.example/v1/namespaces/fencing/fences",
    ]);
  });

  it("detector: a restart leads to no second remediation, and keeps the records and the clock of the attempt", async () => {
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.ready("n1", "Unknown");
    await world.until("a CR", () => world.fences().length > 0);
    const [before] = world.fences();
    // The detector may stop before it has written the status. Then the remediation itself is the record.
    await world.stop();
    world.start();
    await world.until("recorded", () => world.status().phase === "Remediating");
    await world.clock.advance(5_000);
    assert.deepEqual(
      world.fences().map(({ metadata }) => metadata.uid),
      [before?.metadata.uid],
    );
    assert.equal(world.status().unhealthyNodes?.[0]?.remediations?.[0]?.started, before?.metadata.creationTimestamp);
  });
});
