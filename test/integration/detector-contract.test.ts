import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, describe, it } from "node:test";
import { parse } from "yaml";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { toMicroTime, toTime } from "../../src/runtime/time.ts";
import { crdOf, DetectorWorld, escalation, reference, vendorCrd, vendorType } from "./detector-fixture.ts";

const EXPECTED = "PermanentNodeDeletionExpected";
const TIMED_OUT = "remediation.medik8s.io/nhc-timed-out";

let world: DetectorWorld;
afterEach(() => world.stop());

async function enabled(options: Parameters<DetectorWorld["enabled"]>[0] = {}): Promise<void> {
  world = new DetectorWorld(options);
  await world.enabled(options);
}

const fenced = (name?: string, kind?: string) => world.fenced(name, kind);
const fenceOf = (node: string, kind?: string) => world.fenceOf(node, kind);
const entry = (name: string) => world.entry(name);
const label = (name: string, labels: Record<string, string | null>) => world.label(name, labels);
const hold = (kind: string, name: string, finalizers: string[]) =>
  world.server.collection(vendorType(kind)).mergePatch({ namespace: "fencing", name }, { metadata: { finalizers } });

describe("detector: escalation", () => {
  it("detector: escalation goes through the steps by time-out, marks each, and says when none is left", async () => {
    await enabled({ kinds: ["A", "B", "C", "D"], spec: escalation("A", "B", "C", "D") });
    const first = await fenced("n1", "A");
    const tookMs = await world.until("B", () => fenceOf("n1", "B") !== undefined, 70_000);
    assert.ok(tookMs <= 61_100, `${tookMs} ms`);
    const marked = fenceOf("n1", "A");
    assert.equal(marked?.metadata.uid, first.metadata.uid);
    assert.ok(marked?.metadata.annotations?.[TIMED_OUT] !== undefined);
    await world.until("C", () => fenceOf("n1", "C") !== undefined, 70_000);
    await world.until("D", () => fenceOf("n1", "D") !== undefined, 70_000);
    await world.until("none left", () => world.reasons().includes("NoTemplateLeft"), 70_000);
    await world.clock.advance(120_000);
    assert.equal(world.told("NoTemplateLeft").length, 1);
    assert.deepEqual(
      entry("n1")?.remediations?.map(({ resource, timedOut }) => [resource.kind, timedOut !== undefined]),
      [
        ["A", true],
        ["B", true],
        ["C", true],
        ["D", true],
      ],
    );
    world.ready("n1", "True");
    await world.until("clean", () => world.status().phase === "Enabled");
    assert.deepEqual(
      ["A", "B", "C", "D"].flatMap((kind) => world.fences(kind)),
      [],
    );
  });

  it("detector: escalation escalates at once when a CR says that it failed", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    world.report(await fenced("n1", "A"), "Succeeded", "False");
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 500);
    assert.ok(fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT] !== undefined);
  });

  it("detector: escalation does not mark a succeeded CR whose time is over, and goes on to the next", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    world.report(await fenced("n1", "A"), "Succeeded", "True");
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 70_000);
    assert.equal(fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT], undefined);
  });

  it("detector: escalation stands still while a change of conditions makes the node soon unhealthy again", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    await fenced("n1", "A");
    await world.clock.advance(55_000);
    world.ready("n1", "False");
    await world.clock.advance(9_000);
    assert.equal(fenceOf("n1", "B"), undefined);
    assert.equal(fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT], undefined);
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 2_000);
  });

  it("times an attempt out below the threshold too, and starts the next step only above it", async () => {
    await enabled({ kinds: ["A", "B"], nodes: 4, spec: { ...escalation("A", "B"), minHealthy: 2 } });
    await fenced("n1", "A");
    for (const name of ["n2", "n3"]) world.ready(name, "Unknown");
    await world.until("marked", () => fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT] !== undefined, 61_000);
    await world.clock.advance(5_000);
    assert.deepEqual(world.fences("B"), []);
    for (const name of ["n2", "n3"]) world.ready(name, "True");
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 1_000);
  });

  it("detector: escalation takes two templates of one kind if both say that they support it", async () => {
    world = new DetectorWorld();
    const annotations = { "remediation.medik8s.io/multiple-templates-support": "true" };
    world.template("Fence", { name: "soft", annotations });
    world.template("Fence", { name: "hard", annotations });
    world.nodes(3);
    const step = (name: string, order: number) => ({
      remediationTemplate: reference("Fence", name),
      order,
      timeout: "60s",
    });
    world.check({ escalatingRemediations: [step("soft", 1), step("hard", 2)] });
    world.start();
    const first = await fenced();
    assert.match(first.metadata.name, /^n1-.+/);
    world.report(first, "Succeeded", "False");
    await world.until("the second", () => world.fences().length === 2, 1_000);
    await world.until("both recorded", () => entry("n1")?.remediations?.length === 2, 1_000);
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 2);
    assert.deepEqual(
      entry("n1")?.remediations?.map(({ templateName }) => templateName),
      ["soft", "hard"],
    );
  });
});

