import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { registerNode } from "../../hack/control-plane/fake-node.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { install, NAMESPACE, SERVICE_ACCOUNT } from "../../hack/e2e/world.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";

// What an attacker with the agent's token can do, and what the shipped RBAC rules and admission policies refuse
// (docs/explanation/threat-model.md).

const NODE = "/api/v1/nodes/n1";
const UNTOUCHED = "/api/v1/nodes/n2";
const POD = "/api/v1/namespaces/default/pods/p";
const DRY = "?dryRun=All";
const REMEDIATIONS = "/apis/ironfence.io/v1alpha1/namespaces/default/baremetalremediations";
const POLICY_TIMEOUT_MS = 60_000;
const DB = { key: "example.com/db", value: "yes", effect: "NoSchedule" };
const FENCED_POD = {
  phase: "Failed",
  conditions: [{ type: "DisruptionTarget", status: "True", reason: "NodeFenced", message: "m" }],
};

const ELSEWHERE = { podIP: "10.6.6.6", podIPs: [{ ip: "10.6.6.6" }] };

void describe("a stolen token of the agent", () => {
  let controlPlane: ControlPlane;
  let thief: KubeApi;

  before(async () => {
    controlPlane = await startControlPlane(
      { progress: () => undefined, nodeMonitorGracePeriodMs: 3_600_000 },
      AbortSignal.timeout(120_000),
    );
    const { api } = controlPlane;
    await install(api);
    await registerNode(api, { name: "n1", labels: { rack: "r7" } });
    await registerNode(api, { name: "n2" });
    await api.mergePatch(NODE, {
      metadata: { annotations: { note: "x" } },
      spec: { taints: [DB], unschedulable: true },
    });
    await api.create("/api/v1/namespaces/kube-system/secrets", secret("victim"));
    await api.create("/api/v1/namespaces/default/pods", pod("p"));
    await api.create(REMEDIATIONS, remediation("asked"));
    await api.create(TARGETS, target("other"));
    await api.mergePatch(`${POD}/status`, { status: { podIP: "10.0.0.9", podIPs: [{ ip: "10.0.0.9" }] } });
    thief = await KubeApi.fromKubeconfig(await controlPlane.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT));
    await eventually("the policies are enforced", POLICY_TIMEOUT_MS, async () => {
      const label = { metadata: { labels: { rack: "other" } } };
      const tried = [
        attempt(thief.mergePatch(`${NODE}${DRY}`, label)),
        attempt(thief.mergePatch(`${POD}/status${DRY}`, { status: { podIP: "10.6.6.6" } })),
        attempt(thief.create(`${REMEDIATIONS}${DRY}`, remediation("n1"))),
        attempt(thief.create(`${EVENTS}${DRY}`, event("kubelet"))),
        attempt(thief.create(`${CLUSTER_LEASES}${DRY}`, lease("another"))),
      ];
      return (await Promise.all(tried)).every((outcome) => outcome === "refused");
    });
  });

  after(async () => {
    await controlPlane?.stop();
  });

  const refusals: readonly [what: string, attempt: () => Promise<unknown>][] = [
    [
      "a stolen token of the agent cannot read a Secret of another namespace",
      () => thief.get("/api/v1/namespaces/kube-system/secrets/victim"),
    ],
    ["a stolen token of the agent cannot list the Secrets of all namespaces", () => thief.get("/api/v1/secrets")],
    [
      "a stolen token of the agent cannot change a label of a Node",
      () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { labels: { rack: "r8" } } }),
    ],
    [
      "a stolen token of the agent cannot remove a label of a Node",
      () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { labels: { rack: null } } }),
    ],
    [
      "a stolen token of the agent cannot change an annotation of a Node",
      () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { annotations: { note: "y" } } }),
    ],
    [
      "a stolen token of the agent cannot remove a taint of another owner",
      () => thief.mergePatch(`${NODE}${DRY}`, { spec: { taints: [] } }),
    ],
    [
      "a stolen token of the agent cannot uncordon a Node",
      () => thief.mergePatch(`${NODE}${DRY}`, { spec: { unschedulable: false } }),
    ],
    [
      "a stolen token of the agent cannot set a providerID",
      () => thief.mergePatch(`${NODE}${DRY}`, { spec: { providerID: "metal3://uid" } }),
    ],
    [
      "a stolen token of the agent cannot set a finalizer on a Node",
      () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { finalizers: ["a/b"] } }),
    ],
    [
      "a stolen token of the agent cannot give a Node an owner, with which the Node would be garbage-collected",
      () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { ownerReferences: [owner("ConfigMap")] } }),
    ],
    [
      "a stolen token of the agent cannot write the status of a Node",
      () => thief.mergePatch(`${NODE}/status${DRY}`, { status: { conditions: [] } }),
    ],
    [
      "a stolen token of the agent cannot hijack an address with a pod",
      () => thief.mergePatch(`${POD}/status${DRY}`, { status: { ...FENCED_POD, ...ELSEWHERE } }),
    ],
    [
      "a stolen token of the agent cannot make a pod ready",
      () =>
        thief.mergePatch(`${POD}/status${DRY}`, {
          status: { ...FENCED_POD, conditions: [...FENCED_POD.conditions, { type: "Ready", status: "True" }] },
        }),
    ],
    [
      "a stolen token of the agent cannot mark a pod as running",
      () => thief.mergePatch(`${POD}/status${DRY}`, { status: { phase: "Running" } }),
    ],
    ["a stolen token of the agent cannot read a pod by its name", () => thief.get(POD)],
    [
      "a stolen token of the agent cannot order a power-off with a forged remediation",
      () => thief.create(`${REMEDIATIONS}${DRY}`, remediation("n1")),
    ],
    [
      "a stolen token of the agent cannot order a power-off for an owner that is neither a health check nor a request",
      () => thief.create(`${REMEDIATIONS}${DRY}`, remediation("n1", [owner("ConfigMap")])),
    ],
    [
      "a stolen token of the agent cannot change the spec of a remediation",
      () => thief.mergePatch(`${REMEDIATIONS}/asked${DRY}`, { spec: { strategy: { retryLimit: 5 } } }),
    ],
    ["a stolen token of the agent cannot create a FencingTarget", () => thief.create(`${TARGETS}${DRY}`, target("n1"))],
    [
      "a stolen token of the agent cannot point a FencingTarget at another node",
      () => thief.mergePatch(`${TARGETS}/other${DRY}`, { spec: { nodeName: "n1" } }),
    ],
    [
      "a stolen token of the agent cannot run a pod",
      () => thief.create(`/api/v1/namespaces/default/pods${DRY}`, pod("q")),
    ],
    [
      "a stolen token of the agent cannot run a command in a pod",
      () => thief.send("POST", `${POD}/exec?command=id&stdout=true`),
    ],
    [
      "a stolen token of the agent cannot become another ServiceAccount",
      () => thief.create("/api/v1/namespaces/kube-system/serviceaccounts/default/token", tokenRequest()),
    ],
    ["a stolen token of the agent cannot call a kubelet", () => thief.get(`${NODE}/proxy/pods`)],
    [
      "a stolen token of the agent cannot delete an admission policy",
      () => thief.send("DELETE", `${POLICIES}/ironfence-agent-nodes${DRY}`),
    ],
    [
      "a stolen token of the agent cannot give itself permissions",
      () => thief.create(`${BINDINGS}${DRY}`, clusterAdmin()),
    ],
    [
      "a stolen token of the agent cannot delete a health check",
      () => thief.send("DELETE", `${HEALTH_CHECKS}/x${DRY}`),
    ],
    [
      "a stolen token of the agent cannot forge an event of another controller",
      () => thief.create(`${EVENTS}${DRY}`, event("kubelet")),
    ],
    [
      "a stolen token of the agent cannot write a Secret",
      () => thief.create(`/api/v1/namespaces/${NAMESPACE}/secrets${DRY}`, secret("x")),
    ],
    [
      "a stolen token of the agent cannot delete the stop switch",
      () => thief.send("DELETE", `${CONFIG_MAPS}/ironfence-pause`),
    ],
    [
      "a stolen token of the agent cannot use any Lease except that of the leader",
      () => thief.get(`${LEASES}/another`),
    ],
    [
      "a stolen token of the agent cannot create a Lease in kube-system, except those that keep installations apart",
      () => thief.create(`${CLUSTER_LEASES}${DRY}`, lease("another")),
    ],
  ];
  for (const [what, tried] of refusals) {
    void test(what, async () => {
      assert.equal(await attempt(tried()), "refused");
    });
  }

  const forge = (path: string, status: object): Promise<unknown> =>
    thief.mergePatch(`${path}/status${DRY}`, { status });
  const grants: readonly [what: string, attempt: () => Promise<unknown>][] = [
    [
      "a stolen token of the agent can still read every BMC password of the agent's own namespace",
      () => thief.get(`/api/v1/namespaces/${NAMESPACE}/secrets`),
    ],
    [
      "a stolen token of the agent can still taint any Node out of service, which moves its pods",
      async () => {
        const { spec } = await thief.get<{ spec: { taints: object[] } }>(NODE);
        await thief.mergePatch(`${NODE}${DRY}`, { spec: { taints: [...spec.taints, OUT_OF_SERVICE] } });
      },
    ],
    ["a stolen token of the agent can still delete any Node", () => thief.send("DELETE", `${NODE}${DRY}`)],
    ["a stolen token of the agent can still delete any pod", () => thief.send("DELETE", `${POD}${DRY}`)],
    [
      "a stolen token of the agent can still mark any pod as failed",
      () => thief.mergePatch(`${POD}/status${DRY}`, { status: FENCED_POD }),
    ],
    [
      "a stolen token of the agent can still add a label, as it does when it restores a Node",
      () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { labels: { a: "b" } } }),
    ],
    [
      "a stolen token of the agent can still order a power-off with a remediation that has an invented owner",
      () => thief.create(`${REMEDIATIONS}${DRY}`, remediation("n1", [owner("NodeHealthCheck")])),
    ],
    [
      "a stolen token of the agent can still write anything into the status of remediations",
      () => forge(`${REMEDIATIONS}/asked`, { phase: "Failed" }),
    ],
    [
      "a stolen token of the agent can still write anything into the status of FencingTargets",
      () => forge(`${TARGETS}/other`, { identity: { nodeName: "n1", systemUUID: "x" } }),
    ],
    [
      "a stolen token of the agent can still delete any remediation",
      () => thief.send("DELETE", `${REMEDIATIONS}/asked${DRY}`),
    ],
    [
      "a stolen token of the agent can still cordon any Node",
      () => thief.mergePatch(`${UNTOUCHED}${DRY}`, { spec: { unschedulable: true } }),
    ],
    [
      "a stolen token of the agent can still write events in the agent's name",
      () => thief.create(`${EVENTS}${DRY}`, event("ironfence.io/agent")),
    ],
  ];
  for (const [what, tried] of grants) {
    void test(what, async () => {
      assert.equal(await attempt(tried()), "allowed");
    });
  }
});

