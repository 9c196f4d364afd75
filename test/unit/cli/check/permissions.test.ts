import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agentPermissions, installerPermissions } from "../../../../src/cli/check/read/permissions.ts";
import { permissionText } from "../../../../src/kube/reviews/permission-review.ts";

const BASE = {
  families: ["node-health-check"],
  namespace: "ironfence-system",
  nodeLeaseNamespace: "medik8s-leases",
  reprovisions: false,
} as const;

describe("the permissions that are reviewed", () => {
  it("the permissions that are reviewed are those of the base alone for an agent without further families", () => {
    const found = agentPermissions(BASE);
    assert.deepEqual([...new Set(found.map(({ folder }) => folder))], ["deploy/kustomize"]);
    const texts = found.map(permissionText);
    for (const needed of [
      "patch nodes",
      "patch pods/status",
      "delete baremetalremediations.ironfence.io",
      "get secrets in namespace ironfence-system",
      "patch leases.coordination.k8s.io named ironfence in namespace ironfence-system",
      "list leases.coordination.k8s.io in namespace kube-node-lease",
    ]) {
      assert.ok(texts.includes(needed), needed);
    }
    assert.ok(!texts.some((text) => text.startsWith("update")), "the agent patches");
  });

  it("the permissions that are reviewed include the folder of each family, and of strategies that reprovision", () => {
    const scope = { ...BASE, families: ["okd-machine", "bare-metal-host"], reprovisions: true } as const;
    const folders = new Set(agentPermissions(scope).map(({ folder }) => folder));
    const families = ["okd", "okd-machine", "bare-metal-host", "reprovision"].map((name) => `deploy/families/${name}`);
    assert.deepEqual([...folders].sort(), ["deploy/kustomize", ...families].sort());
  });

  it("the permissions that are reviewed are asked for in the namespaces of this installation", () => {
    const found = agentPermissions({ ...BASE, namespace: "fencing", nodeLeaseNamespace: "leases" });
    const namespaces = new Set(found.map(({ namespace }) => namespace));
    assert.deepEqual(namespaces, new Set([undefined, "fencing", "kube-node-lease", "kube-system", "leases"]));
  });

  it("the permissions that are reviewed of an installer cover every kind of the manifests, and granting roles", () => {
    const texts = installerPermissions("ironfence-system").map(permissionText);
    for (const needed of [
      "create customresourcedefinitions.apiextensions.k8s.io",
      "patch validatingadmissionpolicies.admissionregistration.k8s.io",
      "create networkpolicies.networking.k8s.io in namespace ironfence-system",
      "escalate clusterroles.rbac.authorization.k8s.io",
      "bind rolebindings.rbac.authorization.k8s.io in namespace medik8s-leases",
    ]) {
      assert.ok(texts.includes(needed), needed);
    }
  });
});
