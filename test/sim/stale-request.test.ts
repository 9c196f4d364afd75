import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CONFIRM } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { RESTORED_BY_VELERO } from "../../src/api/names/labels.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { NAMESPACE, World } from "./world.ts";

// Old remediations without status, as in a restored backup.

const KEY = { namespace: NAMESPACE, name: "n1" };

/** Creates a remediation of n1 that is older than 10 minutes when an agent first sees it. */
async function comeLate(world: World, metadata: Record<string, unknown> = {}): Promise<void> {
  await world.killAgent();
  world.create(BARE_METAL_REMEDIATIONS, { ...KEY, ...metadata }, { spec: { strategy: { retryLimit: 0 } } });
  await world.clock.advance(601_000);
  world.startAgent();
}

function confirm(world: World, uid: string): void {
  world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(KEY, { metadata: { annotations: { [CONFIRM]: uid } } });
}

async function assertWaits(world: World): Promise<void> {
  await world.until("it waits", () => world.condition("n1", "Processing") === "True StaleRequest", 60_000);
  await world.clock.advance(600_000);
  assert.equal(world.condition("n1", "Processing"), "True StaleRequest");
  assert.deepEqual(world.powerLog, []);
}

describe("a remediation without status that is older than 10 minutes", () => {
  it("a remediation without status that is older than 10 minutes of a Ready node waits until a person confirms this very object", () =>
    World.run({}, async (world) => {
      await comeLate(world);
      await assertWaits(world);
      assert.ok(world.notes.some(({ type, reason }) => type === "Warning" && reason === "StaleRequest"));
      confirm(world, "the UID of the object that was backed up");
      await assertWaits(world);
      confirm(world, world.remediation("n1")?.metadata.uid ?? assert.fail());
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    }));

  it("a remediation without status that is older than 10 minutes begins if its node is not Ready, also when that fails later", () =>
    World.run({}, async (world) => {
      await comeLate(world);
      await assertWaits(world);
      await world.hang("n1");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    }));

  it("a remediation without status that is older than 10 minutes begins if the health check that owns it lists its node as unhealthy", () =>
    World.run({}, async (world) => {
      const template = { namespace: NAMESPACE, name: "reboot", kind: "BareMetalRemediationTemplate" };
      const remediationTemplate = { ...template, apiVersion: "ironfence.io/v1alpha1" };
      const spec = { selector: { matchLabels: { none: "here" } }, minHealthy: 0, remediationTemplate };
      world.create(NODE_HEALTH_CHECKS, { name: "all" }, { spec });
      const checks = world.server.collection(NODE_HEALTH_CHECKS);
      const uid = checks.get({ name: "all" })?.metadata.uid ?? assert.fail();
      const owner = { apiVersion: "remediation.medik8s.io/v1alpha1", kind: "NodeHealthCheck", name: "all", uid };
      await comeLate(world, { ownerReferences: [owner] });
      await assertWaits(world);
      checks.mergePatch({ name: "all" }, { status: { unhealthyNodes: [{ name: "n1" }] } }, "status");
      await world.phase("n1", "Succeeded");
    }));

  it("a remediation without status that is older than 10 minutes is gone at once when it is deleted while it waits", () =>
    World.run({}, async (world) => {
      await comeLate(world);
      await assertWaits(world);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      await world.until("it is gone", () => world.remediation("n1") === undefined, 5_000);
      world.assertClean();
    }));
});

describe("a remediation without status that is older than 10 minutes, by the clock that stamped it", () => {
  for (const agentAheadMs of [-3_600_000, 3_600_000]) {
    it(`an old request waits although the agent's own clock is an hour ${agentAheadMs < 0 ? "behind" : "ahead"}`, () =>
      World.run({ agentAheadMs }, async (world) => {
        await comeLate(world);
        await assertWaits(world);
      }));
  }
});

describe("a remediation that is young by the clock that stamped it", () => {
  it("a fresh request begins though the agent's own clock is an hour ahead", () =>
    World.run({ agentAheadMs: 3_600_000 }, async (world) => {
      world.create(BARE_METAL_REMEDIATIONS, KEY, { spec: { strategy: { retryLimit: 0 } } });
      await world.until("it begins", () => world.powerLog.length > 0, 60_000);
    }));
});

describe("a remediation that Velero has restored", () => {
  it("a remediation that Velero has restored waits however young it is", () =>
    World.run({}, async (world) => {
      const labels = { [RESTORED_BY_VELERO]: "monday" };
      world.create(BARE_METAL_REMEDIATIONS, { ...KEY, labels }, { spec: {} });
      await assertWaits(world);
    }));
});