const TARGETS = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`;
const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const HEALTH_CHECKS = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";
const EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events";
const CONFIG_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const CLUSTER_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;

async function attempt(tried: Promise<unknown>): Promise<string> {
  try {
    await tried;
    return "allowed";
  } catch (error) {
    if (error instanceof ApiStatusError && error.status === 403) return "refused";
    throw error;
  }
}

function lease(name: string): object {
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name } };
}

function secret(name: string): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name }, data: { username: "eA==", password: "eA==" } };
}

function pod(name: string): object {
  const spec = { nodeName: "n1", automountServiceAccountToken: false, containers: [{ name: "c", image: "x" }] };
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
}

function remediation(name: string, ownerReferences: object[] = []): object {
  const metadata = { name, ownerReferences };
  return { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediation", metadata, spec: {} };
}

/** An owner that does not exist. Admission sees only the reference to an owner. */
function owner(kind: string): object {
  const apiVersion = kind === "ConfigMap" ? "v1" : "remediation.medik8s.io/v1alpha1";
  return { apiVersion, kind, name: "made-up", uid: "00000000-0000-4000-8000-000000000000" };
}

function target(name: string): object {
  const devices = [{ address: "redfish://192.0.2.1", credentialsSecretRef: { name: "a" } }];
  const spec = { nodeName: name, devices };
  return { apiVersion: "ironfence.io/v1alpha1", kind: "FencingTarget", metadata: { name }, spec };
}

function tokenRequest(): object {
  return { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
}

function clusterAdmin(): object {
  const apiGroup = "rbac.authorization.k8s.io";
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: "thief" },
    roleRef: { apiGroup, kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "ServiceAccount", namespace: NAMESPACE, name: SERVICE_ACCOUNT }],
  };
}

function event(reportingController: string): object {
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: "e" },
    eventTime: "2026-01-01T00:00:00.000000Z",
    type: "Normal",
    reason: "x",
    action: "x",
    note: "x",
    regarding: { kind: "Pod", namespace: "kube-system", name: "x" },
    reportingController,
    reportingInstance: "i",
  };
}
