import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { FENCED, OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { Metal3World } from "./metal3/world.ts";
import { bears, NAMESPACE, World } from "./world.ts";

const KEY = { namespace: NAMESPACE, name: "n1" };
const SECOND = { namespace: NAMESPACE, name: "second" };
const TIMED_OUT = { metadata: { annotations: { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" } } };
const REMEDIATIONS = "/apis/ironfence.io/v1alpha1/baremetalremediations";

/** Fences a node until it has the out-of-service taint. A pod keeps the remediation there. */
async function fence(world: World): Promise<void> {
  await world.holdPod();
  world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
  await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
  await world.clock.advance(2_000);
}

/** The host of n1 is off and has been handed over to a second remediation, which waits for admission. */
async function inherit(world: World): Promise<void> {
  await fence(world);
  await world.hang("n2");
  world.rack.bmc("n2").setReachability("refused");
  world.remediate("n2");
  await world.until("n2 waits", () => world.condition("n2", "Processing") === "True WaitingForTurn");
  world.remediate("n1", {}, "second");
  await world.until("the second waits", () => world.condition("second", "Processing") === "True HostBusy");
  world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, TIMED_OUT);
  await world.until("it has the host", () => world.condition("second", "Processing") === "True WaitingForTurn");
  assert.equal(world.target("n1")?.status?.owner?.name, "second");
  world.freePod();
}

/** Makes lists of a collection fail for the agent. @returns a function that ends this. */
function cannotList(world: World | Metal3World, path: string): () => void {
  const { faults } = world.server;
  faults.inject({ match: { client: "agent", path }, times: Infinity, action: { kind: "status", status: 500 } });
  return () => faults.clear();
}

function hasReason(world: World, reason: string): boolean {
  return world.notes.some((note) => note.reason === reason);
}

/** Kills the agent, starts the next one, and powers the fenced host on as a user does. */
async function nextLeader(world: World): Promise<void> {
  world.startAgent();
  await world.clock.advance(10_000);
  world.otherClientOrders("n1", "On");
}

describe("the taint of a remediation that the next leader cannot continue", () => {
  it("the taint of a remediation that the next leader cannot continue is removed while FencingTargets cannot be listed, and the remediation continues later", () =>
    World.run({}, async (world) => {
      await fence(world);
      await world.killAgent();
      const mend = cannotList(world, `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`);
      await nextLeader(world);
      assert.deepEqual(world.markLog, ["n1 +taint", "n1 -taint"]);
      await world.clock.advance(60_000);
      assert.equal(world.condition("n1", "Processing"), "True InputUnread");
      assert.ok(hasReason(world, "TaintNotVouchedFor") && hasReason(world, "InputUnread"));
      mend();
      world.freePod();
      await world.until(
        "it has its verdict",
        () => world.condition("n1", "Succeeded")?.startsWith("Unknown") === false,
      );
      world.assertClean();
    }));

  it("the taint of a remediation that the next leader cannot continue is removed while the node cannot be read: what the watch shows of it suffices", () =>
    World.run({}, async (world) => {
      await fence(world);
      await world.killAgent();
      const match = { client: "agent", method: "GET", path: "/api/v1/nodes/n1" };
      const action = { kind: "status", status: 429, retryAfterSeconds: 30 } as const;
      world.server.faults.inject({ match, times: Infinity, action });
      const mend = cannotList(world, `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`);
      await nextLeader(world);
      assert.deepEqual(world.markLog, ["n1 +taint", "n1 -taint"]);
      mend();
      world.freePod();
    }));

  it("the taint of a remediation that the next leader cannot continue is removed while Nodes cannot be listed: the stored status says which node may bear it", () =>
    World.run({}, async (world) => {
      await fence(world);
      await world.killAgent();
      const mend = cannotList(world, "/api/v1/nodes");
      await nextLeader(world);
      assert.deepEqual(world.markLog, ["n1 +taint", "n1 -taint"]);
      await world.clock.advance(60_000);
      assert.equal(world.condition("n1", "Processing"), "True InputUnread");
      mend();
      world.freePod();
      await world.until(
        "it has its verdict",
        () => world.condition("n1", "Succeeded")?.startsWith("Unknown") === false,
      );
    }));

  it("the next leader removes a taint while BareMetalRemediations cannot be listed, because the annotation of the node names its owner", () =>
    World.run({}, async (world) => {
      await fence(world);
      await world.killAgent();
      const mend = cannotList(world, REMEDIATIONS);
      await nextLeader(world);
      assert.deepEqual(world.markLog, ["n1 +taint", "n1 -taint"]);
      mend();
      world.freePod();
      await world.until(
        "it has its verdict",
        () => world.condition("n1", "Succeeded")?.startsWith("Unknown") === false,
      );
    }));

  it("the taint of a remediation that the next leader cannot continue is removed while BareMetalHosts cannot be listed, and their operator does not run", () =>
    Metal3World.run({}, async (world) => {
      await world.hangWithHeldPod();
      world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
      const isTainted = (): boolean => bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE);
      await world.until("n1 is tainted", isTainted);
      await world.clock.advance(2_000);
      await world.killAgent();
      world.operator.setAway(true);
      const mend = cannotList(world, "/apis/metal3.io/v1alpha1/baremetalhosts");
      world.startAgent();
      await world.clock.advance(10_000);
      world.otherClientOrders("n1", "On");
      assert.equal(isTainted(), false);
      await world.clock.advance(60_000);
      assert.equal(world.condition("Processing").reason, "InputUnread");
      mend();
      world.operator.setAway(false);
    }));

  it("the taint of a remediation that the next leader cannot continue stays as long as the host is proven off by a leader that can", () =>
    World.run({}, async (world) => {
      await fence(world);
      await world.clock.advance(60_000);
      assert.deepEqual(world.markLog, ["n1 +taint"]);
      await world.killAgent();
      world.startAgent();
      await world.clock.advance(60_000);
      assert.deepEqual(world.markLog, ["n1 +taint"], "the next one has proven it in time");
      world.freePod();
    }));
});

describe("an ownership taint without an out-of-service taint, as a rollback to 0.1.0 leaves it", () => {
  it("an ownership taint without an out-of-service taint, left by a rollback to 0.1.0, is removed at once: otherwise a user's taint would be taken for ours", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.freePod();
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      const nodes = world.server.collection(NODES);
      const left = { ...FENCED, value: world.remediation("n1")?.metadata.uid ?? assert.fail() };
      nodes.mergePatch({ name: "n1" }, { spec: { taints: [left] } });
      await world.clock.advance(1_000);
      const { taints = [] } = world.node("n1")?.spec ?? {};
      nodes.mergePatch({ name: "n1" }, { spec: { taints: [...taints, OUT_OF_SERVICE] } });
      await world.clock.advance(60_000);
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), true);
      assert.equal(hasReason(world, "TaintNotVouchedFor"), false, "nothing was fenced");
      world.assertClean();
    }));
});

