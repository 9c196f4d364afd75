import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { OUT_OF_SERVICE, conditionOf, hasTaint } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import {
  configure,
  explain,
  HEALTH_CHECK,
  holdFence,
  marksOf,
  REMEDIATIONS,
  startScenario,
  targetsReady,
  REMEDIATION_TIMEOUT_MS,
} from "../../hack/e2e/scenario.ts";
import type { NodeMarks, Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { applyObject, deleteManifests, readManifests } from "../../hack/lib/apply.ts";

// Follows docs/how-to/uninstall.md. Like `kubectl delete -k`, it requests all deletions in order and then waits.

const GONE_WITHIN_MS = 60_000;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACES = "/api/v1/namespaces";
const HEALTH_CHECKS = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";
/** A health check of another operator, which an uninstall of ironfence must not change. */
const OTHERS = {
  apiVersion: "remediation.medik8s.io/v1alpha1",
  kind: "NodeHealthCheck",
  metadata: { name: "others" },
  spec: {
    selector: { matchLabels: { "example.com/of-others": "" } },
    remediationTemplate: {
      apiVersion: "other.example/v1",
      kind: "OtherTemplate",
      namespace: "default",
      name: "theirs",
    },
  },
};
const EXAMPLES = ["node-health-check", "fencing-target"];

void describe("an uninstall", () => {
  let scenario: Scenario;
  let marks: NodeMarks;

  before(async () => {
    scenario = await startScenario({ install: false });
    marks = await marksOf(scenario, "worker-1");
  });
  after(() => scenario?.stop());

  beforeEach(async () => {
    await scenario.world.install();
    await configure(scenario);
    await applyObject(scenario.world.api, OTHERS);
    await scenario.startAgent();
    await targetsReady(scenario);
    await failOne(scenario);
  });

  const deleteFolder = async (folder: string): Promise<void> =>
    deleteManifests(scenario.world.api, await readManifests(repositoryPath(folder)), GONE_WITHIN_MS);
  const deleteExamples = async (): Promise<void> => {
    for (const file of EXAMPLES) {
      const manifests = await readManifests(repositoryPath(`examples/${file}.yaml`));
      await deleteManifests(scenario.world.api, manifests, GONE_WITHIN_MS);
    }
  };
  const stopAgents = (): Promise<unknown> => Promise.all(scenario.agents.map((agent) => agent.stop()));

  /** Asserts that no object of ironfence is left and that other objects are unchanged. */
  async function assertGone(): Promise<void> {
    const { api } = scenario.world;
    const crds = await api.list<{ metadata: { name: string } }>(CRDS);
    const ours = crds.filter(({ metadata }) => metadata.name.endsWith(".ironfence.io"));
    assert.deepEqual(ours, []);
    assert.equal(await api.find(`${NAMESPACES}/${NAMESPACE}`), undefined);
    for (const resource of [
      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
      "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
      "/apis/rbac.authorization.k8s.io/v1/roles",
      "/apis/rbac.authorization.k8s.io/v1/rolebindings",
      "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
      "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
      "/apis/coordination.k8s.io/v1/leases",
    ]) {
      const left = await api.list<{ metadata: { name: string } }>(resource);
      const names = left.map(({ metadata }) => metadata.name).filter((name) => name.startsWith("ironfence"));
      assert.deepEqual(names, [], resource);
    }
    assert.deepEqual(await marksOf(scenario, "worker-1"), marks);
    assert.deepEqual(await healthChecks(), ["others"]);
    await deleteManifests(api, [OTHERS], GONE_WITHIN_MS);
    await deleteFolder("deploy/node-health-check");
  }

  async function healthChecks(): Promise<string[]> {
    const checks = await scenario.world.api.list<{ metadata: { name: string } }>(HEALTH_CHECKS);
    return checks.map(({ metadata }) => metadata.name).toSorted();
  }

  void test("an uninstall of the agent first leaves nothing behind, and deletes no health check", async () => {
    await stopAgents();
    await deleteFolder("deploy/kustomize");
    assert.deepEqual(await healthChecks(), ["others", "workers"]);
    await scenario.world.api.delete(HEALTH_CHECK);
    await assertGone();
  });

  void test("an uninstall of the custom resources first leaves nothing behind", async () => {
    const { api } = scenario.world;
    await deleteExamples();
    for (const { metadata } of await api.list<RemediationView>(REMEDIATIONS)) {
      await api.delete(`/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/${metadata.name}`);
    }
    await stopAgents();
    await deleteFolder("deploy/kustomize");
    await assertGone();
  });

  void test("an uninstall of the kinds first, once a fence under way is called off, leaves nothing behind", async () => {
    const { world } = scenario;
    const { api, bmc } = world;
    await api.delete(HEALTH_CHECK);
    const letPodGo = await holdFence(scenario, "worker-1");
    const remediation = {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediation",
      metadata: { name: "worker-1", namespace: NAMESPACE },
    };
    await deleteManifests(api, [remediation], GONE_WITHIN_MS);
    await deleteFolder("deploy/crds");
    const node = await api.get<NodeView>("/api/v1/nodes/worker-1");
    assert.equal(hasTaint(node, OUT_OF_SERVICE), false);
    assert.equal(await bmc.powerState(world.host("worker-1").systemUuid), "On");
    await letPodGo();
    await stopAgents();
    await deleteFolder("deploy/kustomize");
    await explain(scenario, "worker-1 is as it was", REMEDIATION_TIMEOUT_MS, async () => {
      const present = await marksOf(scenario, "worker-1");
      return present.taints.length === marks.taints.length;
    });
    await assertGone();
  });
});

/** Creates a remediation and lets it fail. */
async function failOne(scenario: Scenario): Promise<void> {
  const { api } = scenario.world;
  await applyObject(api, {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { name: "no-such-node", namespace: NAMESPACE },
    spec: { strategy: { powerOffTimeout: "1s" } },
  });
  await explain(scenario, "the remediation of a node that is not there fails", REMEDIATION_TIMEOUT_MS, async () => {
    const remediations = await api.list<RemediationView>(REMEDIATIONS);
    const failed = remediations.find(({ metadata }) => metadata.name === "no-such-node");
    // A separate write after the verdict removes the finalizer. An agent that is stopped between the two would leave
    // it.
    const isReleased = (failed?.metadata.finalizers ?? []).length === 0;
    return isReleased && conditionOf(failed, "Succeeded")?.reason === "NodeNotFound";
  });
}
