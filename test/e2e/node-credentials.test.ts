import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { registerNode } from "../../hack/control-plane/fake-node.ts";
import { install, NAMESPACE, SERVICE_ACCOUNT } from "../../hack/e2e/world.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";
import { FENCED, OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";

// What an attacker with the credentials of a kubelet can do to ironfence, with the Node authorizer and NodeRestriction
// as kubeadm sets them up (docs/explanation/threat-model.md).

const OWN = "/api/v1/nodes/n1";
const OTHER = "/api/v1/nodes/n2";
const DRY = "?dryRun=All";
const NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const IRONFENCE = "/apis/ironfence.io/v1alpha1/namespaces";
const OWN_NAMESPACE = `/api/v1/namespaces/${NAMESPACE}`;
const TOKEN = `${OWN_NAMESPACE}/serviceaccounts/${SERVICE_ACCOUNT}/token`;

void describe("the credentials of a kubelet", () => {
  let controlPlane: ControlPlane;
  let own: KubeApi;
  let neighbour: KubeApi;
  let agentUid: string;

  before(async () => {
    controlPlane = await startControlPlane(
      { progress: () => undefined, nodeMonitorGracePeriodMs: 3_600_000 },
      AbortSignal.timeout(120_000),
    );
    const { api } = controlPlane;
    await install(api);
    for (const name of ["n1", "n2"]) {
      await registerNode(api, { name });
      await api.mergePatch(`/api/v1/nodes/${name}`, { spec: { taints: [OUT_OF_SERVICE, FENCED] } });
      await api.create(NODE_LEASES, lease(name));
    }
    await api.create(`${OWN_NAMESPACE}/secrets`, { apiVersion: "v1", kind: "Secret", metadata: { name: "bmc" } });
    await api.create(`${OWN_NAMESPACE}/pods`, pod("p2", "n2"));
    const made = await api.create(`${OWN_NAMESPACE}/pods`, pod("agent", "n1"));
    agentUid = (made as { metadata: { uid: string } }).metadata.uid;
    own = await KubeApi.fromKubeconfig(await controlPlane.nodeKubeconfig("n1"));
    neighbour = await KubeApi.fromKubeconfig(await controlPlane.nodeKubeconfig("n2"));
  });

  after(async () => {
    await Promise.all([own?.close(), neighbour?.close()]);
    await controlPlane?.stop();
  });

  const refusals: readonly [what: string, attempt: () => Promise<unknown>][] = [
    [
      "a kubelet cannot remove a taint from its own Node",
      () => own.mergePatch(`${OWN}${DRY}`, { spec: { taints: [] } }),
    ],
    [
      "a kubelet cannot add a taint to its own Node",
      () =>
        own.mergePatch(`${OWN}${DRY}`, {
          spec: { taints: [OUT_OF_SERVICE, FENCED, { key: "a", effect: "NoExecute" }] },
        }),
    ],
    [
      "a kubelet cannot make its Node a member of the control plane, which would count for etcd",
      () => own.mergePatch(`${OWN}${DRY}`, { metadata: { labels: { "node-role.kubernetes.io/control-plane": "" } } }),
    ],
    [
      "a kubelet cannot annotate another Node",
      () => own.mergePatch(`${OTHER}${DRY}`, { metadata: { annotations: { a: "b" } } }),
    ],
    [
      "a kubelet cannot report the health of another Node",
      () => own.mergePatch(`${OTHER}/status${DRY}`, { status: ready("False") }),
    ],
    ["a kubelet cannot renew the lease of another Node", () => own.mergePatch(`${NODE_LEASES}/n2${DRY}`, renewed())],
    ["a kubelet cannot delete a Node, not even its own", () => own.send("DELETE", `${OWN}${DRY}`)],
    ["a kubelet cannot delete a pod of another Node", () => own.send("DELETE", `${OWN_NAMESPACE}/pods/p2${DRY}`)],
    [
      "a kubelet cannot mark a pod of another Node as failed",
      () => own.mergePatch(`${OWN_NAMESPACE}/pods/p2/status${DRY}`, { status: { phase: "Failed" } }),
    ],
    [
      "a kubelet cannot read the password of a BMC, even if the agent runs on its node",
      () => own.get(`${OWN_NAMESPACE}/secrets/bmc`),
    ],
    ["a kubelet cannot list the passwords of BMCs", () => own.get(`${OWN_NAMESPACE}/secrets`)],
    ["a kubelet cannot read FencingTargets", () => own.get(`${IRONFENCE}/${NAMESPACE}/fencingtargets`)],
    [
      "a kubelet cannot request a remediation",
      () => own.create(`${IRONFENCE}/default/baremetalremediations${DRY}`, remediation()),
    ],
    [
      "a kubelet cannot take the Lease of the leader",
      () =>
        own.mergePatch(
          `/apis/coordination.k8s.io/v1${OWN_NAMESPACE.slice("/api/v1".length)}/leases/ironfence${DRY}`,
          renewed(),
        ),
    ],
    ["a kubelet cannot set the stop switch", () => own.create(`${OWN_NAMESPACE}/configmaps${DRY}`, pause())],
    [
      "a kubelet cannot become the agent if the agent does not run on its node",
      () => neighbour.create(TOKEN, tokenRequest()),
    ],
    [
      "a kubelet cannot become the agent with a pod that the kubelet makes itself",
      () => own.create(`${OWN_NAMESPACE}/pods${DRY}`, mirrorPod(SERVICE_ACCOUNT)),
    ],
  ];
  for (const [what, tried] of refusals) {
    void test(what, async () => {
      assert.equal(await attempt(tried()), "refused");
    });
  }

  const grants: readonly [what: string, attempt: () => Promise<unknown>][] = [
    [
      "a kubelet can still report the health of its own Node",
      () => own.mergePatch(`${OWN}/status${DRY}`, { status: ready("True") }),
    ],
    ["a kubelet can still renew its own lease", () => own.mergePatch(`${NODE_LEASES}/n1${DRY}`, renewed())],
    [
      "a kubelet can still annotate its own Node as fenced, which proves nothing",
      () => own.mergePatch(`${OWN}${DRY}`, { metadata: { annotations: { "ironfence.io/fenced-by": "x" } } }),
    ],
    [
      "a kubelet can still move its Node to another failure zone, whose slots that Node then uses",
      () => own.mergePatch(`${OWN}${DRY}`, { metadata: { labels: { "topology.kubernetes.io/zone": "z9" } } }),
    ],
    ["a kubelet can still become the agent if the agent runs on its node", () => own.create(TOKEN, tokenRequest())],
  ];
  for (const [what, tried] of grants) {
    void test(what, async () => {
      assert.equal(await attempt(tried()), "allowed");
    });
  }

  const tokenRequest = (): object => ({
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "agent", uid: agentUid } },
  });
});

