import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { explain, startScenario, targetsReady, REMEDIATION_TIMEOUT_MS } from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject, readManifests } from "../../hack/lib/apply.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";

// OKD's objects on a real API server. The agent is a separate process with the shipped RBAC of the families for OKD.

const NAMESPACE = "openshift-machine-api";
const OKD = "machine.openshift.io/v1beta1";
const MACHINES = `/apis/${OKD}/namespaces/${NAMESPACE}/machines`;
const HEALTH_CHECK = `/apis/${OKD}/namespaces/${NAMESPACE}/machinehealthchecks/workers`;
const HOST = `/apis/metal3.io/v1alpha1/namespaces/${NAMESPACE}/baremetalhosts/host-1`;
const REQUEST = "host.metal3.io/external-remediation";
const NODES = ["worker-1", "worker-2"];
const ROLE = { "machine.openshift.io/cluster-api-machine-role": "worker" };
const TYPE = { "machine.openshift.io/cluster-api-machine-type": "worker" };

interface Loose {
  metadata: { uid: string; annotations?: Record<string, string>; labels?: Record<string, string> };
  status?: { currentHealthy?: number; conditions?: { type: string; status: string }[] };
}

void describe("on a cluster with OKD's Machines", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario({ nodes: NODES.map((name) => ({ name })) });
    const { api } = scenario.world;
    for (const group of ["machine.openshift.io", "metal3.io"]) {
      await applyManifests(api, repositoryPath(`hack/foreign-crds/${group}.yaml`));
    }
    await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    for (const family of ["okd", "okd-machine", "okd-machine-health-check"]) {
      await applyManifests(api, repositoryPath(`deploy/families/${family}`));
    }
    await createMachines(api);
    for (const node of NODES) await applyFencingTarget(scenario.world, node);
    await scenario.startAgent(["--families=okd-machine-health-check,okd-machine"]);
    await targetsReady(scenario, NODES);
    const [example] = await readManifests(repositoryPath("examples/okd-machine-health-check.yaml"));
    assert.ok(example);
    // Only the waiting times are replaced.
    await applyObject(api, JSON.parse(JSON.stringify(example).replaceAll("300s", "1s")) as Manifest);
  });
  after(() => scenario?.stop());

  const machineOf = (node: string): Promise<Loose | undefined> => scenario.world.api.find<Loose>(`${MACHINES}/${node}`);
  const isReady = async (node: string): Promise<boolean> => {
    const found = await scenario.world.api.find<Loose>(`/api/v1/nodes/${node}`);
    return found?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
  };

  void test("the example has a dead node fenced, deleted and restored as it was, and its Machine stays", async () => {
    const { api } = scenario.world;
    await explain(scenario, "both Machines are healthy", 30_000, async () => {
      const check = await api.get<Loose>(HEALTH_CHECK);
      return check.status?.currentHealthy === NODES.length;
    });
    await api.mergePatch("/api/v1/nodes/worker-1", { metadata: { labels: { "example.com/rack": "r7" } } });
    const [before, node] = await Promise.all([machineOf("worker-1"), api.get<Loose>("/api/v1/nodes/worker-1")]);
    await scenario.world.host("worker-1").hang();
    // 40 % of two rounds down to none, because the example is for more workers.
    await explain(scenario, "too many are unhealthy", REMEDIATION_TIMEOUT_MS, async () => {
      const { status } = await api.get<Loose>(HEALTH_CHECK);
      const allowed = status?.conditions?.find(({ type }) => type === "RemediationAllowed");
      return allowed?.status === "False" && status?.currentHealthy === 1;
    });
    assert.equal((await machineOf("worker-1"))?.metadata.annotations?.[REQUEST], undefined);
    await api.mergePatch(HEALTH_CHECK, { spec: { maxUnhealthy: "50%" } });
    await explain(scenario, "power fencing is asked for", REMEDIATION_TIMEOUT_MS, async () => {
      return (await machineOf("worker-1"))?.metadata.annotations?.[REQUEST] !== undefined;
    });
    await explain(scenario, "the request is met", REMEDIATION_TIMEOUT_MS, async () => {
      return (await machineOf("worker-1"))?.metadata.annotations?.[REQUEST] === undefined && isReady("worker-1");
    });
    const [after, back] = await Promise.all([machineOf("worker-1"), api.get<Loose>("/api/v1/nodes/worker-1")]);
    assert.equal(after?.metadata.uid, before?.metadata.uid);
    assert.notEqual(back.metadata.uid, node.metadata.uid);
    assert.equal(back.metadata.labels?.["example.com/rack"], "r7");
    assert.equal(await scenario.world.host("worker-1").orderCount("ForceOff"), 1);
    assert.equal(await scenario.world.host("worker-1").orderCount("On"), 1);
  });

  void test("the Machine is deleted without external-baremetal, and no host is powered off", async () => {
    const { api } = scenario.world;
    const annotations = { "machine.openshift.io/remediation-strategy": null };
    await api.mergePatch(HEALTH_CHECK, { metadata: { annotations } });
    await scenario.world.host("worker-2").hang();
    await explain(scenario, "the Machine is gone", REMEDIATION_TIMEOUT_MS, async () => {
      return (await machineOf("worker-2")) === undefined;
    });
    assert.notEqual(await machineOf("worker-1"), undefined);
    assert.equal(await scenario.world.host("worker-2").orderCount("ForceOff"), 0);
  });

  void test("OKD's machine controller asks for no host to be kept off, and does all else", async () => {
    const { api, controlPlane } = scenario.world;
    const account = { name: "machine-api-controllers", namespace: NAMESPACE };
    await applyObject(api, { apiVersion: "v1", kind: "ServiceAccount", metadata: account });
    await applyObject(api, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: account.name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "ServiceAccount", ...account }],
    });
    const metadata = { namespace: NAMESPACE, name: "host-1" };
    await applyObject(api, {
      apiVersion: "metal3.io/v1alpha1",
      kind: "BareMetalHost",
      metadata,
      spec: { online: true },
    });
    const controller = await KubeApi.fromKubeconfig(
      await controlPlane.serviceAccountKubeconfig(account.namespace, account.name),
    );
    const isRefused = async (patch: unknown): Promise<boolean> => {
      try {
        await controller.mergePatch(`${HOST}?dryRun=All`, patch);
        return false;
      } catch (error) {
        if (error instanceof ApiStatusError && error.status === 403) return /ironfence/u.test(error.body);
        throw error;
      }
    };
    const annotate = (key: string, value: string | null): object => ({ metadata: { annotations: { [key]: value } } });
    const powerOff = "reboot.metal3.io/capbm-requested-power-off";
    await eventually("it is refused", 30_000, () => isRefused(annotate(powerOff, "")));
    assert.equal(await isRefused(annotate("example.com/other", "")), false);
    assert.equal(await isRefused({ spec: { online: false } }), false);
    // An existing one may stay, and may be removed.
    await api.mergePatch(HOST, annotate(powerOff, ""));
    assert.equal(await isRefused({ spec: { online: false } }), false);
    assert.equal(await isRefused(annotate(powerOff, null)), false);
  });
});

async function createMachines(api: KubeApi): Promise<void> {
  const set = { apiVersion: OKD, kind: "MachineSet", metadata: { namespace: NAMESPACE, name: "workers" } };
  await applyObject(api, { ...set, spec: { replicas: NODES.length } });
  const { metadata } = await api.get<Loose>(`/apis/${OKD}/namespaces/${NAMESPACE}/machinesets/workers`);
  const owner = { apiVersion: OKD, kind: "MachineSet", name: "workers", uid: metadata.uid, controller: true };
  for (const name of NODES) {
    const labels = { ...ROLE, ...TYPE };
    await applyObject(api, {
      apiVersion: OKD,
      kind: "Machine",
      metadata: { namespace: NAMESPACE, name, labels, ownerReferences: [owner] },
      spec: {},
    });
    await api.mergePatch(`${MACHINES}/${name}/status`, {
      status: { phase: "Running", nodeRef: { kind: "Node", name } },
    });
  }
}
