import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import type { ChartTools } from "../../hack/e2e/chart-tools.ts";
import { prepareChartTools } from "../../hack/e2e/chart-tools.ts";
import { conditionOf } from "../../hack/e2e/chronicle.ts";
import type { RemediationView } from "../../hack/e2e/chronicle.ts";
import { tryDelete, untilRefused } from "../../hack/e2e/removal.ts";
import type { NodeMarks, Scenario } from "../../hack/e2e/scenario.ts";
import {
  configure,
  explain,
  holdFence,
  marksOf,
  startScenario,
  targetsReady,
  REMEDIATION_TIMEOUT_MS,
} from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { deleteManifests } from "../../hack/lib/apply.ts";
import { freeLease } from "../../hack/lib/free-leases.ts";
import { runHelm } from "../lib/chart/helm.ts";

// `helm uninstall` and the deletion of the namespace, in both orders, at rest and during a fence.

const CHART = repositoryPath("deploy/chart");
const GONE_WITHIN_MS = 60_000;
const NAMESPACE_PATH = `/api/v1/namespaces/${NAMESPACE}`;
const NAMESPACE_MANIFEST = { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } };
const REMEDIATIONS = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`;
/** Cluster-wide objects of a release, except CRDs, which stay. */
const CLUSTER_WIDE = [
  "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
  "/apis/rbac.authorization.k8s.io/v1/roles",
  "/apis/rbac.authorization.k8s.io/v1/rolebindings",
  "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
  "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
  "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
];
const IN_THE_MIDDLE = /BareMetalRemediation ironfence-system\/worker-\d \(Releasing\), and its host may be OFF/;

void describe("a release of the chart and its namespace", () => {
  let scenario: Scenario;
  let tools: ChartTools;

  before(async () => {
    const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
    tools = await prepareChartTools(progress, new AbortController().signal);
    scenario = await startScenario({ install: false });
  });
  after(() => scenario?.stop());
  afterEach(stopAgents);

  async function stopAgents(): Promise<void> {
    await Promise.all((scenario?.agents ?? []).map((agent) => agent.stop()));
  }

  const helm = (...args: string[]): Promise<string> =>
    runHelm(tools.helm, scenario.world.controlPlane.kubeconfig, args);
  const deleteNamespace = (): Promise<void> =>
    deleteManifests(scenario.world.api, [NAMESPACE_MANIFEST], GONE_WITHIN_MS);

  async function install(): Promise<void> {
    const { api } = scenario.world;
    await helm("install", "ironfence", CHART, "--create-namespace", "--wait");
    await api.create(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`, freeLease(NAMESPACE));
    await configure(scenario);
    await scenario.startAgent();
    await targetsReady(scenario);
  }

  async function namesLeft(): Promise<string[]> {
    const lists = CLUSTER_WIDE.map((path) => scenario.world.api.list<{ metadata: { name: string } }>(path));
    const names = (await Promise.all(lists)).flat().map(({ metadata }) => metadata.name);
    return names.filter((name) => name.startsWith("ironfence"));
  }

  /** Deletes what is left after the namespace, and with it Helm's record of the release, was deleted first. */
  async function uninstallWithoutRecord(): Promise<void> {
    await assert.rejects(helm("uninstall", "ironfence"), /not found/);
    assert.notEqual((await namesLeft()).length, 0);
    await helm("install", "ironfence", CHART, "--create-namespace", "--take-ownership");
    await helm("uninstall", "ironfence", "--wait");
    await deleteNamespace();
  }

  async function assertGone(): Promise<void> {
    assert.deepEqual(await namesLeft(), []);
    assert.equal(await scenario.world.api.find(NAMESPACE_PATH), undefined);
  }

  void test("a release that is uninstalled at rest leaves only kinds, and then its namespace goes", async () => {
    await install();
    await stopAgents();
    await helm("uninstall", "ironfence", "--wait");
    await deleteNamespace();
    await assertGone();
  });

  void test("a release whose namespace is deleted at rest is removed by installing it again", async () => {
    await install();
    await stopAgents();
    await deleteNamespace();
    await uninstallWithoutRecord();
    await assertGone();
  });

  /** Lets an agent fence a node until it has the taint, and waits until the policies take effect. */
  async function begin(victim: string): Promise<{ marks: NodeMarks; letPodGo: () => Promise<void> }> {
    await install();
    const marks = await marksOf(scenario, victim);
    const letPodGo = await holdFence(scenario, victim);
    await untilRefused(scenario.world.api, "Releasing");
    return { marks, letPodGo };
  }

  /**
   * Waits until the fence has succeeded: the host is on, its node has no mark, and no finalizer keeps the remediation.
   */
  async function end(victim: string, marks: NodeMarks): Promise<void> {
    const { api, bmc } = scenario.world;
    await explain(scenario, `the fence of ${victim} is over`, REMEDIATION_TIMEOUT_MS, async () => {
      const found = await api.find<RemediationView>(`${REMEDIATIONS}/${victim}`);
      return found === undefined || conditionOf(found, "Succeeded")?.status === "True";
    });
    await explain(scenario, `${victim} is as before`, REMEDIATION_TIMEOUT_MS, async () => {
      return JSON.stringify(await marksOf(scenario, victim)) === JSON.stringify(marks);
    });
    await tryDelete(api, `${REMEDIATIONS}/${victim}`);
    assert.equal(await bmc.powerState(scenario.world.host(victim).systemUuid), "On");
    await explain(scenario, "the policies allow the deletion", REMEDIATION_TIMEOUT_MS, async () => {
      return (await tryDelete(api, `${NAMESPACE_PATH}?dryRun=All`)) === undefined;
    });
    await stopAgents();
  }

  void test("a release that is uninstalled in the middle of a fence stays until the fence is over, and so does its namespace", async () => {
    const { marks, letPodGo } = await begin("worker-1");
    await assert.rejects(helm("uninstall", "ironfence"), IN_THE_MIDDLE);
    assert.match((await tryDelete(scenario.world.api, NAMESPACE_PATH)) ?? "", IN_THE_MIDDLE);
    await letPodGo();
    await end("worker-1", marks);
    await helm("uninstall", "ironfence", "--wait");
    await deleteNamespace();
    await assertGone();
  });

  void test("a namespace that is deleted in the middle of a fence stays until the fence is over, and so does the release", async () => {
    const { marks, letPodGo } = await begin("worker-2");
    assert.match((await tryDelete(scenario.world.api, NAMESPACE_PATH)) ?? "", IN_THE_MIDDLE);
    await assert.rejects(helm("uninstall", "ironfence"), IN_THE_MIDDLE);
    await letPodGo();
    await end("worker-2", marks);
    await deleteNamespace();
    await uninstallWithoutRecord();
    await assertGone();
  });
});
