import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { eventually } from "../../hack/e2e/eventually.ts";
import { DEFAULT_WORLD, NAMESPACE, SERVICE_ACCOUNT, repositoryPath, startWorld } from "../../hack/e2e/world.ts";
import type { World } from "../../hack/e2e/world.ts";
import { deployDatabase } from "../../hack/e2e/workload.ts";
import { applyManifests, applyObject, readManifests } from "../../hack/lib/apply.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";

// Our manifests, RBAC and admission policies on a real API server. Also checks that a fake host fails like a real one.

void describe("the shipped manifests on a real control plane", () => {
  let world: World;
  before(async () => {
    const nodes = [{ name: "worker-1" }, { name: "worker-2" }];
    world = await startWorld({ ...DEFAULT_WORLD, nodes }, AbortSignal.timeout(120_000));
  });
  after(() => world?.stop());

  void test("a silent kubelet's pod stays until the out-of-service taint frees it and its volume", async () => {
    const { api } = world;
    const database = await deployDatabase(api, "harness");
    const first = await database.runningNode();
    const uid = (await database.pod())?.metadata.uid;
    await world.host(first).hang();
    await eventually("Ready=Unknown", 30_000, async () => (await readyStatus(api, first)) === "Unknown");
    assert.equal((await database.pod())?.metadata.uid, uid, "nothing moves by itself");

    const taints = [{ key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" }];
    await api.mergePatch(`/api/v1/nodes/${first}`, { spec: { taints } });
    const second = await eventually("the pod runs elsewhere", 60_000, () => database.successorNode(uid));
    assert.notEqual(second, first);
    assert.deepEqual(await database.attachedNodes(), [second]);

    await api.mergePatch(`/api/v1/nodes/${first}`, { spec: { taints: null } });
    await world.host(first).recover();
    await eventually("Ready=True", 30_000, async () => (await readyStatus(api, first)) === "True");
    await database.remove();
  });

  void test("power decides about the kubelet: Off silences it, On boots it into a new boot id", async () => {
    const { api, bmc } = world;
    const host = world.host("worker-2");
    const bootId = await bootIdOf(api, "worker-2");
    await bmc.order(host.systemUuid, "ForceOff");
    await eventually("Off", 10_000, async () => (await bmc.powerState(host.systemUuid)) === "Off");
    await eventually("Ready=Unknown", 30_000, async () => (await readyStatus(api, "worker-2")) === "Unknown");
    await bmc.order(host.systemUuid, "On");
    await eventually("Ready=True", 30_000, async () => (await readyStatus(api, "worker-2")) === "True");
    assert.notEqual(await bootIdOf(api, "worker-2"), bootId);
    assert.equal(await host.orderCount("ForceOff"), 1);
  });

  void test("the agent's namespace admits the pods of its Deployment and refuses pods that ask for more", async () => {
    const { api } = world;
    const { metadata } = await api.get<{ metadata: { labels: Record<string, string> } }>(
      `/api/v1/namespaces/${NAMESPACE}`,
    );
    for (const mode of ["enforce", "audit", "warn"])
      assert.equal(metadata.labels[`pod-security.kubernetes.io/${mode}`], "restricted");
    const { spec } = await api.get<{ spec: { template: PodTemplate } }>(
      `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ironfence`,
    );
    const create = (change: (pod: PodSpec, container: Container) => object): Promise<unknown> => {
      const pod = structuredClone(spec.template.spec);
      const [container] = pod.containers;
      Object.assign(pod, change(pod, container));
      const { labels } = spec.template.metadata;
      const made = { apiVersion: "v1", kind: "Pod", metadata: { name: "tried", labels }, spec: pod };
      return api.create(`/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`, made);
    };
    await create(() => ({}));
    for (const [what, change] of Object.entries(BEYOND_RESTRICTED)) {
      await assert.rejects(
        create(change),
        (error) => error instanceof ApiStatusError && error.status === 403 && /violates PodSecurity/.test(error.body),
        what,
      );
    }
  });

  void test("every example and every family's manifests are accepted as they are printed, without an unknown field", async () => {
    const { api } = world;
    await applyManifests(api, repositoryPath("hack/foreign-crds"));
    const files = (parent: string): string[] => readdirSync(repositoryPath(parent)).map((name) => `${parent}/${name}`);
    for (const path of [...files("examples"), ...files("deploy/families")]) {
      for (const manifest of await readManifests(repositoryPath(path))) {
        const { namespace } = manifest.metadata;
        if (namespace !== undefined) {
          await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
        }
        // A strategy that erases disks is refused until a user has set its method.
        const isToBeSet = JSON.stringify(manifest).includes('"via":"CHANGE-ME"');
        if (isToBeSet) {
          await assert.rejects(applyObject(api, manifest, { dryRun: true }), /strategy\.via: Unsupported value/, path);
          continue;
        }
        const stored = await applyObject(api, manifest, { dryRun: true });
        assert.equal(stored["kind"], manifest.kind, path);
      }
    }
  });

  void test("the shipped manifests, applied a second time as kubectl does without --force-conflicts, cause no conflict", async () => {
    const { api } = world;
    const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/ironfence-remediators";
    await eventually("the cluster has filled in the aggregated role", 30_000, async () => {
      const { rules } = await api.get<{ rules?: unknown[] | null }>(path);
      return (rules ?? []).length > 0;
    });
    const again = ["node-health-check", "kustomize"].map((folder) => readManifests(repositoryPath(`deploy/${folder}`)));
    for (const manifest of (await Promise.all(again)).flat()) {
      // The harness has scaled the Deployment to 0 and owns that field.
      if (manifest.kind === "Deployment") Object.assign(manifest["spec"] as object, { replicas: 0 });
      await applyObject(api, manifest, { force: false });
    }
    const { rules } = await api.get<{ rules?: unknown[] | null }>(path);
    assert.ok((rules ?? []).length > 0, "the role keeps what the cluster has filled in");
  });

  void test("a health check cannot be deleted while nodes are being remediated, and can be afterwards", async () => {
    const { api } = world;
    const path = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks/in-use";
    const selector = { matchLabels: { role: "none" } };
    const remediationTemplate = {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediationTemplate",
      name: "reboot",
      namespace: NAMESPACE,
    };
    await applyObject(api, {
      apiVersion: "remediation.medik8s.io/v1alpha1",
      kind: "NodeHealthCheck",
      metadata: { name: "in-use" },
      spec: { selector, remediationTemplate },
    });
    await api.mergePatch(`${path}/status`, {
      status: { inFlightRemediations: { "worker-7": "2026-01-01T00:00:00Z" } },
    });
    await eventually("the policy is in force", 30_000, async () => {
      try {
        // A new policy takes effect with a delay. A dry run checks that without deleting anything.
        await api.send("DELETE", `${path}?dryRun=All`);
        return false;
      } catch (error) {
        return error instanceof ApiStatusError && error.status === 403;
      }
    });
    await assert.rejects(
      api.send("DELETE", path),
      (error) => error instanceof ApiStatusError && error.body.includes("nodes are being remediated (worker-7)"),
    );
    await api.mergePatch(`${path}/status`, { status: { inFlightRemediations: null } });
    await api.send("DELETE", path);
  });

  void test("the agent's ServiceAccount may do what the agent does, and nothing more", async () => {
    const kubeconfig = await world.controlPlane.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT);
    const agent = await KubeApi.fromKubeconfig(kubeconfig);
    try {
      // Aggregated rules follow the roles with a delay.
      await eventually("aggregation", 30_000, () => may(agent, "create ironfence.io/baremetalremediations in team-a"));
      for (const action of ALLOWED) assert.equal(await may(agent, action), true, `may: ${action}`);
      for (const action of REFUSED) assert.equal(await may(agent, action), false, `may not: ${action}`);
    } finally {
      await agent.close();
    }
  });

  void test("a vendor's labelled ClusterRole grants the detector the permissions on the vendor's kinds", async () => {
    const agent = await KubeApi.fromKubeconfig(
      await world.controlPlane.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT),
    );
    try {
      const action = "create vendor.example/widgetremediations in vendor";
      assert.equal(await may(agent, action), false);
      await applyObject(world.api, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        metadata: {
          name: "vendor-remediation",
          labels: { "rbac.ext-remediation/aggregate-to-ext-remediation": "true" },
        },
        rules: [{ apiGroups: ["vendor.example"], resources: ["widgetremediations"], verbs: ["*"] }],
      });
      await eventually("aggregation", 30_000, () => may(agent, action));
    } finally {
      await agent.close();
    }
  });
});

