import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODES } from "../../../src/api/kubernetes/core-types.ts";
import { CAPS, WorkloadWorld } from "./world.ts";

const PROVIDER_ID = `metal3://${CAPS}/n1/m1`;
const STRATEGY = {
  retryLimit: 0,
  workloadRelease: "DeleteNode",
  powerOffTimeout: "30s",
  drainTimeout: "30s",
  powerOnTimeout: "30s",
  timeout: "60s",
};

/**
 * Fences a BareMetalHost with a failed disk, with DeleteNode, until its verdict. There is no target that keeps its
 * cluster connected.
 */
async function failed(world: WorkloadWorld): Promise<void> {
  const nodes = world.workload.server.collection(NODES);
  const { metadata, status } = structuredClone(world.workload.node("n1") ?? assert.fail());
  nodes.delete({ name: "n1" });
  nodes.create({
    metadata: { name: "n1", labels: { ...metadata.labels, team: "db" } },
    spec: { providerID: PROVIDER_ID },
  });
  nodes.mergePatch({ name: "n1" }, { status }, "status");
  Object.assign(world.workload.rack.host("n1").spec, { providerID: PROVIDER_ID });
  await world.clock.advance(15_000);
  const uid = world.machine("m1", "n1", { named: PROVIDER_ID });
  world.takeHost("n1", "m1", uid);
  world.workload.rack.host("n1").failDisk();
  await world.until("n1 is down", () => !world.workload.isReady("n1"));
  world.remediateMachine("m1", uid, STRATEGY);
  await world.phase("Failed", "m1");
  assert.equal(world.condition("Succeeded", "m1"), "False RejoinTimeout");
}

async function mend(world: WorkloadWorld): Promise<void> {
  const host = world.workload.rack.host("n1");
  host.replaceDisk();
  host.order("ForceRestart");
  await world.until("n1 has joined again", () => world.workload.isReady("n1"));
}

function hasLabels(world: WorkloadWorld): boolean {
  return world.workload.node("n1")?.metadata.labels?.["team"] === "db";
}

describe("a node of a workload cluster that joins again after its remediation has failed", () => {
  for (const afterMs of [1_000, 300_000]) {
    it(`a node of a workload cluster that joins again ${afterMs / 1_000} s after its remediation has failed gets its labels back`, () =>
      WorkloadWorld.run({ targets: false }, async (world) => {
        await failed(world);
        await world.clock.advance(afterMs);
        await mend(world);
        await world.until("it has its labels", () => hasLabels(world), 60_000);
        await world.until("nothing is kept", () => world.remediation("m1")?.metadata.finalizers === undefined, 60_000);
      }));
  }

  it("a node of a workload cluster that joins again after its remediation has failed gets its labels back from an agent that started in between", () =>
    WorkloadWorld.run({ targets: false }, async (world) => {
      await failed(world);
      await world.killAgent();
      world.startAgent();
      await world.clock.advance(60_000);
      await mend(world);
      await world.until("it has its labels", () => hasLabels(world), 60_000);
    }));
});
