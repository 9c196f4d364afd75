import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCED_BY, QUARANTINED_BY } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE } from "../../src/api/kubernetes/taints.ts";
import { bears, NAMESPACE, World } from "./world.ts";

const KEY = { namespace: NAMESPACE, name: "n1" };

/** Removes a remediation as an impatient user does: first its finalizer by force, then the object. */
function removeByForce(world: World): void {
  const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
  remediations.mergePatch(KEY, { metadata: { finalizers: null } });
  remediations.delete(KEY);
}

function warnings(world: World): string[] {
  return world.notes.flatMap(({ reason, regarding }) =>
    reason === "RemediationLost" ? [`${regarding.kind} ${regarding.metadata.name}`] : [],
  );
}

/** Fences n1 up to the release of its pod, which is held. */
async function holdInRelease(world: World): Promise<void> {
  await world.holdPod();
  world.remediate("n1");
  await world.phase("n1", "Releasing");
}

/** Removes by force a remediation of n1, which another client has tainted as well. */
async function loseBesideForeignTaint(world: World): Promise<void> {
  await world.holdPod();
  const taints = [...(world.node("n1")?.spec.taints ?? []), OUT_OF_SERVICE];
  world.server.collection(NODES).mergePatch({ name: "n1" }, { spec: { taints } });
  world.remediate("n1");
  await world.phase("n1", "Releasing");
  removeByForce(world);
}

/** Lets a person power n1 on. */
async function switchOn(world: World): Promise<void> {
  world.otherClientOrders("n1", "On");
  await world.until("n1 is Ready", () => world.isReady("n1"));
  await world.clock.advance(1_000);
}

