import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import type { Agent } from "../../hack/e2e/agent.ts";
import { OUT_OF_SERVICE, conditionOf, hasTaint } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import { overridePolicies, tryDelete, tryDeleteAll, untilRefused } from "../../hack/e2e/removal.ts";
import {
  explain,
  holdFence,
  marksOf,
  startScenario,
  targetsReady,
  REMEDIATION_TIMEOUT_MS,
} from "../../hack/e2e/scenario.ts";
import type { NodeMarks, Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyManifests, applyObject, readManifests } from "../../hack/lib/apply.ts";

// Deletions during a fence in spite of the policies, and the recovery by docs/how-to/uninstall.md. No pod runs, so the
// test stops the agent when Kubernetes would.

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACE_PATH = `/api/v1/namespaces/${NAMESPACE}`;
const RECOVERY = "ironfence-recovery";
const REMEDIATIONS = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`;
const PAUSE = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "ironfence-pause", namespace: NAMESPACE } };

void describe("a removal in the middle of a fence, in spite of the policies", () => {
  let scenario: Scenario;
  let victim: string;
  let marks: NodeMarks;
  let letPodGo: () => Promise<void>;

  before(async () => {
    scenario = await startScenario();
  });
  after(() => scenario?.stop());
  afterEach(stopAgents);

  async function stopAgents(): Promise<void> {
    await Promise.all((scenario?.agents ?? []).map((agent) => agent.stop()));
  }

  /** Lets an agent fence a node until it has the taint. With `override`, disables the policies. */
  async function begin(node: string, { override }: { override: boolean }): Promise<Agent> {
    const { world } = scenario;
    victim = node;
    await apply();
    await applyFencingTarget(world, victim);
    const agent = await scenario.startAgent();
    await targetsReady(scenario, [victim]);
    marks = await marksOf(scenario, victim);
    const free = await holdFence(scenario, victim);
    let isHeld = true;
    letPodGo = async () => {
      if (isHeld) await free();
      isHeld = false;
    };
    await untilRefused(world.api, "Releasing");
    if (override) await overridePolicies(world.api);
    return agent;
  }

  const apply = async (): Promise<unknown> => applyManifests(scenario.world.api, repositoryPath("deploy/kustomize"));

  const tainted = async (): Promise<boolean> =>
    hasTaint(await scenario.world.api.get<NodeView>(`/api/v1/nodes/${victim}`), OUT_OF_SERVICE);

  /** Asserts that the host runs, its node has no mark, and no finalizer keeps the remediation. */
  async function assertBack(): Promise<void> {
    const { api, bmc } = scenario.world;
    await letPodGo();
    await explain(scenario, `${victim} is as before`, REMEDIATION_TIMEOUT_MS, async () => {
      return JSON.stringify(await marksOf(scenario, victim)) === JSON.stringify(marks);
    });
    assert.equal(await bmc.powerState(scenario.world.host(victim).systemUuid), "On");
    assert.equal(await scenario.world.host(victim).orderCount("ForceOff"), 1);
    await tryDelete(api, `${REMEDIATIONS}/${victim}`);
    await explain(scenario, "no finalizer keeps the remediation", REMEDIATION_TIMEOUT_MS, async () => {
      return (await api.find(`${REMEDIATIONS}/${victim}`)) === undefined;
    });
  }

  const message = async (type: string): Promise<string> => {
    const remediation = await scenario.world.api.get<RemediationView>(`${REMEDIATIONS}/${victim}`);
    return conditionOf(remediation, type)?.message ?? "";
  };

  void test("the agent's permissions are deleted: it says what it lacks, and ends the fence when they are applied again", async () => {
    const agent = await begin("worker-1", { override: true });
    await scenario.world.api.delete(`${RBAC}/clusterroles/ironfence-agent`);
    await letPodGo();
    await explain(scenario, "the agent says what it lacks", REMEDIATION_TIMEOUT_MS, () =>
      Promise.resolve(/clusterrole[^\n]*ironfence-agent[^\n]* not found/.test(agent.log())),
    );
    await apply();
    await assertBack();
  });

  void test("the agent's ServiceAccount is deleted: the next agent ends the fence when it is applied again", async () => {
    const agent = await begin("worker-2", { override: true });
    await scenario.world.api.delete(`${NAMESPACE_PATH}/serviceaccounts/ironfence`);
    assert.match(await agent.ended, /ended with/);
    await apply();
    await scenario.startAgent();
    await assertBack();
  });

  void test("the Secret is deleted and the agent starts again: it says which Secret it lacks, and ends the fence with it", async () => {
    const { world } = scenario;
    const agent = await begin("worker-3", { override: false });
    await agent.kill();
    await world.api.delete(`${NAMESPACE_PATH}/secrets/${victim}-bmc`);
    await scenario.startAgent();
    await explain(scenario, "the remediation names the Secret", REMEDIATION_TIMEOUT_MS, async () =>
      (await message("Processing")).includes(`Secret ironfence-system/${victim}-bmc`),
    );
    assert.equal(await tainted(), false, "without a proof that the host is off the taint does not stay");
    await applyFencingTarget(world, victim);
    await assertBack();
  });

  void test("the Deployment is scaled to 0, then an uninstall is tried: it is refused, and an agent ends the fence later", async () => {
    const { api } = scenario.world;
    const agent = await begin("worker-4", { override: false });
    await api.mergePatch(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ironfence/scale`, {
      spec: { replicas: 0 },
    });
    await agent.stop();
    const refusals = await tryDeleteAll(api, await readManifests(repositoryPath("deploy/kustomize")));
    assert.ok(refusals.has(NAMESPACE_PATH));
    assert.ok(refusals.has(`${CRDS}/baremetalremediations.ironfence.io`));
    await apply();
    await scenario.startAgent();
    await assertBack();
  });

  void test("the remediation is deleted during a pause: its host is powered on, and everything can be removed", async () => {
    const { api } = scenario.world;
    await begin("worker-1", { override: false });
    await applyObject(api, PAUSE);
    await api.delete(`${REMEDIATIONS}/${victim}`);
    await letPodGo();
    await explain(scenario, "the remediation is gone", REMEDIATION_TIMEOUT_MS, async () => {
      return (await api.find(`${REMEDIATIONS}/${victim}`)) === undefined;
    });
    assert.equal(await scenario.world.bmc.powerState(scenario.world.host(victim).systemUuid), "On");
    assert.equal(await tryDelete(api, `${NAMESPACE_PATH}?dryRun=All`), undefined);
    await api.delete(`${NAMESPACE_PATH}/configmaps/ironfence-pause`);
  });

  void test("the kind of the remediations is deleted while the agent runs: the host is back before the kind is gone", async () => {
    const { api } = scenario.world;
    await begin("worker-2", { override: true });
    const crd = `${CRDS}/baremetalremediations.ironfence.io`;
    await api.delete(crd);
    await letPodGo();
    await eventually("the kind is gone", REMEDIATION_TIMEOUT_MS, async () => (await api.find(crd)) === undefined);
    assert.equal(await scenario.world.bmc.powerState(scenario.world.host(victim).systemUuid), "On");
    assert.equal(await tainted(), false);
  });

  void test("the namespace is deleted: an agent in another namespace brings the host back, and the namespace goes", async () => {
    const { world } = scenario;
    const agent = await begin("worker-3", { override: true });
    await world.api.delete(NAMESPACE_PATH);
    await agent.stop();
    assert.equal(await tainted(), true);
    assert.equal(await world.bmc.powerState(world.host(victim).systemUuid), "Off");

    await applyObject(world.api, { apiVersion: "v1", kind: "Namespace", metadata: { name: RECOVERY } });
    const identity = { systemUUID: world.host(victim).systemUuid };
    const change = (target: Manifest): Manifest => ({ ...target, spec: { ...Object(target["spec"]), identity } });
    await applyFencingTarget(world, victim, { namespace: RECOVERY, change });
    await scenario.startAgent([], { asAdminIn: RECOVERY });
    await letPodGo();
    await eventually(
      "the namespace is gone",
      REMEDIATION_TIMEOUT_MS,
      async () => (await world.api.find(NAMESPACE_PATH)) === undefined,
      async () => JSON.stringify([await world.api.find(NAMESPACE_PATH), await world.api.list(REMEDIATIONS)]),
    );
    assert.equal(await world.bmc.powerState(world.host(victim).systemUuid), "On");
    await explain(scenario, `${victim} is as before`, REMEDIATION_TIMEOUT_MS, async () => {
      return JSON.stringify(await marksOf(scenario, victim)) === JSON.stringify(marks);
    });
  });
});