interface Container {
  securityContext: Record<string, unknown>;
}
interface PodSpec {
  containers: [Container];
  securityContext: Record<string, unknown>;
}
interface PodTemplate {
  metadata: { labels: Record<string, string> };
  spec: PodSpec;
}

/** Changes of the Deployment's pod that the restricted Pod Security Standard forbids. */
const BEYOND_RESTRICTED: Readonly<Record<string, (pod: PodSpec, container: Container) => object>> = {
  "the network of its node": () => ({ hostNetwork: true }),
  "the processes of its node": () => ({ hostPID: true }),
  "a folder of its node": () => ({ volumes: [{ name: "v", hostPath: { path: "/" } }] }),
  "to run as root": (pod) => ({ securityContext: { ...pod.securityContext, runAsUser: 0 } }),
  "to be free of seccomp": (pod) => ({
    securityContext: { ...pod.securityContext, seccompProfile: { type: "Unconfined" } },
  }),
  "to be privileged": (_, container) => withContext(container, { privileged: true, allowPrivilegeEscalation: true }),
  "to gain permissions": (_, container) => withContext(container, { allowPrivilegeEscalation: true }),
  "a capability": (_, container) => withContext(container, { capabilities: { drop: ["ALL"], add: ["SYS_ADMIN"] } }),
};

