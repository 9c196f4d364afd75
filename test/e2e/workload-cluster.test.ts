import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Registry } from "prom-client";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { registerNode } from "../../hack/control-plane/fake-node.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import type { WorkloadCluster } from "../../hack/e2e/workload-cluster.ts";
import { CLUSTER_NAMESPACE, startWorkloadCluster } from "../../hack/e2e/workload-cluster.ts";
import { NAMESPACE, repositoryPath, SERVICE_ACCOUNT } from "../../hack/e2e/world.ts";
import { applyManifests } from "../../hack/lib/apply.ts";
import { ApiStatusError, KubeApi } from "../../hack/lib/kube-api.ts";
import { NODES } from "../../src/api/core-types.ts";
import type { ClusterConnection, HeldCluster } from "../../src/clusters/workload-clusters.ts";
import { createWorkloadClusters } from "../../src/clusters/workload-clusters.ts";
import { createKubeRuntime } from "../../src/kube/create-runtime.ts";
import { loadCluster } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

const START_TIMEOUT_MS = 180_000;
const STATE_TIMEOUT_MS = 60_000;
const NAMES = { controllerName: "ironfence.io/test", instance: "test" };

type Connected = Extract<ClusterConnection, { state: "connected" }>;

void describe("a workload cluster on an API server of its own", () => {
  const stop = new AbortController();
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
    await applyManifests(management.api, repositoryPath("deploy/kustomize"));
    // With the rights of the agent, and no more.
    const kubeconfig = await management.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT);
    const deps = { clock: systemClock, random: systemRandom };
    const transport = createHttpTransport(await loadCluster({ kubeconfig }), deps);
    const runtime = createKubeRuntime({ ...deps, ...NAMES, logger: createLogger("silent"), transport });
    const clusters = createWorkloadClusters(
      {
        runtime,
        registry: new Registry(),
        ...NAMES,
        openTransport: (cluster) => createHttpTransport(cluster, deps),
        mayWrite: () => true,
      },
      stop.signal,
    );
    settled = async () => {
      await clusters.settled();
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

  const away = (reason: string): Promise<string> =>
    eventually(
      `away: ${reason}`,
      STATE_TIMEOUT_MS,
      async () => held.connection.state === "away" && held.connection.reason === reason && held.connection.message,
      async () => JSON.stringify(held.connection),
    );
  const connected = (): Promise<Connected> =>
    eventually(
      "connected",
      STATE_TIMEOUT_MS,
      async () => held.connection.state === "connected" && held.connection,
      async () => (held.connection.state === "away" ? held.connection.message : held.connection.state),
    );
  /** Whether the API server takes the credentials of the connection. */
  const readNode = async ({ runtime }: Connected): Promise<string> =>
    (await runtime.client.get(NODES, { name: "n1" }, AbortSignal.timeout(STATE_TIMEOUT_MS))).metadata.name;

  void test("needs the rights that come with deploy/families/cluster-api", async () => {
    firstKubeconfig = await workload.publishToken(management.api, "first");
    assert.match(await away("KubeconfigMissing"), /Secret default\/alpha-kubeconfig may not be read: .*forbidden/i);
    await applyManifests(management.api, repositoryPath("deploy/families/cluster-api"));
    const { nodes } = await connected();
    assert.deepEqual(
      [...nodes.values()].map(({ metadata }) => metadata.name),
      ["n1"],
    );
  });

  void test("is worked with through a kubeconfig that was rotated, as soon as the old one is refused", async () => {
    const connection = await connected();
    const first = await KubeApi.fromKubeconfig(firstKubeconfig);
    await workload.publishToken(management.api, "second");
    await workload.revoke("first");
    // The API server believes a token that it has checked for some seconds more.
    await eventually("the first token is refused", STATE_TIMEOUT_MS, () => isRefused(first));
    await first.close();
    assert.equal(await readNode(connection), "n1");
    assert.equal(held.connection, connection);
  });

  void test("is away while its API server is, and the same connection is back with it", async () => {
    const { runtime } = await connected();
    await workload.controlPlane.killApiServer();
    assert.match(await away("Unreachable"), /127\.0\.0\.1/);
    await workload.controlPlane.restartApiServer();
    const back = await connected();
    assert.equal(back.runtime, runtime);
    assert.equal(await readNode(back), "n1");
  });
});

async function isRefused(api: KubeApi): Promise<boolean> {
  try {
    await api.get("/api/v1/nodes/n1");
    return false;
  } catch (error) {
    if (error instanceof ApiStatusError && error.status === 401) return true;
    throw error;
  }
}
