import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { startControlPlane } from "../../hack/control-plane/control-plane.ts";
import type { ControlPlane } from "../../hack/control-plane/control-plane.ts";
import { registerNode } from "../../hack/control-plane/fake-node.ts";
import type { Agent } from "../../hack/e2e/agent.ts";
import { startAgent } from "../../hack/e2e/agent.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import type { ConditionView, MachinesOptions, ObjectView } from "../../hack/e2e/machines.ts";
import {
  applyForeignCrds,
  conditionForms,
  createCluster,
  createMachine,
  machinePaths,
} from "../../hack/e2e/machines.ts";
import { install, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject } from "../../hack/lib/apply.ts";
import type { Manifest } from "../../hack/lib/apply.ts";

// MachineHealthChecks as in the documents of Cluster API, served by an agent without a remediator. It reports an
// unhealthy Machine to its owner, or requests a remediation from a vendor. The cluster manages itself, as after
// `clusterctl move`.

const WHERE = { version: "v1beta2", namespace: "default", cluster: "capi-quickstart" } as const;
const PATHS = machinePaths(WHERE);
const STORY_TIMEOUT_MS = 60_000;
/** Kubernetes never changes the state of a node during the test. */
const NEVER_MS = 3_600_000;
const WORKERS = ["w-1", "w-2", "w-3"];
const CONTROL_PLANE = ["cp-1", "cp-2", "cp-3"];
const METAL3 = ["m-1", "m-2"];
const WORKERS_CHECK = "capi-quickstart-node-unhealthy-5m";
const FINALIZER = "example.com/at-work";

