import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { Registry } from "prom-client";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { registerNode } from "../../hack/control-plane/fake-node.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import type { WorkloadCluster } from "../../hack/e2e/workload-cluster.ts";
import { CLUSTER_NAMESPACE, startWorkloadCluster } from "../../hack/e2e/workload-cluster.ts";
import { NAMESPACE, repositoryPath, SERVICE_ACCOUNT } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyManifests, applyObject, readManifests } from "../../hack/lib/apply.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { ClusterConnection, HeldCluster, WorkloadClusters } from "../../src/clusters/workload-clusters.ts";
import { createWorkloadClusters } from "../../src/clusters/workload-clusters.ts";
import { CLUSTER_API_CHECKS } from "../../src/detector/machines/vendors/cluster-api.ts";
import { runMachineHealthChecks } from "../../src/detector/machines/run.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import { loadCluster } from "../../src/kube/connection/credentials/credentials.ts";
import { createHttpTransport } from "../../src/kube/connection/transport/http-transport.ts";
import type { KubeRuntime } from "../../src/kube/runtime.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

const START_TIMEOUT_MS = 180_000;
const STATE_TIMEOUT_MS = 60_000;
const BEFORE = "2026-01-01T00:00:00Z";
const CLUSTER_API = `/apis/cluster.x-k8s.io/v1beta2/namespaces/${CLUSTER_NAMESPACE}`;
const CLUSTERS = `${CLUSTER_API}/clusters`;
const MACHINES = `${CLUSTER_API}/machines`;
const HEALTH_CHECKS = `${CLUSTER_API}/machinehealthchecks`;
const REQUEST = `/apis/ironfence.io/v1alpha1/namespaces/${CLUSTER_NAMESPACE}/baremetalremediations/m1`;
const NAMES = { controllerName: "ironfence.io/test", instance: "test" };

type Connected = Extract<ClusterConnection, { state: "connected" }>;

