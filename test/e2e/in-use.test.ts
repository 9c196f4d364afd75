import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OUT_OF_SERVICE, conditionOf, hasTaint } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import { tryDelete, tryDeleteAll, untilRefused } from "../../hack/e2e/removal.ts";
import {
  explain,
  holdFence,
  marksOf,
  startScenario,
  targetsReady,
  TARGETS,
  REMEDIATION_TIMEOUT_MS,
} from "../../hack/e2e/scenario.ts";
import type { NodeMarks, Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { deleteManifests, readManifests } from "../../hack/lib/apply.ts";

// Tests deploy/kustomize/in-use-admission.yaml on a real control plane. test/nightly/removal.test.ts shows what happens
// without it.

const VICTIM = "worker-1";
const GONE_WITHIN_MS = 60_000;
const REMEDIATION = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/${VICTIM}`;
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEPLOYMENT = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ironfence`;
const NEEDED = [
  `/api/v1/namespaces/${NAMESPACE}`,
  `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/ironfence`,
  DEPLOYMENT,
  `${CRDS}/baremetalremediations.ironfence.io`,
  `${CRDS}/fencingtargets.ironfence.io`,
  `${RBAC}/clusterroles/ironfence-agent`,
  `${RBAC}/clusterrolebindings/ironfence-agent`,
  `${RBAC}/clusterroles/ironfence-remediators`,
  ...[NAMESPACE, "kube-node-lease", "kube-system", "medik8s-leases"].map(
    (namespace) => `${RBAC}/namespaces/${namespace}/rolebindings/ironfence-agent`,
  ),
];
/** A client may delete all objects of a kind with one request, without naming them. */
const COLLECTIONS = [
  `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`,
  `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`,
  CRDS,
  `${RBAC}/clusterroles`,
  `${RBAC}/clusterrolebindings`,
  `${RBAC}/namespaces/${NAMESPACE}/rolebindings`,
  TARGETS,
];

void describe("what a fence under way needs cannot be deleted", () => {
  let scenario: Scenario;
  let marks: NodeMarks;
  let letPodGo: () => Promise<void>;

  before(async () => {
    scenario = await startScenario();
    await applyFencingTarget(scenario.world, VICTIM);
    await applyFencingTarget(scenario.world, "worker-2");
    await scenario.startAgent();
    await targetsReady(scenario, [VICTIM, "worker-2"]);
    marks = await marksOf(scenario, VICTIM);
    letPodGo = await holdFence(scenario, VICTIM);
    await untilRefused(scenario.world.api, "Releasing");
  });
  after(() => scenario?.stop());

  void test("the API server refuses each of these deletions, and names the remediation and the next step", async () => {
    const { api } = scenario.world;
    for (const path of NEEDED) {
      assert.ok((await api.find(path)) !== undefined, path);
      const refusal = (await tryDelete(api, `${path}?dryRun=All`)) ?? "";
      assert.match(
        refusal,
        /BareMetalRemediation ironfence-system\/worker-1 \(Releasing\), and its host may be OFF/,
        `${path}: ${refusal}`,
      );
      assert.match(
        refusal,
        /Pause the health checks, delete the remediation, wait until it is gone/,
        `${path}: ${refusal}`,
      );
    }
    const refusal = (await tryDelete(api, `${TARGETS}/${VICTIM}?dryRun=All`)) ?? "";
    assert.match(refusal, /ironfence-system\/worker-1 is fencing the host of FencingTarget worker-1/);
  });

  void test("the API server refuses to delete a whole collection that contains an object which a fence needs", async () => {
    const { api } = scenario.world;
    for (const path of COLLECTIONS) {
      const refusal = (await tryDelete(api, `${path}?dryRun=All`)) ?? "";
      assert.match(refusal, /ironfence-system\/worker-1/, `${path}: ${refusal}`);
    }
  });

  void test("everything else can be deleted, and the agent can be stopped", async () => {
    const { api } = scenario.world;
    assert.equal(await tryDelete(api, `${TARGETS}/worker-2?dryRun=All`), undefined);
    assert.equal(await tryDelete(api, "/api/v1/namespaces/medik8s-leases?dryRun=All"), undefined);
    assert.equal(await tryDelete(api, `${RBAC}/clusterroles/ironfence-view?dryRun=All`), undefined);
    await api.mergePatch(`${DEPLOYMENT}/scale?dryRun=All`, { spec: { replicas: 0 } });
  });

  void test("an uninstall is refused as a whole, the fence ends well, and the second try leaves nothing", async () => {
    const { world } = scenario;
    const { api } = world;
    const manifests = await readManifests(repositoryPath("deploy/kustomize"));
    const refusals = await tryDeleteAll(api, manifests);
    for (const path of NEEDED) assert.ok(refusals.has(path), `${path} is kept`);
    const node = await api.get<NodeView>(`/api/v1/nodes/${VICTIM}`);
    assert.equal(hasTaint(node, OUT_OF_SERVICE), true);

    await letPodGo();
    await explain(scenario, "the fence ends well", REMEDIATION_TIMEOUT_MS, async () => {
      const remediation = await api.get<RemediationView>(REMEDIATION);
      return (
        conditionOf(remediation, "Succeeded")?.status === "True" && (remediation.metadata.finalizers ?? []).length === 0
      );
    });
    assert.equal(await world.bmc.powerState(world.host(VICTIM).systemUuid), "On");
    await Promise.all(scenario.agents.map((agent) => agent.stop()));
    await deleteManifests(api, manifests, GONE_WITHIN_MS);
    await explain(scenario, "the node is as before", REMEDIATION_TIMEOUT_MS, async () => {
      return JSON.stringify(await marksOf(scenario, VICTIM)) === JSON.stringify(marks);
    });
  });
});