void describe("with the health checks of Cluster API's documents, without a remediator", { concurrency: true }, () => {
  let controlPlane: ControlPlane;
  let agent: Agent;

  before(async () => {
    controlPlane = await startControlPlane(
      { progress: () => undefined, nodeMonitorGracePeriodMs: NEVER_MS },
      AbortSignal.timeout(120_000),
    );
    const { api } = controlPlane;
    const options: MachinesOptions = { api, ...WHERE };
    await applyForeignCrds(options);
    await install(api);
    await applyManifests(api, repositoryPath("deploy/families/cluster-api"));
    await createCluster(options);
    await applyManifests(api, repositoryPath("examples/workload-cluster-kubeconfigs.yaml"), (manifest) => ({
      ...manifest,
      metadata: { ...manifest.metadata, namespace: WHERE.namespace },
    }));
    await applyObject(api, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: WHERE.namespace, name: `${WHERE.cluster}-kubeconfig` },
      data: { value: (await readFile(controlPlane.kubeconfig)).toString("base64") },
    });
    const create = async (names: readonly string[], labels: Record<string, string>): Promise<void> => {
      for (const name of names) {
        await registerNode(api, { name, labels: {}, systemUUID: randomUUID() });
        await report(name, "True");
        await createMachine(options, name, labels);
      }
    };
    await create(WORKERS, { nodepool: "nodepool-0" });
    await create(CONTROL_PLANE, { "cluster.x-k8s.io/control-plane": "" });
    await create(METAL3, { nodepool: "nodepool-1" });
    await applyManifests(api, repositoryPath("examples/cluster-api-machine-health-check.yaml"), asPrinted);
    agent = await startAgent({ controlPlane }, "agent-1", ["--components=detector", "--families=machine-health-check"]);
    await explain("all Machines are healthy", async () => {
      const checks = await api.list<ObjectView>(PATHS.healthChecks);
      return checks.length === 3 && checks.every(({ status }) => (status?.currentHealthy ?? 0) >= METAL3.length);
    });
  });
  after(async () => {
    await agent?.stop();
    await controlPlane?.stop();
  });

  const explain = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
    eventually(what, STORY_TIMEOUT_MS, ask, async () => {
      const checks = await controlPlane.api.list<ObjectView>(PATHS.healthChecks);
      return [...checks.map(({ status }) => JSON.stringify(status)), agent?.log()].join("\n");
    });
  const report = (name: string, status: "True" | "False"): Promise<unknown> => {
    const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    const times = { lastHeartbeatTime: now, lastTransitionTime: now };
    return controlPlane.api.mergePatch(`/api/v1/nodes/${name}/status`, {
      status: { conditions: [{ type: "Ready", status, reason: "Test", message: "", ...times }] },
    });
  };
  /** Waits until both forms of a condition of the Machine have this status. */
  const says = (name: string, type: string, status: "True" | "False" | undefined): Promise<ConditionView | true> =>
    explain(`${type} of ${name} is ${status}`, async () => {
      const forms = conditionForms(await controlPlane.api.get<ObjectView>(`${PATHS.machines}/${name}`), type);
      return forms.every((form) => form?.status === status) && (forms[0] ?? true);
    });
  const checkOf = (name: string): Promise<ObjectView> =>
    controlPlane.api.get<ObjectView>(`${PATHS.healthChecks}/${name}`);
  const reasonOf = async (name: string): Promise<string | undefined> => {
    const conditions = (await checkOf(name)).status?.conditions;
    return conditions?.find(({ type, status }) => type === "RemediationAllowed" && status === "False")?.reason;
  };

  void test("a worker is left to its owner for as long as it is unhealthy; too many are left alone", async () => {
    await report("w-1", "False");
    const failed = await says("w-1", "HealthCheckSucceeded", "False");
    assert.equal(failed === true ? undefined : failed.reason, "UnhealthyNode");
    const handed = await says("w-1", "OwnerRemediated", "False");
    assert.equal(handed === true ? undefined : handed.reason, "WaitingForRemediation");
    await report("w-1", "True");
    // The owner removes OwnerRemediated, as upstream's controllers do.
    await says("w-1", "HealthCheckSucceeded", "True");
    assert.deepEqual((await checkOf(WORKERS_CHECK)).status?.targets, WORKERS);

    // 40 % of three is one.
    await Promise.all([report("w-2", "False"), report("w-3", "False")]);
    await explain("remediation is not allowed", async () => (await reasonOf(WORKERS_CHECK)) === "TooManyUnhealthy");
    assert.equal((await checkOf(WORKERS_CHECK)).status?.remediationsAllowed, 0);
    await report("w-3", "True");
    await says("w-2", "OwnerRemediated", "False");
    await explain("remediation is allowed", async () => (await reasonOf(WORKERS_CHECK)) === undefined);
  });

  void test("a Machine of the control plane is left to the control plane's own controller", async () => {
    await report("cp-1", "False");
    await says("cp-1", "OwnerRemediated", "False");
    await says("cp-2", "HealthCheckSucceeded", "True");
  });

  void test("a vendor's remediator gets a request of upstream's shape, which only that remediator changes", async () => {
    const { api } = controlPlane;
    const path = `${PATHS.metal3Remediations}/m-1`;
    await report("m-1", "False");
    const request = await explain("a request", () => api.find<ObjectView>(path));
    const machine = await api.get<ObjectView>(`${PATHS.machines}/m-1`);
    const { labels, annotations, ownerReferences, finalizers } = request.metadata;
    const node = await api.get<Node>("/api/v1/nodes/m-1");
    assert.equal(request.apiVersion, "infrastructure.cluster.x-k8s.io/v1beta2");
    assert.deepEqual(labels, { "cluster.x-k8s.io/cluster-name": WHERE.cluster });
    assert.deepEqual(annotations, {
      "cluster.x-k8s.io/cloned-from-name": "worker-remediation-request",
      "cluster.x-k8s.io/cloned-from-groupkind": "Metal3RemediationTemplate.infrastructure.cluster.x-k8s.io",
      // The node was not Ready. Only a remediator of ironfence reads these.
      "ironfence.io/node-ready-in-boot": "",
      "ironfence.io/node-at-creation": JSON.stringify({
        uid: node.metadata.uid,
        bootID: node.status.nodeInfo?.bootID,
      }),
    });
    assert.deepEqual(ownerReferences, [
      { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name: "m-1", uid: machine.metadata.uid },
    ]);
    assert.equal(finalizers, undefined);
    assert.deepEqual(request.spec, { strategy: { type: "Reboot", retryLimit: 1, timeoutSeconds: 600 } });
    await says("m-1", "OwnerRemediated", undefined);

    // Simulates that the vendor's remediator is working.
    await api.mergePatch(path, { metadata: { finalizers: [FINALIZER] } });
    await api.mergePatch(`${path}/status`, { status: { phase: "Waiting", retryCount: 1 } });
    await report("m-1", "True");
    const going = await explain("the request is being deleted", async () => {
      const found = await api.get<ObjectView & { metadata: { deletionTimestamp?: string } }>(path);
      return found.metadata.deletionTimestamp !== undefined && found;
    });
    assert.deepEqual(going.metadata.finalizers, [FINALIZER]);
    assert.deepEqual(going.metadata.annotations, annotations);
    assert.deepEqual(going.status, { phase: "Waiting", retryCount: 1 });
    assert.deepEqual(await api.list(PATHS.remediations), []);
    await api.mergePatch(path, { metadata: { finalizers: null } });
    await says("m-1", "HealthCheckSucceeded", "True");
    assert.equal(await api.find(path), undefined);
  });
});

/** The examples as in the documents, without our annotation, with shorter waiting times. */
function asPrinted(manifest: Manifest): Manifest {
  const { annotations: _, ...metadata } = manifest.metadata;
  const text = JSON.stringify({ ...manifest, metadata }).replaceAll('"timeoutSeconds":300', '"timeoutSeconds":1');
  return JSON.parse(text) as Manifest;
}
