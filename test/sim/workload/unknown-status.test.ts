import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CUSTOM_RESOURCE_DEFINITIONS } from "../../../hack/kube-mock/custom-resources.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, PODS } from "../../../src/api/kubernetes/core-types.ts";
import { CAPS, WorkloadWorld } from "./world.ts";

/** Makes the CRD accept any value for the cluster of a node, as the CRD of a later version may do. */
function acceptAnyCluster(world: WorkloadWorld): void {
  const definitions = world.management.server.collection(CUSTOM_RESOURCE_DEFINITIONS);
  const key = { name: "baremetalremediations.ironfence.io" };
  const { spec } = structuredClone(definitions.get(key) ?? assert.fail()) as unknown as { spec: Definition };
  const node = spec.versions[0]?.schema.openAPIV3Schema.properties.status.properties.node ?? assert.fail();
  node.properties["cluster"] = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  definitions.mergePatch(key, { spec });
}

interface Definition {
  versions: {
    schema: {
      openAPIV3Schema: { properties: { status: { properties: { node: { properties: Record<string, unknown> } } } } };
    };
  }[];
}

/**
 * Ends the agent after it has deleted a node. Another version stores the cluster of the node in its own form. Then the
 * remediation is undone.
 */
async function undone(world: WorkloadWorld, cluster: object): Promise<string> {
  acceptAnyCluster(world);
  world.workload.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { labels: { team: "db" } } });
  world.workload.createPod("n1", "db");
  const uid = world.machine("m1", "n1");
  await world.hang("workload", "n1");
  const pods = world.workload.server.collection(PODS);
  pods.mergePatch({ namespace: "default", name: "db" }, { metadata: { finalizers: ["test/held"] } });
  world.remediateMachine("m1", uid, { workloadRelease: "DeleteNode", drainTimeout: "30m", retryLimit: 0 });
  await world.phase("Releasing", "m1");
  await world.until("the node is deleted", () => world.workload.node("n1") === undefined);
  await world.killAgent();
  const key = { namespace: CAPS, name: "m1" };
  const status = { writtenBy: "9.9.9", node: { cluster } };
  world.management.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(key, { status }, "status");
  world.startAgent();
  await world.until("it says so", () => world.condition("Processing", "m1") === "True UnknownState");
  world.delete("m1");
  let message = "";
  await world.until("it is gone", () => {
    message = world.remediation("m1")?.status?.outcome?.message ?? message;
    return world.remediation("m1") === undefined;
  });
  assert.equal(world.management.node("n1")?.metadata.labels?.["team"], undefined);
  world.assertUntouched("management");
  return message;
}

describe("a status of another version whose cluster cannot be read", () => {
  it("a status of another version whose cluster cannot be read is undone without a write to the node of that name in the agent's own cluster, and says so", () =>
    WorkloadWorld.run({}, async (world) => {
      const message = await undone(world, { namespace: null, name: null, ref: "workload" });
      assert.match(message, /the node cannot be identified: no labels, annotations or taints are restored/u);
    }));

  it("a status of another version whose cluster cannot be read in a part that does not say which it is, is undone in that cluster", () =>
    WorkloadWorld.run({}, async (world) => {
      await undone(world, { own: "no" });
      assert.deepEqual(world.powerLog, ["workload n1 ForceOff", "workload n1 On"]);
      await world.until("it has its labels", () => world.workload.node("n1")?.metadata.labels?.["team"] === "db");
    }));
});
