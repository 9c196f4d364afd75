import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { registerNode } from "../../hack/control-plane/fake-node.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests } from "../../hack/lib/apply.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { EXIT_FAILURE, EXIT_REFUSED } from "../../src/cli/errors/failures.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { cli } from "../integration/cli-fixture.ts";

// Runs the commands of a user on a real API server with only the shipped permissions.

const NAMESPACE = "ironfence-system";
const OPERATOR = "an-operator";
const RBAC = "rbac.authorization.k8s.io";

void describe("the shipped operator's permissions", () => {
  let controlPlane: ControlPlane;
  let rack: Rack;
  let bmc: RedfishMock;
  let kubeconfig: string;

  before(async () => {
    const deps = { clock: systemClock, random: systemRandom };
    controlPlane = await startControlPlane(
      { progress: () => undefined, nodeMonitorGracePeriodMs: 50_000 },
      AbortSignal.timeout(120_000),
    );
    const host = { name: "worker-1", powerOffDelayMs: 100, powerOnDelayMs: 100 };
    rack = createRack({ ...deps, hosts: [host] });
    bmc = await startRedfishMock({ ...deps, rack });
    const { api } = controlPlane;
    const { systemUUID } = rack.host("worker-1").spec;
    await registerNode(api, { name: "worker-1", systemUUID });
    await applyManifests(api, repositoryPath("deploy/node-health-check"));
    await applyManifests(api, repositoryPath("deploy/kustomize"));
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    await api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "bmc", annotations: { "ironfence.io/allowed-addresses": "http://127.0.0.1:*" } },
      data: { username: base64("admin"), password: base64("password") },
    });
    await api.create(`/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "FencingTarget",
      metadata: { name: "worker-1" },
      spec: {
        nodeName: "worker-1",
        identity: { systemUUID },
        devices: [{ address: bmc.url, allowPlainHTTP: true, credentialsSecretRef: { name: "bmc" } }],
      },
    });
    const template = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate" };
    const reference = { namespace: NAMESPACE, name: "reboot" };
    await api.create(`/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediationtemplates`, {
      ...template,
      metadata: reference,
      spec: { template: { spec: {} } },
    });
    await api.create("/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks", {
      apiVersion: "remediation.medik8s.io/v1alpha1",
      kind: "NodeHealthCheck",
      metadata: { name: "workers", annotations: { [SKIP_DURATION_IF_OFF]: "true" } },
      spec: {
        selector: { matchLabels: { "kubernetes.io/os": "linux" } },
        remediationTemplate: { ...template, ...reference },
      },
    });
    const metadata = { name: OPERATOR };
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata };
    await api.create(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, account);
    const bind = (path: string, kind: string, role: string) =>
      api.create(`/apis/${RBAC}/v1/${path}`, {
        apiVersion: `${RBAC}/v1`,
        kind,
        metadata,
        roleRef: { apiGroup: RBAC, kind: role, name: "ironfence-operator" },
        subjects: [{ kind: "ServiceAccount", name: OPERATOR, namespace: NAMESPACE }],
      });
    await bind("clusterrolebindings", "ClusterRoleBinding", "ClusterRole");
    await bind(`namespaces/${NAMESPACE}/rolebindings`, "RoleBinding", "Role");
    kubeconfig = await controlPlane.serviceAccountKubeconfig(NAMESPACE, OPERATOR);
  });

  after(async () => {
    await bmc?.close();
    rack?.stop();
    await controlPlane?.stop();
  });

  async function ironfence(command: string): Promise<{ out: string; err: string; code: number }> {
    return cli([...command.split(" "), "--kubeconfig", kubeconfig]);
  }

  void test("the shipped operator's permissions are enough for every command of a person", async () => {
    const expected: readonly [command: string, code: number][] = [
      ["status", 0],
      ["explain node worker-1", 0],
      ["explain nhc workers", 0],
      ["pause --reason rewiring", 0],
      ["fence --node worker-1 --dry-run", EXIT_REFUSED],
      ["resume", 0],
      ["probe --target worker-1", 0],
      ["power status --target worker-1", 0],
      ["power cycle --target worker-1 --yes", 0],
      ["fence --node worker-1 --dry-run", 0],
      // No agent runs, so the created remediation waits.
      ["fence --node worker-1 --yes --timeout 1s", EXIT_FAILURE],
      ["power off --target worker-1 --yes", 0],
    ];
    for (const [command, code] of expected) {
      const result = await ironfence(command);
      assert.equal(result.code, code, `${command}: ${result.out}${result.err}`);
      assert.doesNotMatch(result.err, /forbidden/i, command);
    }
    assert.match((await ironfence("fence --node worker-1 --yes")).err, /already remediates it/);
  });

  void test("the shipped operator's permissions do not reach targets and Secrets of other namespaces", async () => {
    const { err, code } = await ironfence("power status --target worker-1 --namespace kube-system");
    assert.equal(code, EXIT_FAILURE);
    assert.match(err, /forbidden/i);
  });
});