describe("a remediation that has lost its finalizer", () => {
  it("a remediation that has lost its finalizer gets it back while it is under way, and is undone when it is deleted", () =>
    World.run({}, async (world) => {
      await fence(world);
      world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { finalizers: null } });
      await world.clock.advance(10_000);
      assert.deepEqual(world.remediation("n1")?.metadata.finalizers, ["ironfence.io/remediation"]);
      assert.ok(hasReason(world, "FinalizerPutBack"));
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      world.freePod();
      await world.until("it is gone", () => world.remediation("n1") === undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a remediation that has lost its finalizer continues while the finalizer cannot be set again, and tries that at most once in 5 s", () =>
    World.run({}, async (world) => {
      await fence(world);
      let putBack = 0;
      const stop = world.server.onChange(({ object }) => {
        if (object.kind !== "BareMetalRemediation" || object.metadata.finalizers === undefined) return;
        putBack += 1;
        queueMicrotask(() => strip());
      });
      const strip = (): void => {
        world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { finalizers: null } });
      };
      strip();
      await world.clock.advance(30_000);
      assert.ok(putBack >= 2 && putBack <= 7, `put back ${putBack} times`);
      assert.deepEqual(world.markLog, ["n1 +taint"]);
      stop();
      world.freePod();
      await world.phase("n1", "Succeeded");
    }));

  it("a remediation without finalizer that points at another host while it is being deleted is undone and reports its verdict", () =>
    World.run({}, async (world) => {
      await fence(world);
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      remediations.mergePatch(KEY, { metadata: { finalizers: ["example.com/audit"] } });
      remediations.delete(KEY);
      await world.until("the host is on", () => world.powerLog.includes("n1 On"), 30_000);
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False RemediationDeleted");
      world.freePod();
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.assertClean();
      remediations.mergePatch(KEY, { metadata: { finalizers: null } });
      await world.clock.advance(10_000);
      assert.equal(hasReason(world, "RemediationLost"), false, "nothing was lost");
    }));

  it("a remediation that waits in maintenance with a host that it inherited off gets its finalizer back, and powers the host on when it is deleted", () =>
    World.run({ hosts: ["n1", "n2"], limits: { hosts: 1 } }, async (world) => {
      await inherit(world);
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      const targets = world.server.collection(FENCING_TARGETS);
      targets.mergePatch(KEY, { spec: { maintenance: true } });
      await world.until("it is held", () => world.condition("second", "Processing") === "True Maintenance");
      remediations.mergePatch(SECOND, { metadata: { finalizers: null } });
      await world.clock.advance(1_000);
      remediations.delete(SECOND);
      targets.mergePatch(KEY, { spec: { maintenance: false } });
      await world.until("it is gone", () => world.remediation("second") === undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(world.target("n1")?.status?.owner, undefined);
    }));

  it("a remediation without finalizer that waits with a host that it inherited off, and that another finalizer keeps, powers the host on", () =>
    World.run({ hosts: ["n1", "n2"], limits: { hosts: 1 } }, async (world) => {
      await inherit(world);
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      remediations.mergePatch(SECOND, { metadata: { finalizers: ["example.com/audit"] } });
      remediations.delete(SECOND);
      await world.phase("second", "Failed");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(world.target("n1")?.status?.owner, undefined);
      remediations.mergePatch(SECOND, { metadata: { finalizers: null } });
      await world.clock.advance(10_000);
      assert.equal(hasReason(world, "RemediationLost"), false, "nothing was lost");
    }));

  it("a remediation that times out while it waits without finalizer gets one before its undo claims the host", () =>
    World.run({}, async (world) => {
      world.server.collection(FENCING_TARGETS).mergePatch(KEY, { spec: { maintenance: true } });
      await world.hang("n1");
      world.remediate("n1");
      await world.until("it is held", () => world.condition("n1", "Processing") === "True Maintenance");
      assert.equal(world.remediation("n1")?.metadata.finalizers, undefined);
      world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, TIMED_OUT);
      await world.phase("n1", "Failed");
      assert.equal(hasReason(world, "FinalizerPutBack"), false, "no user has removed it");
      world.assertClean();
    }));
});
