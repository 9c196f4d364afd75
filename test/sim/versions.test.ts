import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { CUSTOM_RESOURCE_DEFINITIONS } from "../../hack/kube-mock/custom-resources.ts";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import type { BareMetalRemediationStatus } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { FENCED, OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { bears, NAMESPACE, World } from "./world.ts";

/** Statuses that agent 0.1.0 wrote in simulated fences (test/corpus/record.ts). */
const RELEASED = JSON.parse(
  readFileSync(new URL("../corpus/0.1.0/statuses.json", import.meta.url), "utf8"),
) as BareMetalRemediationStatus[];

const KEY = { namespace: NAMESPACE, name: "n1" };

/** Status fields that another version has stored in addition to the existing ones. */
type Foreign = Omit<Partial<BareMetalRemediationStatus>, "attempt" | "installation"> & {
  attempt?: { action?: string };
  installation?: { step: string; image: string };
};

/** Fences until the taint, ends the agent, and stores what only another version knows. */
async function otherVersionTakesOver(world: World, foreign: Foreign): Promise<BareMetalRemediationStatus> {
  await world.holdPod();
  world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
  await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
  await world.killAgent();
  const { status } = world.remediation("n1") ?? assert.fail();
  store(world, { writtenBy: "9.9.9", ...foreign });
  return status ?? assert.fail();
}

function store(world: World, status: object): void {
  world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { status }, "status");
}

/** Makes the CRD accept any value at a path, as the CRD of another version may do. */
function acceptAny(world: World, ...path: readonly [string, string, ...string[]]): void {
  const crds = world.server.collection(CUSTOM_RESOURCE_DEFINITIONS);
  const key = { name: "baremetalremediations.ironfence.io" };
  const definition = structuredClone(crds.get(key) ?? assert.fail()) as unknown as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: Record<string, Schema> } } }[] };
  };
  const root: Schema | undefined = definition.spec.versions[0]?.schema.openAPIV3Schema;
  const schema = path.reduce((parent, field) => parent?.properties?.[field], root) ?? assert.fail();
  delete schema.enum;
  crds.mergePatch(key, { spec: definition.spec });
}

interface Schema {
  enum?: string[];
  properties?: Record<string, Schema>;
}