function withContext(container: Container, change: object): { containers: [Container] } {
  return { containers: [{ ...container, securityContext: { ...container.securityContext, ...change } }] };
}

/** `verb [group/]resource[:subresource][=name] [in namespace]` */
const ALLOWED = [
  "watch nodes",
  "patch nodes",
  "delete nodes",
  "list pods",
  "watch pods",
  "delete pods in team-a",
  "patch pods:status in team-a",
  "list storage.k8s.io/volumeattachments",
  "get persistentvolumes",
  "create events.k8s.io/events in default",
  "patch events.k8s.io/events in team-a",
  "watch remediation.medik8s.io/nodehealthchecks",
  "patch remediation.medik8s.io/nodehealthchecks:status",
  // For the annotation that stores attempts.
  "patch remediation.medik8s.io/nodehealthchecks",
  "watch ironfence.io/baremetalremediations",
  "patch ironfence.io/baremetalremediations:status in team-a",
  "delete ironfence.io/baremetalremediations in team-a",
  "get ironfence.io/baremetalremediationtemplates in team-a",
  "watch ironfence.io/fencingtargets in ironfence-system",
  "patch ironfence.io/fencingtargets:status in ironfence-system",
  "watch secrets in ironfence-system",
  "watch configmaps=ironfence-pause in ironfence-system",
  "create coordination.k8s.io/leases in ironfence-system",
  "patch coordination.k8s.io/leases=ironfence in ironfence-system",
  // To check whether a health check still lists the node of an old request.
  "get remediation.medik8s.io/nodehealthchecks",
  "get coordination.k8s.io/leases in kube-node-lease",
  "watch coordination.k8s.io/leases in kube-node-lease",
  "create coordination.k8s.io/leases in medik8s-leases",
  "delete coordination.k8s.io/leases in medik8s-leases",
];

const REFUSED = [
  "create pods in team-a",
  "patch pods in team-a",
  "create pods:exec in team-a",
  "create nodes",
  "get secrets in team-a",
  "get secrets in kube-system",
  "patch secrets in ironfence-system",
  "get configmaps in team-a",
  "patch configmaps=ironfence-pause in ironfence-system",
  "get configmaps in ironfence-system",
  "patch coordination.k8s.io/leases in ironfence-system",
  // These come with deploy/families/okd.
  "get machine.openshift.io/machines in openshift-machine-api",
  "list policy/poddisruptionbudgets in openshift-etcd",
  "patch coordination.k8s.io/leases in kube-node-lease",
  "get coordination.k8s.io/leases in team-a",
  "list ironfence.io/fencingtargets in team-a",
  "patch ironfence.io/fencingtargets in ironfence-system",
  "delete remediation.medik8s.io/nodehealthchecks",
  "create remediation.medik8s.io/nodehealthchecks",
  "create rbac.authorization.k8s.io/clusterroles",
  "escalate rbac.authorization.k8s.io/clusterroles",
  "create rbac.authorization.k8s.io/clusterrolebindings",
  "impersonate users",
  "get nodes:proxy",
  "delete storage.k8s.io/volumeattachments",
  "delete persistentvolumes",
];

async function may(api: KubeApi, action: string): Promise<boolean> {
  const match = /^(\w+) (?:([\w.-]+)\/)?(\w+)(?::(\w+))?(?:=([\w-]+))?(?: in ([\w-]+))?$/.exec(action);
  assert.ok(match, action);
  const [, verb, group, resource, subresource, name, namespace] = match;
  const review = (await api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: { verb, group, resource, subresource, name, namespace } },
  })) as { status: { allowed: boolean } };
  return review.status.allowed;
}

async function readyStatus(api: KubeApi, node: string): Promise<string | undefined> {
  const { status } = await api.get<{ status: { conditions?: { type: string; status: string }[] } }>(
    `/api/v1/nodes/${node}`,
  );
  return status.conditions?.find((condition) => condition.type === "Ready")?.status;
}

async function bootIdOf(api: KubeApi, node: string): Promise<string> {
  return (await api.get<{ status: { nodeInfo: { bootID: string } } }>(`/api/v1/nodes/${node}`)).status.nodeInfo.bootID;
}