void describe("a workload cluster on an API server of its own", () => {
  const stop = new AbortController();
  let runtime: KubeRuntime;
  let clusters: WorkloadClusters;
  let management: ControlPlane;
  let workload: WorkloadCluster;
  let held: HeldCluster;
  let settled: () => Promise<void>;
  let firstKubeconfig: string;

  before(async () => {
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    [management, workload] = await Promise.all([
      startControlPlane({ progress: () => undefined, nodeMonitorGracePeriodMs: 50_000 }, signal),
      startWorkloadCluster("alpha", signal),
    ]);
    await registerNode(workload.controlPlane.api, { name: "n1", labels: {}, systemUUID: systemRandom.uuid() });
    await applyManifests(management.api, repositoryPath("deploy/node-health-check"));
    await applyManifests(management.api, repositoryPath("deploy/kustomize"));
    // Only with the permissions of the agent.
    const kubeconfig = await management.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT);
    const deps = { clock: systemClock, random: systemRandom };
    const transport = createHttpTransport(await loadCluster({ kubeconfig }), deps);
    runtime = createKubeRuntime({ ...deps, ...NAMES, logger: createLogger("silent"), transport });
    const connections = createWorkloadClusters(
      {
        runtime,
        registry: new Registry(),
        ...NAMES,
        openTransport: (cluster) => createHttpTransport(cluster, deps),
        mayWrite: () => true,
      },
      stop.signal,
    );
    clusters = connections;
    settled = async () => {
      await connections.settled();
      await transport.close();
    };
    held = clusters.hold({ namespace: CLUSTER_NAMESPACE, name: "alpha" }, () => undefined);
  });
  after(async () => {
    stop.abort(new Error("the test is over"));
    await settled?.();
    await workload?.stop();
    await management?.stop();
  });

  const disconnected = (reason: string): Promise<string> =>
    eventually(
      `disconnected: ${reason}`,
      STATE_TIMEOUT_MS,
      async () =>
        held.connection.state === "disconnected" && held.connection.reason === reason && held.connection.message,
      async () => JSON.stringify(held.connection),
    );
  const connected = (): Promise<Connected> =>
    eventually(
      "connected",
      STATE_TIMEOUT_MS,
      async () => held.connection.state === "connected" && held.connection,
      async () => (held.connection.state === "disconnected" ? held.connection.message : held.connection.state),
    );
  /** Reads a node, which shows whether the API server accepts the credentials of the connection. */
  const readNode = async ({ runtime }: Connected): Promise<string> =>
    (await runtime.client.get(NODES, { name: "n1" }, AbortSignal.timeout(STATE_TIMEOUT_MS))).metadata.name;

  void test("a workload cluster needs the permissions that come with deploy/families/cluster-api", async () => {
    firstKubeconfig = await workload.publishToken(management.api, "first");
    assert.match(
      await disconnected("KubeconfigMissing"),
      /cannot read Secret default\/alpha-kubeconfig \(forbidden\): /,
    );
    await applyManifests(management.api, repositoryPath("deploy/families/cluster-api"));
    const { nodes } = await connected();
    assert.deepEqual(
      [...nodes.values()].map(({ metadata }) => metadata.name),
      ["n1"],
    );
  });

  void test("a workload cluster on an API server of its own has its machines remediated by the health check of the examples, and the request deleted when the node is well", async () => {
    const { api } = management;
    await applyManifests(api, repositoryPath("hack/foreign-crds"));
    const created = await applyMachine(api);
    for (const manifest of await exampleOf("reboot-then-replace", "workers")) await applyObject(api, manifest);
    const serving = new AbortController();
    const served = runMachineHealthChecks(
      { runtime, clusters, kind: CLUSTER_API_CHECKS, namespace: NAMESPACE, zoneLabel: "topology.kubernetes.io/zone" },
      serving.signal,
    );
    const status = async () => (await api.get<{ status?: Record<string, unknown> }>(`${MACHINES}/m1`)).status;
    const succeeded = async (): Promise<string | undefined> => {
      const conditions = ((await status())?.["conditions"] ?? []) as { type: string; status: string }[];
      return conditions.find(({ type }) => type === "HealthCheckSucceeded")?.status;
    };
    try {
      await reportReady(workload.controlPlane.api, "True");
      await eventually("the machine is healthy", STATE_TIMEOUT_MS, async () => (await succeeded()) === "True");
      await reportReady(workload.controlPlane.api, "False");
      const request = await eventually("a request", STATE_TIMEOUT_MS, () =>
        api.find<{ metadata: Record<string, unknown>; spec: Record<string, unknown> }>(REQUEST),
      );
      const { labels, annotations, ownerReferences } = request.metadata;
      const node = await workload.controlPlane.api.get<Node>("/api/v1/nodes/n1");
      assert.deepEqual(labels, { "cluster.x-k8s.io/cluster-name": "alpha" });
      assert.deepEqual(annotations, {
        "cluster.x-k8s.io/cloned-from-name": "reboot-then-replace",
        "cluster.x-k8s.io/cloned-from-groupkind": "BareMetalRemediationTemplate.ironfence.io",
        // The node was not Ready.
        "ironfence.io/node-ready-in-boot": "",
        "ironfence.io/node-at-creation": JSON.stringify({
          uid: node.metadata.uid,
          bootID: node.status.nodeInfo?.bootID,
        }),
      });
      assert.deepEqual(ownerReferences, [
        { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name: "m1", uid: created.metadata.uid },
      ]);
      await eventually("the machine says so", STATE_TIMEOUT_MS, async () => (await succeeded()) === "False");
      await reportReady(workload.controlPlane.api, "True");
      await eventually("the request is gone", STATE_TIMEOUT_MS, async () => (await api.find(REQUEST)) === undefined);
      await eventually("the machine is healthy again", STATE_TIMEOUT_MS, async () => (await succeeded()) === "True");
      const check = await api.get<{ status?: Record<string, unknown> }>(`${HEALTH_CHECKS}/workers`);
      assert.deepEqual(check.status?.["targets"], ["m1"]);
    } finally {
      serving.abort(new Error("the test is over"));
      await served;
    }
  });

  void test("a workload cluster on an API server of its own is worked with through a kubeconfig that was rotated, as soon as the old one is refused", async () => {
    const connection = await connected();
    const first = await KubeApi.fromKubeconfig(firstKubeconfig);
    await workload.publishToken(management.api, "second");
    await workload.revoke("first");
    // The API server caches the validity of a token for some seconds.
    await eventually("the first token is refused", STATE_TIMEOUT_MS, () => isRefused(first));
    await first.close();
    assert.equal(await readNode(connection), "n1");
    assert.equal(held.connection, connection);
  });

  void test("a workload cluster on an API server of its own cannot be reached while its API server does not run, and the same connection works again afterwards", async () => {
    const { runtime } = await connected();
    await workload.controlPlane.killApiServer();
    assert.match(await disconnected("Unreachable"), /127\.0\.0\.1/);
    await workload.controlPlane.restartApiServer();
    const back = await connected();
    assert.equal(back.runtime, runtime);
    assert.equal(await readNode(back), "n1");
  });
});