describe("a status that this version does not know", () => {
  for (const [what, foreign] of [
    ["a phase", { phase: "Draining" }],
    ["a state version", { stateVersion: 2 }],
  ] as const) {
    it(`a status with ${what} that this version does not know has its taint removed and its writer reported, and is served again when it is known`, () =>
      World.run({}, async (world) => {
        const known = await otherVersionTakesOver(world, foreign);
        world.startAgent();
        await world.until("the taint is off at once", () => world.markLog.at(-1) === "n1 -taint", 1_000);
        world.otherClientOrders("n1", "On");
        await world.clock.advance(60_000);
        const processing = world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Processing");
        assert.equal(processing?.reason, "UnknownState");
        assert.match(
          processing.message,
          /^agent 9\.9\.9 wrote a status that this agent, which knows state version 1, cannot act on/u,
        );
        assert.equal(world.notes.filter(({ reason }) => reason === "UnknownState").length, 1);
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"], "nothing is done to the host");
        const { phase, stateVersion } = world.remediation("n1")?.status ?? {};
        assert.deepEqual({ phase: known.phase, stateVersion: 1, ...foreign }, { phase, stateVersion });
        store(world, { phase: known.phase, stateVersion: 1 });
        world.freePod();
        await world.until(
          "it has its verdict",
          () => world.condition("n1", "Succeeded")?.startsWith("Unknown") === false,
        );
        world.assertClean();
      }));
  }

  it("a status that this version does not know is undone when it is deleted: the host is on again, and nothing of ironfence is left", () =>
    World.run({}, async (world) => {
      await otherVersionTakesOver(world, { phase: "Draining" });
      world.startAgent();
      await world.clock.advance(20_000);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      world.freePod();
      await world.until("it is gone", () => world.remediation("n1") === undefined, 60_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a status whose order this version does not know is undone as well, since the host may be off because of it", () =>
    World.run({}, async (world) => {
      acceptAny(world, "status", "attempt", "action");
      await otherVersionTakesOver(world, { attempt: { action: "Cycle" } });
      world.startAgent();
      await world.until("it says so", () => world.condition("n1", "Processing") === "True UnknownState", 10_000);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      world.freePod();
      await world.until("it is gone", () => world.remediation("n1") === undefined, 60_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a status that this version does not know and that names no host is undone when it is deleted, even if another client has removed the finalizer", () =>
    World.run({}, async (world) => {
      acceptAny(world, "status", "attempt", "action");
      await otherVersionTakesOver(world, { phase: "Draining", attempt: { action: "Cycle" } });
      store(world, { target: null });
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      remediations.mergePatch(KEY, { metadata: { finalizers: ["test/held"] } });
      remediations.delete(KEY);
      world.freePod();
      world.startAgent();
      await world.until("the host is on again", () => world.powerLog.includes("n1 On"), 60_000);
      await world.until("the host is released", () => world.target("n1")?.status?.owner === undefined, 60_000);
      remediations.mergePatch(KEY, { metadata: { finalizers: null } });
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

/** Fences until the taint, ends the agent, and puts a value into the spec that only a later version knows. */
async function laterSpec(world: World): Promise<void> {
  acceptAny(world, "spec", "strategy", "podRelease");
  await world.holdPod();
  world.remediate("n1", { retryLimit: 0, drainTimeout: "60s" });
  await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
  await world.killAgent();
  setPodRelease(world, "Orderly");
  world.startAgent();
}

function setPodRelease(world: World, podRelease: string): void {
  world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { spec: { strategy: { podRelease } } });
}

describe("a spec that this version does not know", () => {
  it("a spec that this version does not know is reported by condition, event and metric, and the remediation goes on once it is known", () =>
    World.run({ limits: { hosts: 1, perZone: Infinity } }, async (world) => {
      await laterSpec(world);
      await world.until("the taint is off at once", () => world.markLog.at(-1) === "n1 -taint", 10_000);
      await world.clock.advance(120_000);
      const processing = world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Processing");
      assert.equal(processing?.reason, "UnknownState");
      assert.match(processing.message, /spec\.strategy\.podRelease is of another version/u);
      assert.equal(world.notes.filter(({ reason }) => reason === "UnknownState").length, 1);
      assert.equal(await world.metric("ironfence_remediations_overdue"), "1");
      assert.deepEqual(world.powerLog, ["n1 ForceOff"], "nothing is done to the host");
      await world.hang("n2");
      world.remediate("n2");
      await world.until("n2 need not wait for it", () => world.powerLog.includes("n2 On"));
      setPodRelease(world, "Eager");
      world.freePod();
      await world.until("it succeeds", () => world.condition("n1", "Succeeded")?.startsWith("True") === true);
      world.assertClean();
    }));

  for (const [what, end] of [
    ["deleted", (world: World) => world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY)],
    ["given up by its health check", (world: World) => timeOut(world)],
  ] as const) {
    it(`a remediation with a spec that this version does not know is undone when it is ${what}: the host is on again`, () =>
      World.run({}, async (world) => {
        await laterSpec(world);
        await world.until("it says so", () => world.condition("n1", "Processing") === "True UnknownState", 10_000);
        end(world);
        world.freePod();
        const isOver = (): boolean => ["Failed", undefined].includes(world.remediation("n1")?.status?.phase);
        await world.until("it is over", isOver, 60_000);
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }

  it("a spec that this version does not know before anything was begun waits, and begins once the spec is known", () =>
    World.run({}, async (world) => {
      acceptAny(world, "spec", "strategy", "podRelease");
      await world.hang("n1");
      world.remediate("n1", { podRelease: "Orderly" });
      await world.until("it says so", () => world.condition("n1", "Processing") === "True UnknownState", 10_000);
      assert.deepEqual(world.powerLog, []);
      setPodRelease(world, "Eager");
      await world.until("it succeeds", () => world.condition("n1", "Succeeded")?.startsWith("True") === true);
      world.assertClean();
    }));
});

describe("a status of which a part that an undo does not write is unknown", () => {
  it("a deleted remediation whose status is partly unknown is undone once: the host is on again and no mark of ironfence is left", () =>
    World.run({}, async (world) => {
      acceptAny(world, "status", "installation", "step");
      await otherVersionTakesOver(world, { installation: { step: "Draining", image: "{}" } });
      world.startAgent();
      await world.until("it says so", () => world.condition("n1", "Processing") === "True UnknownState", 10_000);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      world.freePod();
      await world.until("it is gone", () => world.remediation("n1") === undefined, 60_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      // The Node has its own Event.
      const told = world.notes.filter(
        ({ reason, regarding }) => reason === "RemediationDeleted" && regarding.kind !== "Node",
      );
      assert.equal(told.length, 1);
      world.assertClean();
    }));
});

/** Replaces the stored status by the one that 0.1.0 would have stored, with the same host, order and times. */
function downgrade(world: World): string {
  const { status } = world.remediation("n1") ?? assert.fail();
  const { phase, attempt, node, target, backup } = status ?? {};
  const alike = RELEASED.filter((released) => released.phase === phase);
  const same = (released: BareMetalRemediationStatus): boolean =>
    released.attempt?.action === attempt?.action &&
    released.attempt?.sent === attempt?.sent &&
    released.attempt?.done === attempt?.done &&
    (released.backup === undefined) === (backup === undefined);
  const released = alike.find(same) ?? assert.fail(`0.1.0 stored no such status: ${JSON.stringify(status)}`);
  const { id, actionAt, startedAt, deadline, offConfirmedAt } = attempt ?? {};
  const proof = released.attempt?.offConfirmedAt === undefined ? {} : { offConfirmedAt };
  store(world, Object.fromEntries(Object.keys(status ?? {}).map((field) => [field, null])));
  store(world, {
    ...released,
    ...(released.attempt && { attempt: { ...released.attempt, id, actionAt, startedAt, deadline, ...proof } }),
    ...(released.node && { node }),
    ...(released.target && { target }),
    ...(released.backup && { backup }),
  });
  const taints = world.node("n1")?.spec.taints?.filter(({ key }) => key !== FENCED.key);
  if (taints !== undefined) world.server.collection(NODES).mergePatch({ name: "n1" }, { spec: { taints } });
  return phase ?? "";
}

/** Ends the agent right after the write that brings the remediation into that state. */
async function killIn(world: World, phase: string): Promise<void> {
  let killed: Promise<void> | undefined;
  world.onPhase("n1", phase, () => {
    killed = world.killAgent();
  });
  await world.until(`it is ${phase}`, () => killed !== undefined);
  await killed;
}

describe("a taint that 0.1.0 put on and signed by an annotation alone", () => {
  it("a taint that 0.1.0 put on and signed by an annotation alone is removed while FencingTargets cannot be listed", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
      await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
      await world.killAgent();
      downgrade(world);
      const path = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`;
      const action = { kind: "status", status: 500 } as const;
      world.server.faults.inject({ match: { client: "agent", path }, times: Infinity, action });
      world.startAgent();
      await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 10_000);
    }));

  for (const [what, change] of [
    ["is deleted while no agent runs", (world: World) => world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY)],
    ["times out while no agent runs", (world: World) => timeOut(world)],
    ["was stored by this version before the rollback", (world: World) => store(world, { stateVersion: 1 })],
  ] as const) {
    it(`a taint that 0.1.0 put on and signed by an annotation alone is removed if its remediation ${what}`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
        await killIn(world, "Releasing");
        assert.equal(downgrade(world), "Releasing");
        change(world);
        world.startAgent();
        world.freePod();
        await world.clock.advance(300_000);
        const node = world.node("n1") ?? assert.fail();
        assert.deepEqual([world.isReady("n1"), bears(node, OUT_OF_SERVICE)], [true, false]);
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }
});

/** Marks the remediation as timed out, as a health check does. */
function timeOut(world: World): void {
  const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
  world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { annotations } });
}

describe("an agent of this version that takes over a fence from 0.1.0", () => {
  for (const phase of ["Verifying", "PoweringOff", "Releasing", "PoweringOn", "Rejoining", "Restoring"]) {
    it(`an agent of this version that takes over a fence from 0.1.0 in ${phase} brings the node back with one power cycle in all`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.freePod();
        world.remediate("n1", { workloadRelease: phase === "Restoring" ? "DeleteNode" : "OutOfServiceTaint" });
        await killIn(world, phase);
        assert.equal(downgrade(world), phase, "it ended where it was to");
        assert.equal(world.remediation("n1")?.status?.stateVersion, undefined);
        world.startAgent();
        await world.until(
          "it has its verdict",
          () => world.condition("n1", "Succeeded")?.startsWith("Unknown") === false,
        );
        assert.equal(world.condition("n1", "Succeeded")?.split(" ")[0], "True");
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }

  it("an agent of this version that takes over a fence from 0.1.0 in Undoing powers the host on again, and ends the remediation", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      await killIn(world, "Undoing");
      downgrade(world);
      world.startAgent();
      world.freePod();
      await world.until("it is gone", () => world.remediation("n1") === undefined, 60_000);
      assert.equal(world.powerLog.at(-1), "n1 On");
      world.assertClean();
    }));

  it("an agent of this version that takes over a fence from 0.1.0 in Provisioning restores on the new Node what the deleted one had", () =>
    World.run({ labels: { team: "a" } }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { type: "Escalate", retryLimit: 0, timeout: "30s" });
      world.rack.host("n1").failDisk();
      await killIn(world, "Provisioning");
      downgrade(world);
      world.rack.host("n1").replaceDisk();
      world.startAgent();
      await world.until(
        "it has its verdict",
        () => world.condition("n1", "Succeeded")?.startsWith("Unknown") === false,
      );
      assert.equal(world.node("n1")?.metadata.labels?.["team"], "a");
    }));
});
