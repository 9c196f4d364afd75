import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { configure, explain, REMEDIATIONS, startScenario, TARGETS, HEALTH_CHECK } from "../../hack/e2e/scenario.ts";
import type { HealthCheckView, Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, deleteManifests } from "../../hack/lib/apply.ts";
import { deletions } from "../lib/deletions.ts";
import { readWithheldRemediations } from "../../src/api/ironfence/withheld-remediation.ts";

// Runs `ironfence run --observe` on a real API server with the permissions of deploy/observe.

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/ironfence-observe`;
const PLACES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const WITHIN_MS = 180_000;

interface LeaseView {
  metadata: { annotations?: Record<string, string> };
  spec?: { holderIdentity?: string };
}

void describe("an agent that only observes", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario();
    await configure(scenario);
    const { api } = scenario.world;
    // The state that `kubectl apply -k deploy/observe` leaves.
    const removed = deletions("deploy/observe");
    assert.equal(removed.length, 6);
    await deleteManifests(api, removed, 30_000);
    await applyManifests(api, repositoryPath("deploy/chart/files/observe/rbac.yaml"));
  });
  after(() => scenario?.stop());

  void test("an agent that only observes finds with permissions to read what it would fence, and changes nothing", async () => {
    const { world } = scenario;
    const { api } = world;
    const agent = await scenario.startAgent(["--observe"]);
    const observed = async () => readWithheldRemediations((await api.find<LeaseView>(LEASE))?.metadata.annotations);
    await explain(scenario, "it leads", WITHIN_MS, async () => {
      return ((await api.find<LeaseView>(LEASE))?.spec?.holderIdentity ?? "") !== "";
    });
    await world.host("worker-1").hang();
    await explain(scenario, "it would fence worker-1", WITHIN_MS, async () => (await observed()).length > 0);
    const [found] = await observed();
    assert.deepEqual([found?.node, found?.healthCheck], ["worker-1", "NodeHealthCheck workers"]);
    assert.match(found?.because ?? "", /^its condition Ready is Unknown/);

    assert.deepEqual(await api.list(REMEDIATIONS), []);
    assert.equal((await api.get<HealthCheckView>(HEALTH_CHECK)).status, undefined);
    const targets = await api.list<{ status?: object }>(TARGETS);
    assert.ok(targets.length > 0 && targets.every(({ status }) => status === undefined));
    assert.doesNotMatch(JSON.stringify(await api.list("/api/v1/nodes")), /ironfence\.io|out-of-service/);
    const places = await api.list<{ metadata: { name: string } }>(PLACES);
    assert.ok(!places.some(({ metadata }) => metadata.name.startsWith("ironfence-")), "it takes no place");
    assert.doesNotMatch(agent.log(), /forbidden|only observes/i, "nothing is refused, here or there");
  });
});