describe("detector: budget", () => {
  it("detector: budget starts nothing below minHealthy, counts truly, says why once, and goes on when regained", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: "75%" } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("told", () => world.reasons().includes("RemediationSkipped"));
    await world.clock.advance(60_000);
    assert.deepEqual(world.fences(), []);
    assert.equal(world.told("RemediationSkipped").length, 1);
    assert.match(world.told("RemediationSkipped")[0] ?? "", /is 2 and should equal or exceed 3/);
    assert.deepEqual([world.status().observedNodes, world.status().healthyNodes], [4, 2]);
    assert.deepEqual(
      world.status().unhealthyNodes?.map(({ name }) => name),
      ["n1", "n2"],
      "as upstream lists them, remediated or not",
    );
    assert.match(world.status().reason ?? "", /^NHC is enabled, no ongoing remediation\. .* should equal or exceed 3$/);
    world.ready("n2", "True");
    await world.until("a CR", () => fenceOf("n1") !== undefined, 500);
  });

  it("detector: budget never starts more at once than the threshold allows, though the nodes fail one after the other", async () => {
    await enabled({ nodes: 6, spec: { maxUnhealthy: 2 } });
    for (const name of ["n0", "n1"]) world.ready(name, "Unknown");
    await world.until("two", () => world.fences().length === 2);
    for (const name of ["n2", "n3"]) world.ready(name, "Unknown");
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 2);
  });

  it("detector: budget starts nothing that was decided a moment too early: the threshold is looked at again before the CR", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: 3 } });
    const match = { method: "POST", pathPrefix: "/apis/coordination.k8s.io" };
    world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 4_000 } });
    world.ready("n1", "Unknown");
    await world.clock.advance(11_000);
    world.ready("n2", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual(world.fences(), []);
    world.ready("n2", "True");
    await world.until("a CR", () => fenceOf("n1") !== undefined, 1_000);
  });

  it("detector: budget counts again for each CR of an evaluation: a node that fails between two of them holds the second back", async () => {
    await enabled({ nodes: 6, spec: { minHealthy: 4 } });
    const match = { method: "POST", pathPrefix: "/apis/coordination.k8s.io" };
    world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 4_000 } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("the first CR", () => world.fences().length === 1, 12_000);
    world.ready("n3", "Unknown");
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    world.ready("n3", "True");
    await world.until("the second CR", () => world.fences().length === 2, 1_000);
  });

  it("detector: budget counts what it has just created, though the watch does not show it yet", async () => {
    world = new DetectorWorld();
    world.template("Fence", { annotations: { "remediation.medik8s.io/multiple-templates-support": "true" } });
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.server.faults.lagWatches({ pathPrefix: "/apis/fence.example" }, 8_000);
    world.ready("n1", "Unknown");
    await world.until("a CR", () => world.fences().length > 0, 12_000);
    label("n1", { touched: "yes" });
    await world.clock.advance(6_000);
    label("n1", { touched: "again" });
    await world.clock.advance(20_000);
    assert.equal(world.fences().length, 1);
    assert.equal(entry("n1")?.remediations?.length, 1);
  });

  it("detector: budget remediates no control plane node while another client's CR is there for another one", async () => {
    await enabled({ nodes: 1 });
    const role = { "node-role.kubernetes.io/control-plane": "" };
    for (const name of ["cp0", "cp1"]) world.node(name, role);
    const fences = world.server.collection(vendorType("Fence"));
    // Recognized by its label if the node is gone, and by the node if it has no label.
    const labels = { "remediation.medik8s.io/isControlPlaneNode": "" };
    fences.create({ metadata: { namespace: "fencing", name: "cp9", labels }, spec: {} });
    world.ready("cp0", "Unknown");
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    fences.create({ metadata: { namespace: "fencing", name: "cp1" }, spec: {} });
    fences.delete({ namespace: "fencing", name: "cp9" });
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    fences.delete({ namespace: "fencing", name: "cp1" });
    await world.until("its admission", () => fenceOf("cp0") !== undefined, 1_000);
  });

  it("detector: budget guards against storms: cooldown after regaining, ended by a new breach", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: 3, stormCooldownDuration: "60s" } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("storm", () => world.condition("StormActive")?.status === "True");
    world.ready("n2", "True");
    await world.until("cooldown", () => world.condition("StormCooldownActive")?.status === "True");
    await world.clock.advance(50_000);
    assert.deepEqual(world.fences(), []);
    world.ready("n2", "Unknown");
    await world.until("cooldown over", () => world.condition("StormCooldownActive")?.status === "False");
    assert.equal(world.condition("StormActive")?.status, "True");
    world.ready("n2", "True");
    await world.until("cooldown", () => world.condition("StormCooldownActive")?.status === "True");
    await world.clock.advance(59_000);
    assert.deepEqual(world.fences(), []);
    await world.until("a CR", () => fenceOf("n1") !== undefined, 2_000);
    assert.deepEqual(
      world.reasons().filter((reason) => reason.startsWith("Storm")),
      [
        "StormRecoveryStarted",
        "StormRecoveryCooldownStarted",
        "StormRecoveryStarted",
        "StormRecoveryCooldownStarted",
        "StormRecoveryEnded",
      ],
    );
  });

  it("detector: budget ends a storm that recovers in full, so that a lone failure later does not wait (upstream leaves StormActive)", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: 3, stormCooldownDuration: "60s" } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("storm", () => world.condition("StormActive")?.status === "True");
    for (const name of ["n1", "n2"]) world.ready(name, "True");
    await world.until("calm", () => world.condition("StormActive")?.status === "False", 62_000);
    await fenced("n3");
  });

  it("detector: budget remediates one control plane node at a time, over all health checks", async () => {
    await enabled({ nodes: 1 });
    world.check({ selector: { matchLabels: { pool: "b" } } }, "other");
    const role = { "node-role.kubernetes.io/control-plane": "" };
    world.node("cp0", role);
    world.node("cp1", { ...role, pool: "b" });
    for (const name of ["cp0", "cp1"]) world.ready(name, "Unknown");
    await world.until("one", () => world.fences().length > 0);
    await world.clock.advance(120_000);
    assert.equal(world.fences().length, 1);
    const [first] = world.fences();
    assert.equal(first?.metadata.labels?.["remediation.medik8s.io/isControlPlaneNode"], "");
    assert.ok(world.told("RemediationSkipped").some((note) => /control plane/.test(note)));
    world.ready(first?.metadata.name ?? "", "True");
    await world.until(
      "the other",
      () => world.fences().length === 1 && world.fences()[0]?.metadata.uid !== first?.metadata.uid,
    );
  });

  it("detector: budget fences 60 of 300 nodes that die at once, all within a second", async () => {
    await enabled({ nodes: 300, spec: { minHealthy: "51%" } });
    for (let index = 0; index < 60; index += 1) world.ready(`n${index}`, "Unknown");
    world.requests.length = 0;
    await world.until("all", () => world.fences().length === 60, 11_000);
    const asked = world.requests.filter(({ watch, path }) => !watch && !path.includes("/status")).length;
    assert.ok(asked <= 4 * 60, `${asked} requests`);
  });

  it("detector: budget asks the API server for nothing at rest, with 5,000 nodes that report and two templates of two kinds", async () => {
    await enabled({ kinds: ["A", "B"], nodes: 5_000, spec: escalation("A", "B") });
    await world.clock.advance(5_000);
    assert.equal(world.status().observedNodes, 5_000);
    world.requests.length = 0;
    const nodes = world.server.collection<Node>(NODES);
    for (let minute = 0; minute < 10; minute += 1) {
      for (let index = minute; index < 5_000; index += 10) {
        const name = `n${index}`;
        const conditions = (nodes.get({ name })?.status.conditions ?? []).map((condition) => ({
          ...condition,
          lastHeartbeatTime: toTime(world.clock.nowMs()),
        }));
        nodes.mergePatch({ name }, { status: { conditions } }, "status");
      }
      await world.clock.advance(60_000);
    }
    assert.deepEqual(
      world.requests.filter(({ watch }) => !watch),
      [],
    );
  });
});

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

  it("an excluded node; an empty label warns and excludes nothing", async () => {
    await enabled();
    label("n1", { "remediation.medik8s.io/exclude-from-remediation": "true" });
    label("n2", { "remediation.medik8s.io/exclude-from-remediation": "" });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("n2", () => fenceOf("n2") !== undefined);
    assert.equal(fenceOf("n1"), undefined);
    assert.equal(world.told("InvalidNodeLabel").length, 1);
    assert.match(world.told("RemediationSkipped").join(), /n1: node has Exclude/);
    label("n1", { "remediation.medik8s.io/exclude-from-remediation": null });
    // The list that n2's was made on may still say otherwise, and is not believed for more than a moment.
    await world.until("n1", () => fenceOf("n1") !== undefined, 1_500);
  });

  it("a node whose lease a maintenance tool holds, until it is free; a foreign lease is not touched", async () => {
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

  it("a node that two health checks select: the older one cares for it, and the other says so", async () => {
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

  it("a node outside the selector, however ill; once it is labelled into it, it is judged at once", async () => {
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

  it("detector: the lease of a node counts as taken if leases may not be written, and that is reported", async () => {
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

  it("detector: the lease of a node is given back by a node that is well again before a CR could be made", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/fence.example/v1/namespaces/fencing/fences" };
    world.server.faults.inject({ match, times: 1_000, action: { kind: "status", status: 403 } });
    world.ready("n1", "Unknown");
    await world.until("told", () => world.told("RemediationSkipped").length === 1);
    assert.equal(world.leases().length, 1);
    world.ready("n1", "True");
    await world.until("given back", () => world.leases().length === 0, 2_000);
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

describe("detector: recovery", () => {
  it("detector: recovery keeps a node listed until its CR is gone, and counts it as not healthy", async () => {
    await enabled();
    const cr = await fenced();
    hold("Fence", cr.metadata.name, ["fence.example/undo"]);
    world.ready("n1", "True");
    await world.until("deleted", () => fenceOf("n1")?.metadata.deletionTimestamp !== undefined, 1_000);
    await world.clock.advance(5_000);
    assert.equal(world.status().healthyNodes, 2);
    assert.ok(entry("n1")?.conditionsHealthyTimestamp !== undefined);
    hold("Fence", cr.metadata.name, []);
    await world.until("clean", () => world.status().phase === "Enabled" && world.status().healthyNodes === 3, 1_000);
  });

  it("detector: recovery orders the deletion of a CR once, though the watch does not show it yet", async () => {
    await enabled();
    const { metadata } = await fenced();
    hold("Fence", metadata.name, ["fence.example/undo"]);
    await world.clock.advance(100);
    world.server.faults.lagWatches({ pathPrefix: "/apis/fence.example" }, 8_000);
    world.requests.length = 0;
    world.ready("n1", "True");
    for (const touched of ["once", "twice", "again"]) {
      await world.clock.advance(2_000);
      label("n1", { touched });
    }
    assert.equal(world.requests.filter(({ method }) => method === "DELETE").length, 1);
    assert.equal(world.told("RemediationRemoved").length, 1);
  });

  it("detector: recovery starts a relapse from nothing: a new CR with its own time, once the old one is gone", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    const old = await fenced("n1", "A");
    hold("A", old.metadata.name, ["fence.example/undo"]);
    await world.clock.advance(50_000);
    world.ready("n1", "True");
    await world.until("deleted", () => fenceOf("n1", "A")?.metadata.deletionTimestamp !== undefined, 1_000);
    world.ready("n1", "Unknown");
    await world.clock.advance(15_000);
    assert.equal(world.fences("A").length, 1);
    hold("A", old.metadata.name, []);
    await world.until(
      "a new one",
      () => world.fences("A").length === 1 && fenceOf("n1", "A")?.metadata.uid !== old.metadata.uid,
    );
    await world.clock.advance(50_000);
    assert.deepEqual(world.fences("B"), []);
    assert.equal(entry("n1")?.remediations?.length, 1);
  });

  it("detector: recovery waits for healthyDelay, which starts again with a relapse", async () => {
    await enabled({ spec: { healthyDelay: "30s" } });
    await fenced();
    world.ready("n1", "True");
    await world.until("delayed", () => entry("n1")?.healthyDelayed === true, 1_000);
    assert.ok(fenceOf("n1")?.metadata.annotations?.["remediation.medik8s.io/healthy-delay"] !== undefined);
    await world.clock.advance(25_000);
    world.ready("n1", "Unknown");
    await world.clock.advance(5_000);
    assert.equal(fenceOf("n1")?.metadata.annotations?.["remediation.medik8s.io/healthy-delay"], undefined);
    world.ready("n1", "True");
    await world.clock.advance(28_000);
    assert.equal(world.fences().length, 1);
    await world.until("deleted", () => world.fences().length === 0, 3_000);
  });

  it("detector: recovery waits for a person if healthyDelay is negative, and consumes the confirmation", async () => {
    await enabled({ spec: { healthyDelay: "-1s" } });
    await fenced();
    world.ready("n1", "True");
    await world.clock.advance(600_000);
    assert.equal(world.fences().length, 1);
    const annotations = { "remediation.medik8s.io/manually-confirmed-healthy": "yes" };
    world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { annotations } });
    await world.until("deleted", () => world.fences().length === 0, 1_000);
    const confirmed = () =>
      world.server.collection(NODES).get({ name: "n1" })?.metadata.annotations?.[
        "remediation.medik8s.io/manually-confirmed-healthy"
      ];
    await world.until("consumed", () => confirmed() === undefined, 1_000);
  });

  it("detector: recovery deletes the CR of a node that was deleted", async () => {
    await enabled();
    await fenced();
    world.server.collection(NODES).delete({ name: "n1" });
    await world.until("clean", () => world.fences().length === 0 && world.status().unhealthyNodes === undefined, 1_000);
    assert.equal(world.status().observedNodes, 2);
  });

  it("detector: recovery keeps a remediation that its remediator has asked to keep, even if that request comes late, until it has succeeded", async () => {
    await enabled();
    const cr = await fenced();
    world.server.faults.lagWatches({ pathPrefix: "/apis/fence.example" }, 3_000);
    world.report(cr, EXPECTED, "True");
    world.server.collection(NODES).delete({ name: "n1" });
    await world.clock.advance(2_000);
    assert.equal(world.fences().length, 1);
    world.server.faults.clear();
    await world.clock.advance(60_000);
    assert.equal(fenceOf("n1")?.metadata.deletionTimestamp, undefined);
    world.report(fenceOf("n1") ?? cr, "Succeeded", "True");
    await world.until("deleted", () => world.fences().length === 0, 1_000);
  });

  it("detector: recovery leaves a half-done remediation alone when its node is relabelled, and deletes it when it is over", async () => {
    await enabled();
    const cr = await fenced();
    label("n1", { pool: "elsewhere" });
    await world.clock.advance(30_000);
    assert.equal(fenceOf("n1")?.metadata.deletionTimestamp, undefined);
    assert.equal(world.status().observedNodes, 2);
    world.report(cr, "Succeeded", "False");
    await world.until("clean", () => world.fences().length === 0 && world.status().unhealthyNodes === undefined, 1_000);
  });

  it("detector: recovery counts a CR older than 48 hours once", async () => {
    await enabled();
    await fenced();
    await world.clock.advance(48 * 3_600_000);
    await world.until(
      "flagged",
      () => fenceOf("n1")?.metadata.annotations?.["nodehealthcheck.medik8s.io/old-remediation-cr-flag"] === "flagon",
    );
    await world.clock.advance(600_000);
    assert.match(await world.registry.metrics(), /nodehealthcheck_old_remediation_cr\{name="n1",namespace=""\} 1\n/);
  });
});

describe("detector: what can be missing or broken", () => {
  it("a template: Disabled, and enabled when it comes; in between the counts are true", async () => {
    world = new DetectorWorld();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("disabled", () => world.status().phase === "Disabled");
    assert.equal(world.condition("Disabled")?.reason, "RemediationTemplateNotFound");
    assert.match(world.condition("Disabled")?.message ?? "", /FenceTemplate fencing\/fence-template not found/);
    world.ready("n1", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual([world.status().observedNodes, world.status().healthyNodes], [3, 2]);
    world.template();
    await world.until("a CR", () => fenceOf("n1") !== undefined, 500);
    assert.equal(world.condition("Disabled")?.reason, "NodeHealthCheckEnabled");
    assert.equal(world.told("Disabled").length, 1);
  });

  it("a template that is deleted and made again: nothing new starts in between, and what is under way goes on", async () => {
    await enabled();
    await fenced("n1");
    world.server.collection(vendorType("FenceTemplate")).delete({ namespace: "fencing", name: "fence-template" });
    await world.until("disabled", () => world.status().phase === "Disabled", 1_000);
    world.ready("n2", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual([fenceOf("n1") !== undefined, fenceOf("n2")], [true, undefined]);
    assert.equal(entry("n1")?.remediations?.length, 1);
    world.template();
    await world.until("a CR", () => fenceOf("n2") !== undefined, 1_000);
    assert.equal(world.told("Enabled").length, 2);
  });

  it("the CRD of the template's kind: it is picked up when it arrives, without a restart", async () => {
    world = new DetectorWorld({ kinds: [] });
    world.nodes(3);
    world.check();
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateNotFound");
    world.server.load(vendorCrd("Fence"));
    world.server.load(vendorCrd("FenceTemplate"));
    world.template();
    await world.until("enabled", () => world.status().phase === "Enabled", 40_000);
  });

  it("the CRD of health checks: it is served when it arrives, without a restart", async () => {
    world = new DetectorWorld({ installed: false });
    world.template();
    world.nodes(3);
    world.start();
    await world.clock.advance(15_000);
    world.install();
    world.check();
    await world.until("enabled", () => world.status().phase === "Enabled", 15_000);
  });

  it("a malformed template", async () => {
    world = new DetectorWorld();
    world.template("Fence", { spec: { template: {} } });
    world.nodes(1);
    world.check();
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateInvalid");
    assert.match(world.condition("Disabled")?.message ?? "", /no spec\.template\.spec/);
  });

  it("the namespace of a template, or a second template of a kind that does not support it", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    world.template("A", { name: "more" });
    const steps = escalation("A", "B").escalatingRemediations;
    const { namespace: _, ...nowhere } = reference("A");
    world.edit({ escalatingRemediations: [{ ...steps[0], remediationTemplate: nowhere }] });
    await world.until("disabled", () => /no namespace/.test(world.condition("Disabled")?.message ?? ""), 1_000);
    world.edit({ escalatingRemediations: [steps[0], { ...steps[1], remediationTemplate: reference("A", "more") }] });
    await world.until("disabled", () => /more than once/.test(world.condition("Disabled")?.message ?? ""), 1_000);
  });

  it("nothing if a Metal3RemediationTemplate lies outside OKD's own namespace: Cluster API's do", async () => {
    const kind = "Metal3Remediation";
    await enabled({ kinds: [kind], spec: { remediationTemplate: reference(kind) } });
    await fenced("n1", kind);
  });

  it("the version of a template's reference: the one that is served is named", async () => {
    world = new DetectorWorld();
    world.template();
    world.nodes(1);
    world.check({ remediationTemplate: { ...reference("Fence"), apiVersion: "fence.example/v9" } });
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateNotFound");
    assert.match(
      world.condition("Disabled")?.message ?? "",
      /serves no FenceTemplate of fence\.example\/v9, only of fence\.example\/v1: set that version/,
    );
  });

  it("the right to list templates: they are read one by one", async () => {
    world = new DetectorWorld();
    const forbidden = { kind: "status", status: 403 } as const;
    const path = "/apis/fence.example/v1/fencetemplates";
    world.server.faults.inject({ match: { pathPrefix: path }, times: 1_000, action: forbidden });
    world.template();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    await fenced();
  });

  it("the permission to read a template: the check is disabled, and its message says how to grant it", async () => {
    world = new DetectorWorld();
    const forbidden = { kind: "status", status: 403 } as const;
    for (const pathPrefix of [
      "/apis/fence.example/v1/fencetemplates",
      "/apis/fence.example/v1/namespaces/fencing/fencetemplates",
    ]) {
      world.server.faults.inject({ match: { pathPrefix }, times: 1_000, action: forbidden });
    }
    world.template();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateInvalid");
    assert.match(world.condition("Disabled")?.message ?? "", /cannot read it: .*403.*aggregate-to-ext-remediation/);
  });

  it("the content of a template is copied as it is: unknown fields, nulls in lists, order", async () => {
    const content = { z: [3, 1, 2], a: { deep: [{ x: 0.5 }, {}, []] }, "odd/key": "", n: 0, no: false };
    world = new DetectorWorld();
    world.template("Fence", { spec: { template: { spec: content } } });
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    const cr = await fenced();
    assert.equal(JSON.stringify(cr.spec), JSON.stringify(content));
  });

  it("one node's CR cannot be made: the others' are, an Event says so, and it is tried again", async () => {
    await enabled();
    const path = "/api/v1/nodes/n0";
    world.server.faults.inject({ match: { pathPrefix: path }, times: 20, action: { kind: "status", status: 500 } });
    for (const name of ["n0", "n1"]) world.ready(name, "Unknown");
    await world.until("n1", () => fenceOf("n1") !== undefined);
    await world.until("n0", () => fenceOf("n0") !== undefined, 120_000);
  });

  it("the answer to a creation: the CR is found, and there is no second one", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/fence.example/v1/namespaces/fencing/fences" };
    world.server.faults.inject({ match, times: 1, action: { kind: "loseAnswer" } });
    await fenced();
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    assert.equal(entry("n1")?.remediations?.[0]?.resource.uid, world.fences()[0]?.metadata.uid);
  });

  it("the news of a CR that a user deletes meanwhile: it is read live, and does not count forever", async () => {
    await enabled();
    world.server.faults.lagWatches({ pathPrefix: "/apis/fence.example/v1/fences" }, 3_600_000);
    world.ready("n1", "Unknown");
    await world.until("a CR", () => fenceOf("n1") !== undefined, 12_000);
    const first = fenceOf("n1")?.metadata;
    await world.until("recorded", () => entry("n1")?.remediations !== undefined);
    world.server.collection(vendorType("Fence")).delete({ namespace: "fencing", name: "n1" });
    await world.until("another CR", () => fenceOf("n1") !== undefined, 65_000);
    assert.notEqual(fenceOf("n1")?.metadata.uid, first?.uid);
  });

  it("the permission to create CRs: its absence is reported", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/fence.example/v1/namespaces/fencing/fences" };
    world.server.faults.inject({ match, times: 1, action: { kind: "status", status: 403 } });
    world.ready("n1", "Unknown");
    await world.until("told", () => world.told("RemediationSkipped").length === 1);
    await world.until("a CR", () => fenceOf("n1") !== undefined, 20_000);
  });

  it("a health check is deleted: its Kubernetes garbage collection cleans up, and others go on", async () => {
    await enabled();
    await fenced();
    world.server.collection(NODE_HEALTH_CHECKS).delete({ name: "check" });
    await world.clock.advance(2_000);
    world.check({}, "next");
    await world.until("enabled", () => world.status("next").phase !== undefined);
  });
});

describe("detector: another operator's CRD of health checks", () => {
  /** One that has no rules and keeps every field. */
  function bare(): void {
    world = new DetectorWorld({ installed: false });
    world.server.load(crdOf(NODE_HEALTH_CHECKS));
    world.template();
    world.nodes(3);
  }

  it("detector: another operator's CRD of health checks has the rules checked here: Disabled, with a message, until the spec is fixed", async () => {
    bare();
    world.check({ minHealthy: 1, maxUnhealthy: 1 });
    world.start();
    await world.until("disabled", () => world.status().phase === "Disabled");
    assert.equal(world.condition("Disabled")?.reason, "SpecInvalid");
    assert.match(world.status().reason ?? "", /minHealthy and spec\.maxUnhealthy are mutually exclusive/);
    world.ready("n1", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual(world.fences(), []);
    world.edit({ maxUnhealthy: null });
    await world.until("a CR", () => fenceOf("n1") !== undefined, 1_000);
  });

  it("detector: another operator's CRD of health checks may have fields of the status that are not known here: they stay", async () => {
    bare();
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.server
      .collection(NODE_HEALTH_CHECKS)
      .mergePatch({ name: "check" }, { status: { later: { a: 1 } } }, "status");
    await fenced();
    world.ready("n1", "True");
    await world.until("clean", () => world.status().phase === "Enabled", 1_000);
    assert.deepEqual(Object.entries(world.status()).find(([field]) => field === "later")?.[1], { a: 1 });
  });

  it("detector: another operator's CRD of health checks may be an older one that lacks fields of the status: the rest is written, and not over and over", async () => {
    world = new DetectorWorld({ installed: false });
    const ours = readFileSync(
      new URL("../../deploy/node-health-check/remediation.medik8s.io_nodehealthchecks.yaml", import.meta.url),
    );
    const lacks = new Set(["templateName", "healthyDelayed", "observedGeneration"]);
    world.server.load(
      JSON.stringify(parse(ours.toString()), (key, value: unknown) => (lacks.has(key) ? undefined : value)),
    );
    world.template();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    const { metadata } = await fenced();
    assert.deepEqual(Object.keys(entry("n1")?.remediations?.[0] ?? {}).sort(), ["resource", "started"]);
    world.requests.length = 0;
    await world.clock.advance(30_000);
    const written = world.requests.filter(({ method }) => method !== "GET");
    assert.ok(written.length <= 2, `${written.length} writes at rest`);
    assert.equal(fenceOf("n1")?.metadata.uid, metadata.uid);
    world.ready("n1", "True");
    await world.until("deleted", () => world.fences().length === 0, 1_000);
  });
});
