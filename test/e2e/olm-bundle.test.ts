import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { startAgent } from "../../hack/e2e/agent.ts";
import type { Agent } from "../../hack/e2e/agent.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { NAMESPACE, SERVICE_ACCOUNT, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject, readManifests } from "../../hack/lib/apply.ts";
import type { Manifest } from "../../hack/lib/apply.ts";

// This test does what OLM does with the bundle: it creates the CRDs, the ServiceAccount, and a role for each list of
// permissions (https://olm.operatorframework.io/docs/advanced-tasks/adding-operator-rbac/).

const START_TIMEOUT_MS = 120_000;
const LEAD_TIMEOUT_MS = 90_000;
const RBAC = "rbac.authorization.k8s.io";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces";

interface Permission {
  serviceAccountName: string;
  rules: object[];
}
interface ServiceVersion {
  spec: { install: { spec: { clusterPermissions: Permission[]; permissions: Permission[] } } };
}
interface LeaseView {
  spec?: { holderIdentity?: string };
}

/** The manifests of deploy/olm/administrator: deploy/kustomize without the objects that its patches delete. */
async function administratorManifests(): Promise<Manifest[]> {
  const file = await readFile(repositoryPath("deploy/olm/administrator/kustomization.yaml"), "utf8");
  const { resources, patches } = parse(file) as { resources: string[]; patches: { patch: string }[] };
  assert.deepEqual(resources, ["../../kustomize"]);
  const identity = ({ kind, metadata }: Pick<Manifest, "kind" | "metadata">): string => `${kind} ${metadata.name}`;
  const deleted = patches.map(({ patch }) => {
    const object = parse(patch) as Manifest & { $patch: string };
    assert.equal(object.$patch, "delete");
    return identity(object);
  });
  const manifests = await readManifests(repositoryPath("deploy/kustomize"));
  for (const one of deleted)
    assert.ok(
      manifests.some((manifest) => identity(manifest) === one),
      one,
    );
  return manifests.filter((manifest) => !deleted.includes(identity(manifest)));
}

void describe("the bundle of OLM", () => {
  let controlPlane: ControlPlane;
  let agent: Agent | undefined;
  before(async () => {
    const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
    const options = { progress, nodeMonitorGracePeriodMs: 50_000 };
    controlPlane = await startControlPlane(options, AbortSignal.timeout(START_TIMEOUT_MS));
    await applyManifests(controlPlane.api, repositoryPath("deploy/node-health-check"));
    await installAsOlm();
  });
  after(async () => {
    await agent?.stop();
    await controlPlane?.stop();
  });

  async function installAsOlm(): Promise<void> {
    const { api } = controlPlane;
    const file = repositoryPath("deploy/olm/manifests/ironfence.clusterserviceversion.yaml");
    const { spec } = parse(await readFile(file, "utf8")) as ServiceVersion;
    await applyManifests(api, repositoryPath("deploy/crds"));
    await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    const own = { name: SERVICE_ACCOUNT, namespace: NAMESPACE };
    await applyObject(api, { apiVersion: "v1", kind: "ServiceAccount", metadata: own });
    const { clusterPermissions, permissions } = spec.install.spec;
    for (const [scope, lists] of Object.entries({ Cluster: clusterPermissions, "": permissions })) {
      for (const { serviceAccountName, rules } of lists) {
        assert.equal(serviceAccountName, SERVICE_ACCOUNT);
        const metadata = { name: "olm-made-this-name", ...(scope === "" && { namespace: NAMESPACE }) };
        const kind = `${scope}Role`;
        await applyObject(api, { apiVersion: `${RBAC}/v1`, kind, metadata, rules });
        await applyObject(api, {
          apiVersion: `${RBAC}/v1`,
          kind: `${kind}Binding`,
          metadata,
          roleRef: { apiGroup: RBAC, kind, name: metadata.name },
          subjects: [{ kind: "ServiceAccount", ...own }],
        });
      }
    }
  }

  const may = async (verb: string, group: string, resource: string): Promise<boolean> => {
    const review = (await controlPlane.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: {
        user: `system:serviceaccount:${NAMESPACE}:${SERVICE_ACCOUNT}`,
        resourceAttributes: { verb, group, resource, namespace: NAMESPACE },
      },
    })) as { status: { allowed: boolean } };
    return review.status.allowed;
  };
  const holderOf = async (namespace: string, name: string): Promise<string | undefined> =>
    (await controlPlane.api.find<LeaseView>(`${LEASES}/${namespace}/leases/${name}`))?.spec?.holderIdentity;

  void test("the bundle of OLM alone gives the agent no permission to fence, and no leader", async () => {
    for (const [verb, group, resource] of [
      ["patch", "", "nodes"],
      ["delete", "", "pods"],
      ["patch", "ironfence.io", "baremetalremediations/status"],
      ["create", "ironfence.io", "baremetalremediations"],
    ] as const) {
      assert.equal(await may(verb, group, resource), false, `${verb} ${resource}`);
    }
    assert.equal(await may("list", "", "nodes"), true);
    const started = await startAgent({ controlPlane }, "agent-1");
    agent = started;
    await eventually("the agent reports that it may not use its Lease", LEAD_TIMEOUT_MS, () =>
      Promise.resolve(/leases.*ironfence.*forbidden/i.test(started.log())),
    );
    assert.equal(await holderOf(NAMESPACE, "ironfence"), undefined);
  });

  void test("the bundle of OLM with what the administrator applies makes the agent lead, as the one installation", async () => {
    for (const manifest of await administratorManifests()) await applyObject(controlPlane.api, manifest);
    assert.equal(await may("patch", "ironfence.io", "baremetalremediations/status"), true);
    await eventually("the agent leads", LEAD_TIMEOUT_MS, async () => {
      const [own, shared] = [
        await holderOf(NAMESPACE, "ironfence"),
        await holderOf("kube-system", "ironfence-remediator"),
      ];
      return own?.startsWith("agent-1") === true && shared === `${NAMESPACE}/ironfence`;
    });
  });
});
