import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hasTaint, OUT_OF_SERVICE, readyOf } from "../../hack/e2e/chronicle.ts";
import type { NodeView } from "../../hack/e2e/chronicle.ts";
import type { ObjectView } from "../../hack/e2e/machines.ts";
import { conditionForms, machinePaths } from "../../hack/e2e/machines.ts";
import { Metal3Look } from "../../hack/e2e/metal3-look.ts";
import type { Metal3World } from "../../hack/e2e/metal3-world.ts";
import { controlPlane, startMetal3World, workers } from "../../hack/e2e/metal3-world.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests } from "../../hack/lib/apply.ts";
import type { Manifest } from "../../hack/lib/apply.ts";

// MachineHealthChecks with Metal3RemediationTemplates, as in the documents of Metal3, from the failed node to the end.
// Management and workload cluster are two real API servers. The hosts belong to a rack and have BareMetalHosts with a
// simulated operator. The stories run in parallel, each on its own host.

const WHERE = { version: "v1beta1", namespace: "metal3", cluster: "test1" } as const;
const PATHS = machinePaths(WHERE);
const STORY_TIMEOUT_MS = 120_000;
/** Replaces the 600 s of the examples for a reboot. */
const REBOOT_TIMEOUT = "12s";
const WORKERS = ["recovers", "retries", "fails", "returns"];
const CONTROL_PLANE = ["cp-1", "cp-2", "cp-3"];
/** No health check covers these nodes. Another client creates their requests. */
const OTHERS = ["served", "withdrawn"];

