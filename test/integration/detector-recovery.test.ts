import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { DetectorWorld, escalation, vendorType } from "./detector-fixture.ts";

const EXPECTED = "PermanentNodeDeletionExpected";

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
