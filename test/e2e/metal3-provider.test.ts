import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject } from "../../hack/lib/apply.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";

// The Metal3 provider cannot disable its remediation controller. Our admission policy does that, here on a real API
// server.

const NAMESPACE = "metal3";
const INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta2";
const REQUEST = `/apis/${INFRASTRUCTURE}/namespaces/${NAMESPACE}/metal3remediations/m`;
const MACHINE = `/apis/cluster.x-k8s.io/v1beta2/namespaces/${NAMESPACE}/machines/m`;
const HOST = `/apis/metal3.io/v1alpha1/namespaces/${NAMESPACE}/baremetalhosts/h`;
const POWER_OFF = { metadata: { annotations: { "reboot.metal3.io/metal3-remediation-uid": '{"mode":"hard"}' } } };
const CONDITION = {
  type: "OwnerRemediated",
  status: "False",
  reason: "WaitingForRemediation",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

void describe("the service account of the Metal3 provider, with deploy/families/metal3-remediation,", () => {
  let controlPlane: ControlPlane;
  let provider: KubeApi;

  before(async () => {
    controlPlane = await startControlPlane(
      { progress: () => undefined, nodeMonitorGracePeriodMs: 50_000 },
      AbortSignal.timeout(120_000),
    );
    const { api } = controlPlane;
    for (const group of ["cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "metal3.io"]) {
      await applyManifests(api, repositoryPath(`hack/foreign-crds/${group}.yaml`));
    }
    for (const name of ["capm3-system", NAMESPACE, "ironfence-system"]) {
      await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    }
    await applyManifests(api, repositoryPath("deploy/families/metal3-remediation"));
    const account = { name: "capm3-manager", namespace: "capm3-system" };
    await applyObject(api, { apiVersion: "v1", kind: "ServiceAccount", metadata: account });
    await applyObject(api, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "capm3" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "ServiceAccount", ...account }],
    });
    const metadata = { namespace: NAMESPACE, name: "m" };
    await applyObject(api, {
      apiVersion: INFRASTRUCTURE,
      kind: "Metal3Remediation",
      metadata,
      spec: { strategy: { type: "Reboot", retryLimit: 1, timeoutSeconds: 300 } },
    });
    await applyObject(api, {
      apiVersion: "cluster.x-k8s.io/v1beta2",
      kind: "Machine",
      metadata,
      spec: {
        clusterName: "c",
        bootstrap: { dataSecretName: "b" },
        infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "Metal3Machine", name: "m" },
      },
    });
    await applyObject(api, {
      apiVersion: "metal3.io/v1alpha1",
      kind: "BareMetalHost",
      metadata: { namespace: NAMESPACE, name: "h", annotations: { "example.com/note": "x" } },
      spec: { online: true },
    });
    provider = await KubeApi.fromKubeconfig(
      await controlPlane.serviceAccountKubeconfig("capm3-system", "capm3-manager"),
    );
    // A new policy takes effect with a delay.
    await eventually(
      "the policies are in force",
      30_000,
      async () => (await isRefused(HOST, POWER_OFF)) && isRefused(REQUEST, { metadata: { labels: { a: "b" } } }),
    );
  });

  after(() => controlPlane?.stop());

  async function isRefused(path: string, patch: unknown): Promise<boolean> {
    try {
      await provider.mergePatch(`${path}?dryRun=All`, patch);
      return false;
    } catch (error) {
      if (error instanceof ApiStatusError && error.status === 403) return /ironfence/u.test(error.body);
      throw error;
    }
  }

  void test("the service account of the Metal3 provider, with deploy/families/metal3-remediation, is the only one whose writes are refused: the server accepts the examples", async () => {
    const { api } = controlPlane;
    await applyManifests(api, repositoryPath("deploy/crds"));
    await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: "tenant" } });
    for (const file of ["reprovision", "machine-health-check"]) {
      const applied = await applyManifests(api, repositoryPath(`examples/${file}.yaml`));
      assert.ok(applied.length > 1, file);
    }
  });

  void test("the service account of the Metal3 provider, with deploy/families/metal3-remediation, writes to no Metal3Remediation", async () => {
    assert.ok(
      await isRefused(REQUEST, { metadata: { finalizers: ["metal3remediation.infrastructure.cluster.x-k8s.io"] } }),
    );
    assert.ok(await isRefused(`${REQUEST}/status`, { status: { phase: "Running" } }));
  });

  void test("the service account of the Metal3 provider, with deploy/families/metal3-remediation, cannot request a power-off of a host, and cannot mark one as unhealthy", async () => {
    assert.ok(await isRefused(HOST, POWER_OFF));
    assert.ok(
      await isRefused(HOST, { metadata: { annotations: { "capm3.metal3.io/unhealthy": "capm3/UnhealthyNode" } } }),
    );
  });

  void test("the service account of the Metal3 provider, with deploy/families/metal3-remediation, hands no Machine over to its owner", async () => {
    assert.ok(await isRefused(`${MACHINE}/status`, { status: { conditions: [CONDITION] } }));
  });

  void test("the service account of the Metal3 provider, with deploy/families/metal3-remediation, does everything else, with hosts that we hold off too", async () => {
    await controlPlane.api.mergePatch(HOST, POWER_OFF);
    assert.equal(
      await isRefused(HOST, { spec: { consumerRef: { kind: "Metal3Machine", name: "m", namespace: NAMESPACE } } }),
      false,
    );
    assert.equal(
      await isRefused(HOST, { metadata: { annotations: { "reboot.metal3.io/metal3-remediation-uid": null } } }),
      false,
    );
    assert.equal(await isRefused(MACHINE, { metadata: { labels: { a: "b" } } }), false);
  });
});