describe("a remediation whose finalizer is removed by force", () => {
  it("a remediation whose finalizer is removed by force while the host is fenced leaves no taint, is reported once, and the rest goes when the node is Ready", () =>
    World.run({}, async (world) => {
      await holdInRelease(world);
      removeByForce(world);
      await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 10_000);
      await world.clock.advance(300_000);
      assert.deepEqual(warnings(world), ["Node n1"]);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"], "the reason that it was left off is not known");
      world.freePod();
      await switchOn(world);
      world.assertClean();
    }));

  it("the quarantine of a remediation whose finalizer is removed by force while the host boots stays until the node is Ready", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "Rejoining");
      removeByForce(world);
      await world.until("it is reported", () => warnings(world).length > 0, 10_000);
      assert.equal(bears(world.node("n1") ?? assert.fail(), QUARANTINE), true);
      await world.until("n1 is Ready", () => world.isReady("n1"));
      await world.clock.advance(1_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a remediation whose finalizer is removed by force with the agent away is found by the next one", () =>
    World.run({}, async (world) => {
      await holdInRelease(world);
      await world.killAgent();
      removeByForce(world);
      world.startAgent();
      await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 5_000);
      assert.deepEqual(warnings(world), ["Node n1"]);
      // … and by the next leader, as long as the host may be off.
      await world.killAgent();
      world.startAgent();
      await world.until("it is reported again", () => warnings(world).length === 2, 5_000);
      world.freePod();
      await switchOn(world);
      world.assertClean();
    }));

  it("a remediation whose finalizer is removed by force is followed by another one, which takes the host over and brings the node back", () =>
    World.run({}, async (world) => {
      await holdInRelease(world);
      removeByForce(world);
      world.remediate("n1", {}, "second");
      world.freePod();
      await world.phase("second", "Succeeded");
      await world.clock.advance(10_000);
      assert.deepEqual(warnings(world), [], "it is in good hands");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("labels of a Node that was deleted for a remediation which is then removed by force", () => {
  it("labels of a deleted Node whose remediation is removed by force are named with the command that sets them, and restored when the node joins again", () =>
    World.run({}, async (world) => {
      world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { labels: { team: "a" } } });
      await world.hang("n1");
      world.remediate("n1", { workloadRelease: "DeleteNode" });
      await world.until("the Node is gone", () => world.node("n1") === undefined);
      removeByForce(world);
      await world.until("it is reported", () => warnings(world).length > 0, 10_000);
      const note = world.notes.find(({ reason }) => reason === "RemediationLost")?.note ?? "";
      assert.match(note, /kubectl label node n1 team=a/u);
      await switchOn(world);
      assert.equal(world.node("n1")?.metadata.labels?.["team"], "a");
      world.assertClean();
    }));
});

describe("a remediation whose last change and whose end come one by one", () => {
  it("a remediation that disappears while it is being released is found to be lost, even if its last change and its deletion arrive one by one", () =>
    World.run({ interference: { event: () => undefined } }, async (world) => {
      await loseBesideForeignTaint(world);
      await world.until("it is reported", () => warnings(world).length > 0, 1_000);
      world.freePod();
    }));
});

describe("marks that do not belong to a lost remediation", () => {
  it("marks stay if they do not belong to a lost remediation: taints that another client has put on the node", () =>
    World.run({}, async (world) => {
      await loseBesideForeignTaint(world);
      await world.until("it is reported", () => warnings(world).length > 0, 10_000);
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), true);
      world.freePod();
    }));

  it("a lone ownership taint, as version 0.1.0 leaves it after a rollback in the middle of a fence, is removed", () =>
    World.run({}, async (world) => {
      const taints = [{ ...FENCED, value: "00000000-0000-4000-8000-000000000000" }];
      world.server.collection(NODES).mergePatch({ name: "n1" }, { spec: { taints } });
      await world.clock.advance(10_000);
      world.assertClean();
    }));

  it("marks stay if they do not belong to a lost remediation: a person's taint on a node whose kubelet annotates it as ours", () =>
    World.run({}, async (world) => {
      const taints = [...(world.node("n1")?.spec.taints ?? []), OUT_OF_SERVICE];
      const nodes = world.server.collection(NODES);
      nodes.mergePatch({ name: "n1" }, { spec: { taints } });
      // NodeRestriction allows a kubelet to annotate its own Node but not to change taints.
      nodes.mergePatch({ name: "n1" }, { metadata: { annotations: { [FENCED_BY]: "forged/a1" } } });
      await world.clock.advance(10_000);
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), true);
      assert.deepEqual(warnings(world), [], "nor does it raise an alarm");
      nodes.mergePatch({ name: "n1" }, { metadata: { annotations: { [FENCED_BY]: null } } });
      nodes.mergePatch({ name: "n1" }, { spec: { taints: taints.filter((taint) => taint !== OUT_OF_SERVICE) } });
    }));

  it("a user's taint stays through a whole remediation, even if the kubelet annotates its node as if the taint were ironfence's", () =>
    World.run({}, async (world) => {
      const nodes = world.server.collection(NODES);
      const taints = [...(world.node("n1")?.spec.taints ?? []), OUT_OF_SERVICE];
      nodes.mergePatch({ name: "n1" }, { spec: { taints } });
      world.remediate("n1");
      const uid = world.remediation("n1")?.metadata.uid ?? assert.fail();
      nodes.mergePatch({ name: "n1" }, { metadata: { annotations: { [FENCED_BY]: `${uid}/a1` } } });
      await world.phase("n1", "Succeeded");
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), true);
    }));

  it("marks stay if they do not belong to a lost remediation: those of a remediation that is there, though the watch does not show it yet", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      // The watch breaks, and its next connection sends nothing for a while.
      const match = { pathPrefix: "/apis/ironfence.io/v1alpha1/baremetalremediations", client: "agent" };
      world.server.faults.inject({ match, times: 1, action: { kind: "hang" } });
      world.server.faults.cutWatches({ client: "agent" });
      await world.clock.advance(5_000);
      world.remediate("n1");
      const uid = world.remediation("n1")?.metadata.uid ?? assert.fail();
      mark(world, uid);
      await world.clock.advance(5_000);
      assert.equal(world.remediation("n1")?.status?.phase, undefined, "the agent has not seen it");
      assert.deepEqual([world.markLog.at(-1), warnings(world)], ["n1 +quarantine", []]);
      await world.phase("n1", "Succeeded");
      assert.deepEqual(warnings(world), []);
      world.assertClean();
    }));
});

/** Adds the quarantine of the remediation with this UID to node n1. */
function mark(world: World, uid: string): void {
  const taints = [...(world.node("n1")?.spec.taints ?? []), QUARANTINE];
  const annotations = { [QUARANTINED_BY]: `${uid}/a1` };
  world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { annotations }, spec: { taints } });
}
