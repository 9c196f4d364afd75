import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { registerNode } from "../../hack/control-plane/fake-node.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { install, NAMESPACE, SERVICE_ACCOUNT } from "../../hack/e2e/world.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";
import { OUT_OF_SERVICE } from "../../src/api/taints.ts";

// What somebody can do who has stolen the agent's token, and what the shipped rights and admission policies refuse
// (docs/explanation/threat-model.md).

const NODE = "/api/v1/nodes/n1";
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
    await api.mergePatch(NODE, {
      metadata: { annotations: { note: "x" } },
      spec: { taints: [DB], unschedulable: true },
    });
    await api.create("/api/v1/namespaces/kube-system/secrets", secret("victim"));
    await api.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "p" },
      spec: { nodeName: "n1", automountServiceAccountToken: false, containers: [{ name: "c", image: "x" }] },
    });
    await api.mergePatch(`${POD}/status`, { status: { podIP: "10.0.0.9", podIPs: [{ ip: "10.0.0.9" }] } });
    thief = await KubeApi.fromKubeconfig(await controlPlane.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT));
    await eventually("the policies are enforced", POLICY_TIMEOUT_MS, async () => {
      const label = { metadata: { labels: { rack: "other" } } };
      const tried = [
        attempt(thief.mergePatch(`${NODE}${DRY}`, label)),
        attempt(thief.mergePatch(`${POD}/status${DRY}`, { status: { podIP: "10.6.6.6" } })),
        attempt(thief.create(`${REMEDIATIONS}${DRY}`, remediation())),
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
    ["reads no Secret of another namespace", () => thief.get("/api/v1/namespaces/kube-system/secrets/victim")],
    ["lists no Secrets of all namespaces", () => thief.get("/api/v1/secrets")],
    ["changes no label of a Node", () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { labels: { rack: "r8" } } })],
    ["removes no label of a Node", () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { labels: { rack: null } } })],
    ["changes no annotation", () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { annotations: { note: "y" } } })],
    ["removes no taint of others", () => thief.mergePatch(`${NODE}${DRY}`, { spec: { taints: [] } })],
    ["uncordons no Node", () => thief.mergePatch(`${NODE}${DRY}`, { spec: { unschedulable: false } })],
    ["sets no providerID", () => thief.mergePatch(`${NODE}${DRY}`, { spec: { providerID: "metal3://uid" } })],
    ["writes no status of a Node", () => thief.mergePatch(`${NODE}/status${DRY}`, { status: { conditions: [] } })],
    [
      "hijacks no address by a pod",
      () => thief.mergePatch(`${POD}/status${DRY}`, { status: { ...FENCED_POD, ...ELSEWHERE } }),
    ],
    [
      "makes no pod ready",
      () =>
        thief.mergePatch(`${POD}/status${DRY}`, {
          status: { ...FENCED_POD, conditions: [...FENCED_POD.conditions, { type: "Ready", status: "True" }] },
        }),
    ],
    ["makes no pod run", () => thief.mergePatch(`${POD}/status${DRY}`, { status: { phase: "Running" } })],
    ["reads no pod by name", () => thief.get(POD)],
    [
      "orders no power-off by a remediation that nobody asked for",
      () => thief.create(`${REMEDIATIONS}${DRY}`, remediation()),
    ],
    ["writes no FencingTarget", () => thief.create(`${TARGETS}${DRY}`, target())],
    ["forges no event of another controller", () => thief.create(`${EVENTS}${DRY}`, event("kubelet"))],
    ["writes no Secret", () => thief.create(`/api/v1/namespaces/${NAMESPACE}/secrets${DRY}`, secret("x"))],
    ["takes the stop switch away from nobody", () => thief.send("DELETE", `${CONFIG_MAPS}/ironfence-pause`)],
    ["touches no Lease but the leader's", () => thief.get(`${LEASES}/another`)],
    [
      "creates no Lease in kube-system but those that keep installations apart",
      () => thief.create(`${CLUSTER_LEASES}${DRY}`, lease("another")),
    ],
  ];
  for (const [what, tried] of refusals) {
    void test(what, async () => {
      assert.equal(await attempt(tried()), "refused");
    });
  }

  const grants: readonly [what: string, attempt: () => Promise<unknown>][] = [
    [
      "reads every BMC password of the agent's own namespace",
      () => thief.get(`/api/v1/namespaces/${NAMESPACE}/secrets`),
    ],
    [
      "taints any Node out of service, which moves its pods",
      async () => {
        const { spec } = await thief.get<{ spec: { taints: object[] } }>(NODE);
        await thief.mergePatch(`${NODE}${DRY}`, { spec: { taints: [...spec.taints, OUT_OF_SERVICE] } });
      },
    ],
    ["deletes any Node", () => thief.send("DELETE", `${NODE}${DRY}`)],
    ["deletes any pod", () => thief.send("DELETE", `${POD}${DRY}`)],
    ["marks any pod as failed", () => thief.mergePatch(`${POD}/status${DRY}`, { status: FENCED_POD })],
    [
      "adds a label, as when a Node gets its own back",
      () => thief.mergePatch(`${NODE}${DRY}`, { metadata: { labels: { a: "b" } } }),
    ],
    ["writes events in the agent's name", () => thief.create(`${EVENTS}${DRY}`, event("ironfence.io/agent"))],
  ];
  for (const [what, tried] of grants) {
    void test(`still ${what}`, async () => {
      assert.equal(await attempt(tried()), "allowed");
    });
  }
});

const TARGETS = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`;
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

function remediation(): object {
  return { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediation", metadata: { name: "n1" }, spec: {} };
}

function target(): object {
  const devices = [{ address: "redfish://192.0.2.1", credentialsSecretRef: { name: "a" } }];
  const metadata = { name: "n1" };
  return { apiVersion: "ironfence.io/v1alpha1", kind: "FencingTarget", metadata, spec: { nodeName: "n1", devices } };
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
