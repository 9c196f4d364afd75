import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { configure, explain, REMEDIATIONS, startScenario, targetsReady } from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { applyObject } from "../../hack/lib/apply.ts";
import { EXIT_FAILURE } from "../../src/cli/errors/failures.ts";
import { cli } from "../integration/cli-fixture.ts";

// `ironfence drill` on a real API server, whose eviction API respects PodDisruptionBudgets.

const NODE = "worker-2";
const PODS = "/api/v1/namespaces/default/pods";

void describe("ironfence drill", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario({ powerDelayMs: 500 });
    await configure(scenario, {
      // Longer than the drill, so that the health check does not remediate the node as well.
      healthCheck: (manifest) => {
        const unhealthyConditions = [{ type: "Ready", status: "Unknown", duration: "600s" }];
        const isCheck = manifest.kind === "NodeHealthCheck";
        return isCheck ? { ...manifest, spec: { ...(manifest["spec"] as object), unhealthyConditions } } : manifest;
      },
    });
    await scenario.startAgent();
    await targetsReady(scenario);
    const { api } = scenario.world;
    await applyObject(api, {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { namespace: "default", name: "web" },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: "web" } },
        template: {
          metadata: { labels: { app: "web" } },
          spec: {
            nodeName: NODE,
            containers: [{ name: "main", image: "registry.example/none" }],
          },
        },
      },
    });
    await applyObject(api, {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { namespace: "default", name: "web" },
      spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
    });
  });
  after(() => scenario?.stop());

  const drill = (...flags: string[]) => {
    const { kubeconfig } = scenario.world.controlPlane;
    return cli(["drill", "--node", NODE, "--yes", "--kubeconfig", kubeconfig, ...flags]);
  };
  const node = () => scenario.world.api.get<{ spec: { unschedulable?: boolean } }>(`/api/v1/nodes/${NODE}`);

  void test("ironfence drill respects a PodDisruptionBudget, and restores the node once the pods may leave", async () => {
    const { api } = scenario.world;
    const running = async (): Promise<number> =>
      (await api.list<{ spec: { nodeName?: string } }>(PODS)).filter(({ spec }) => spec.nodeName === NODE).length;
    await explain(scenario, "the pod is on the node", 20_000, async () => (await running()) > 0);
    // The leader reports in its Lease, which it writes every 2 s, whether it is ready. The targets may be Ready before.
    await explain(scenario, "the leader reports that it is ready", 20_000, async () => {
      const { code, err } = await drill("--dry-run");
      assert.ok(code === 0 || err.includes("have not been listed yet"), err);
      return code === 0;
    });
    const held = await drill("--drain-timeout", "8s");
    assert.equal(held.code, EXIT_FAILURE, held.err);
    assert.match(held.err, /DrainUnfinished.*disruption budget/);
    assert.match(held.err, /node worker-2 is uncordoned again/);
    assert.equal((await node()).spec.unschedulable, undefined);

    await api.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web");
    await api.mergePatch("/apis/apps/v1/namespaces/default/replicasets/web", { spec: { replicas: 0 } });
    const { code, err, out } = await drill("--timeout", "100s", "-o", "json");
    assert.equal(code, 0, err);
    assert.equal(JSON.parse(out).restored, true);
    assert.equal((await node()).spec.unschedulable, undefined);
    assert.deepEqual(await api.list(REMEDIATIONS), []);
  });
});
