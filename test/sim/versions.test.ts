import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediationStatus } from "../../src/api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/bare-metal-remediation.ts";
import { NAMESPACE, World } from "./world.ts";

const KEY = { namespace: NAMESPACE, name: "n1" };

/** What another version has stored: fields of a status, beside what is there. */
type Foreign = Omit<Partial<BareMetalRemediationStatus>, "attempt"> & { attempt?: { action?: string } };

/** A fence as far as the taint; then the agent ends, and one of another version stores what this one does not know. */
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

/** Where the CRD is another version's, too: it knows an order that ours does not. */
function acceptAnyAction(world: World): void {
  const crds = {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
  };
  const key = { name: "baremetalremediations.ironfence.io" };
  const definition = structuredClone(world.server.collection(crds).get(key) ?? assert.fail()) as unknown as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: Record<string, Schema> } } }[] };
  };
  const status = definition.spec.versions[0]?.schema.openAPIV3Schema.properties["status"];
  const action = status?.properties?.["attempt"]?.properties?.["action"] ?? assert.fail();
  delete action.enum;
  world.server.collection(crds).mergePatch(key, { spec: definition.spec });
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
    it(`by ${what} loses its taint, says who wrote it, and is acted on again once it is known`, () =>
      World.run({}, async (world) => {
        const known = await otherVersionTakesOver(world, foreign);
        world.startAgent();
        await world.until("the taint is off at once", () => world.markLog.at(-1) === "n1 -taint", 1_000);
        world.somebodyOrders("n1", "On");
        await world.clock.advance(60_000);
        const processing = world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Processing");
        assert.equal(processing?.reason, "UnknownState");
        assert.match(processing.message, /^agent 9\.9\.9 wrote a status that this one cannot act on/u);
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

  it("is taken back when it is deleted: the host is on again, and nothing of ours is left", () =>
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

  it("by an order that it does not know is taken back, too: the host may be off for it", () =>
    World.run({}, async (world) => {
      acceptAnyAction(world);
      await otherVersionTakesOver(world, { attempt: { action: "Cycle" } });
      world.startAgent();
      await world.until("it says so", () => world.condition("n1", "Processing") === "True UnknownState", 10_000);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      world.freePod();
      await world.until("it is gone", () => world.remediation("n1") === undefined, 60_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});