void describe("with the health checks of Metal3's documents, on two real API servers", { concurrency: true }, () => {
  let world: Metal3World;

  before(async () => {
    world = await startMetal3World(WHERE, {
      machines: [...workers("nodepool-0", WORKERS), ...controlPlane(CONTROL_PLANE), ...workers("nodepool-1", OTHERS)],
    });
    await applyManifests(world.api, repositoryPath("examples/metal3-machine-health-check.yaml"), withShortTimes);
    await world.startAgent(["--families=machine-health-check,metal3-remediation,bare-metal-host"]);
    await look.explain("the workers are healthy", async () => {
      const check = await world.api.get<ObjectView>(`${PATHS.healthChecks}/worker-healthcheck`);
      return check.status?.currentHealthy === WORKERS.length;
    });
  });
  after(() => world?.stop());

  const look = new Metal3Look(() => world, STORY_TIMEOUT_MS);
  /** Creates a Metal3Remediation as Cluster API's own health check controller does. */
  const request = async (name: string): Promise<void> => {
    const machine = await look.machineOf(name);
    const { apiVersion, metadata } = machine;
    await world.api.create(PATHS.metal3Remediations, {
      apiVersion: `infrastructure.cluster.x-k8s.io/${WHERE.version}`,
      kind: "Metal3Remediation",
      metadata: {
        name,
        namespace: WHERE.namespace,
        labels: { "cluster.x-k8s.io/cluster-name": WHERE.cluster },
        annotations: {
          "cluster.x-k8s.io/cloned-from-name": "worker-remediation-request",
          "cluster.x-k8s.io/cloned-from-groupkind": "Metal3RemediationTemplate.infrastructure.cluster.x-k8s.io",
        },
        ownerReferences: [{ apiVersion, kind: "Machine", name, uid: metadata.uid }],
      },
      spec: { strategy: { type: "Reboot", retryLimit: 1, timeout: "300s" } },
    });
  };

  void test("a worker is rebooted: tainted only while its host is truly off, emptied, and back", async () => {
    const name = "recovers";
    const { api } = world.workload;
    await api.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "db-0" },
      spec: { nodeName: name, containers: [{ name: "db", image: "db" }] },
    });
    const powerWhenTainted: string[] = [];
    const watching = new AbortController();
    const watched = api.watch<NodeView>(
      `/api/v1/nodes?fieldSelector=metadata.name=${name}`,
      ({ object }) => {
        if (hasTaint(object, OUT_OF_SERVICE)) powerWhenTainted.push(world.rack.host(name).power);
      },
      watching.signal,
    );
    const before = await look.machineOf(name);
    world.rack.host(name).hang();
    const asked = await look.explain("a request", () => look.requestOf(name));
    assert.deepEqual(asked.metadata.labels, { "cluster.x-k8s.io/cluster-name": WHERE.cluster });
    assert.deepEqual(asked.spec, { strategy: { type: "Reboot", retryLimit: 1, timeout: REBOOT_TIMEOUT } });
    await look.isBack(name);
    watching.abort();
    await watched;
    assert.ok(powerWhenTainted.length > 0, "the out-of-service taint was seen");
    assert.deepEqual(new Set(powerWhenTainted), new Set(["Off"]));
    assert.equal(await api.find("/api/v1/namespaces/default/pods/db-0"), undefined);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
    assert.equal((await look.machineOf(name)).metadata.uid, before.metadata.uid);
  });

  void test("a worker whose first reboot does not help is rebooted again", async () => {
    const name = "retries";
    const host = world.rack.host(name);
    host.spec.bootMs = 600_000;
    host.hang();
    await look.explain("the first reboot has not helped", async () => {
      return (await look.requestOf(name))?.status?.retryCount === 1;
    });
    host.spec.bootMs = 1_000;
    await look.isBack(name);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
  });

  void test("a worker that no reboot helps is left to its owner, in the words of old and new Cluster API", async () => {
    const name = "fails";
    world.rack.host(name).failDisk();
    await look.explain("the end", async () => (await look.requestOf(name))?.status?.phase === "Deleting machine");
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
    for (const handed of conditionForms(await look.machineOf(name), "OwnerRemediated")) {
      assert.equal(handed?.status, "False");
      assert.equal(handed.reason, "WaitingForRemediation");
    }
    const { metadata } = await look.hostOf(name);
    assert.equal(metadata.annotations?.["capm3.metal3.io/unhealthy"], "capm3/UnhealthyNode");
  });

  void test("a node that is back before its power-off keeps its power, and the request goes", async () => {
    const name = "returns";
    await look.pause(name, true);
    world.rack.host(name).hang();
    await look.explain(
      "a request that is served",
      async () => (await look.requestOf(name))?.status?.phase === "Running",
    );
    world.rack.host(name).resume();
    await look.isBack(name);
    await look.pause(name, false);
    assert.deepEqual(await look.childrenOf(name), []);
    assert.deepEqual(look.ordersOf(name), []);
  });

  void test("a node of the control plane is rebooted, and its Machine stays", async () => {
    const name = "cp-1";
    world.rack.host(name).hang();
    await look.explain("a request", () => look.requestOf(name));
    await look.isBack(name);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
    assert.equal(
      (await look.machineOf(name)).status?.conditions?.some(({ type }) => type === "OwnerRemediated"),
      false,
    );
  });

  void test("a request that Cluster API's own health check made is served, and waits for it to be deleted", async () => {
    const name = "served";
    world.rack.host(name).hang();
    await look.explain("the node is dead", async () => readyOf(await look.nodeOf(name)) === "Unknown");
    await request(name);
    const served = await look.explain("the node is back", async () => {
      const found = await look.requestOf(name);
      const { phase, lastRemediated } = found?.status ?? {};
      return (
        phase === "Waiting" && lastRemediated !== undefined && readyOf(await look.nodeOf(name)) === "True" && found
      );
    });
    assert.deepEqual(served.metadata.finalizers, ["metal3remediation.infrastructure.cluster.x-k8s.io"]);
    await world.api.delete(`${PATHS.metal3Remediations}/${name}`);
    await look.isBack(name);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
  });

  void test("a request that is deleted during its fence is undone: the host is on, and nothing is left", async () => {
    const name = "withdrawn";
    await world.workload.api.create("/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      // This keeps the host off until the request is deleted.
      metadata: { name: "held", finalizers: ["example.com/held"] },
      spec: { nodeName: name, containers: [{ name: "main", image: "none" }] },
    });
    world.rack.host(name).hang();
    await look.explain("the node is dead", async () => readyOf(await look.nodeOf(name)) === "Unknown");
    await request(name);
    await look.explain("the node is tainted", async () => hasTaint(await look.nodeOf(name), OUT_OF_SERVICE));
    assert.equal(world.rack.host(name).power, "Off");
    await world.api.delete(`${PATHS.metal3Remediations}/${name}`);
    await look.isBack(name);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
    await world.workload.api.mergePatch("/api/v1/namespaces/default/pods/held", { metadata: { finalizers: null } });
  });
});

/** The examples with shorter waiting times. */
function withShortTimes(manifest: Manifest): Manifest {
  const text = JSON.stringify(manifest).replaceAll('"300s"', '"1s"').replaceAll('"600s"', `"${REBOOT_TIMEOUT}"`);
  return JSON.parse(text) as Manifest;
}
