import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startAgent } from "../../hack/e2e/agent.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { configure, startScenario, targetsReady } from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject } from "../../hack/lib/apply.ts";

const LOOK_MS = 5_000;

void describe("an agent that is started before everything else", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario({ install: false });
  });
  after(() => scenario?.stop());

  void test("the agent without permissions reports which ones it lacks", async () => {
    const { api } = scenario.world;
    await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    await applyManifests(api, repositoryPath("deploy/kustomize/service-account.yaml"));
    const agent = await startAgent(scenario.world, "powerless");
    try {
      await eventually("the log names what is forbidden", 30_000, () =>
        Promise.resolve(/forbidden/i.test(agent.log()) && /nodes|leases/.test(agent.log())),
      );
    } finally {
      await agent.stop();
    }
  });

  void test("an agent that starts first waits for CRDs and serves them once they are there", async () => {
    const { api } = scenario.world;
    await applyManifests(api, repositoryPath("deploy/node-health-check/namespace.yaml"));
    for (const file of ["namespace", "service-account", "role-agent", "role-remediators"]) {
      await applyManifests(api, repositoryPath(`deploy/kustomize/${file}.yaml`));
    }
    const agent = await scenario.startAgent();
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    assert.ok(agent.running, agent.log());
    await scenario.world.install();
    await configure(scenario);
    await targetsReady(scenario);
    assert.ok(agent.running);
  });
});