async function attempt(tried: Promise<unknown>): Promise<string> {
  try {
    await tried;
    return "allowed";
  } catch (error) {
    if (error instanceof ApiStatusError && error.status === 403) return "refused";
    throw error;
  }
}

const RESTRICTED = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
  capabilities: { drop: ["ALL"] },
};

function pod(name: string, nodeName: string): object {
  const containers = [{ name: "c", image: "x", securityContext: RESTRICTED }];
  const tolerations = [{ operator: "Exists" }];
  const account = { serviceAccountName: SERVICE_ACCOUNT, automountServiceAccountToken: false };
  // The volume that the admission plugin ServiceAccount adds to each pod. A kubelet gets tokens only for audiences that
  // its pods mount.
  const volumes = [{ name: "token", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }];
  const spec = { nodeName, tolerations, containers, volumes, ...account };
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
}

/** The mirror pod that a kubelet creates for a static pod. */
function mirrorPod(serviceAccountName: string): object {
  const metadata = { name: "m-n1", annotations: { "kubernetes.io/config.mirror": "x" } };
  const containers = [{ name: "c", image: "x", securityContext: RESTRICTED }];
  return { apiVersion: "v1", kind: "Pod", metadata, spec: { nodeName: "n1", serviceAccountName, containers } };
}

function lease(name: string): object {
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name }, spec: { holderIdentity: name } };
}

function renewed(): object {
  return { spec: { renewTime: "2026-01-01T00:00:00.000000Z" } };
}

function ready(status: string): object {
  return { conditions: [{ type: "Ready", status, reason: "x", message: "x" }] };
}

function remediation(): object {
  return { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediation", metadata: { name: "n2" }, spec: {} };
}

function pause(): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "ironfence-pause" } };
}