/** Creates a Cluster with an available control plane and one Machine, whose node is n1. */
async function applyMachine(api: KubeApi): Promise<{ metadata: { uid: string } }> {
  const condition = (type: string) => ({ type, status: "True", reason: type, message: "", lastTransitionTime: BEFORE });
  await api.create(CLUSTERS, {
    apiVersion: "cluster.x-k8s.io/v1beta2",
    kind: "Cluster",
    metadata: { name: "alpha" },
    spec: { paused: false },
  });
  await api.mergePatch(`${CLUSTERS}/alpha/status`, {
    status: { conditions: [condition("ControlPlaneInitialized"), condition("InfrastructureReady")] },
  });
  const created = await api.create(MACHINES, {
    apiVersion: "cluster.x-k8s.io/v1beta2",
    kind: "Machine",
    metadata: { name: "m1", labels: { "cluster.x-k8s.io/cluster-name": "alpha" } },
    spec: {
      clusterName: "alpha",
      bootstrap: { dataSecretName: "m1" },
      infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "Metal3Machine", name: "m1" },
    },
  });
  await api.mergePatch(`${MACHINES}/m1/status`, { status: { nodeRef: { name: "n1" } } });
  return created as { metadata: { uid: string } };
}

/** Objects of the example by their names, changed for this cluster and with shorter timeouts. */
async function exampleOf(...names: readonly string[]): Promise<Manifest[]> {
  const manifests = await readManifests(repositoryPath("examples/machine-health-check.yaml"));
  return manifests
    .filter(({ metadata }) => names.includes(metadata.name))
    .map((manifest) => {
      const text = JSON.stringify({ ...manifest, metadata: { ...manifest.metadata, namespace: CLUSTER_NAMESPACE } });
      return JSON.parse(
        text
          .replace('"prod"', '"alpha"')
          .replaceAll('"timeoutSeconds":120', '"timeoutSeconds":3')
          .replace('"40%"', '"100%"'),
      ) as Manifest;
    });
}

function reportReady(api: KubeApi, status: "True" | "False"): Promise<unknown> {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const times = { lastHeartbeatTime: now, lastTransitionTime: now };
  const conditions = [{ type: "Ready", status, reason: "Test", message: "", ...times }];
  return api.mergePatch("/api/v1/nodes/n1/status", { status: { conditions } });
}

async function isRefused(api: KubeApi): Promise<boolean> {
  try {
    await api.get("/api/v1/nodes/n1");
    return false;
  } catch (error) {
    if (error instanceof ApiStatusError && error.status === 401) return true;
    throw error;
  }
}
