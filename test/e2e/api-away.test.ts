import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OUT_OF_SERVICE, conditionOf, hasTaint, readyOf } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import {
  REMEDIATIONS,
  WALK_TIMEOUT_MS,
  WORKERS,
  assertOrder,
  explain,
  marksOf,
  startScenario,
  targetsReady,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE } from "../../hack/e2e/world.ts";
import { applyObject } from "../../hack/lib/apply.ts";

const AWAY_MS = 60_000;
const VICTIM = "worker-1";

void describe("an API server that is killed in the middle of a fence, for a minute", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario();
    for (const node of WORKERS) await applyFencingTarget(scenario.world, node);
  });
  after(() => scenario?.stop());

  void test("delays the fence: nothing is powered meanwhile, and one power cycle brings the node back", async () => {
    const { world } = scenario;
    const host = world.host(VICTIM);
    // A pod that a finalizer holds keeps the fence between power-off and power-on.
    const pod = `/api/v1/namespaces/default/pods/held`;
    await applyObject(world.api, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "held", namespace: "default", finalizers: ["example.com/held"] },
      spec: { nodeName: VICTIM, containers: [{ name: "main", image: "none" }] },
    });
    const agents = [await scenario.startAgent(), await scenario.startAgent()];
    await targetsReady(scenario);
    const marks = await marksOf(scenario, VICTIM);
    await host.hang();
    await explain(scenario, "the node is Unknown", WALK_TIMEOUT_MS, async () => {
      return readyOf(await world.api.get<NodeView>(`/api/v1/nodes/${VICTIM}`)) === "Unknown";
    });
    await applyObject(world.api, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediation",
      metadata: { name: VICTIM, namespace: NAMESPACE },
      spec: { strategy: { drainTimeout: "600s" } },
    });
    await explain(scenario, "the node is tainted", WALK_TIMEOUT_MS, async () => {
      return hasTaint(await world.api.get<NodeView>(`/api/v1/nodes/${VICTIM}`), OUT_OF_SERVICE);
    });

    await world.controlPlane.killApiServer();
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    assert.equal(await world.bmc.powerState(host.systemUuid), "Off", "nobody has powered it on");
    assert.equal(await host.orderCount("On"), 0);
    await world.controlPlane.restartApiServer();
    // As Kubernetes starts a pod again whose agent has lost its lease.
    for (const agent of agents) if (!agent.running) await scenario.startAgent();

    await world.api.mergePatch(pod, { metadata: { finalizers: null } });
    await explain(scenario, "the remediation has succeeded", WALK_TIMEOUT_MS, async () => {
      const [remediation] = await world.api.list<RemediationView>(REMEDIATIONS);
      return conditionOf(remediation, "Succeeded")?.status === "True";
    });
    await assertOrder(scenario, VICTIM, OUT_OF_SERVICE);
    for (const node of WORKERS) {
      const orders = node === VICTIM ? 1 : 0;
      assert.equal(await world.host(node).orderCount("ForceOff"), orders, node);
      assert.equal(await world.host(node).orderCount("On"), orders, node);
    }
    await explain(scenario, "nothing of it is left on the node", WALK_TIMEOUT_MS, async () => {
      const present = await marksOf(scenario, VICTIM);
      return JSON.stringify(present.taints) === JSON.stringify(marks.taints);
    });
  });
});
