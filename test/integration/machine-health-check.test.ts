import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, describe, it } from "node:test";
import { NAMESPACES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { toTime } from "../../src/runtime/time.ts";
import { vendorType } from "./detector-fixture.ts";
import { CLUSTER, MachineWorld, NAMESPACE } from "./machines-fixture.ts";
import type { Version } from "./machines-fixture.ts";

let world: MachineWorld | undefined;

async function start(version?: Version): Promise<MachineWorld> {
  world = await MachineWorld.create(version);
  return world;
}

/** Creates healthy machines under one health check, and waits until it is served. */
async function serve(machines: number, check?: Parameters<MachineWorld["healthCheck"]>[0]): Promise<MachineWorld> {
  const world = await start();
  world.template();
  world.machinesOf("m", machines);
  world.healthCheck(check);
  world.start();
  await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === machines);
  return world;
}

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

for (const version of ["v1beta1", "v1beta2"] as const) {
  describe(`a MachineHealthCheck of ${version}`, () => {
    it(`a MachineHealthCheck of ${version} makes a request by the contract when a node has failed for its timeout, and deletes it when the node is healthy`, async () => {
      const world = await start(version);
      world.template("Fence", {
        template: { metadata: { labels: { rack: "r1" }, annotations: { note: "n" } }, spec: { mode: "off" } },
      });
      world.machinesOf("m", 3);
      world.healthCheck();
      world.start();
      await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 3);
      world.ready("m1", "Unknown");
      const afterMs = await world.until("a request", () => world.fences().length > 0);
      assert.ok(afterMs >= 9_000 && afterMs <= 11_500, `after ${afterMs} ms`);
      const [fence] = world.fences();
      const machine = world.machineOf("m1");
      assert.equal(fence?.kind, "Fence");
      assert.equal(fence.metadata.name, "m1");
      assert.equal(fence.metadata.namespace, NAMESPACE);
      assert.deepEqual(fence.spec, { mode: "off" });
      assert.deepEqual(fence.metadata.labels, { rack: "r1", "cluster.x-k8s.io/cluster-name": CLUSTER });
      assert.deepEqual(fence.metadata.annotations, {
        note: "n",
        "cluster.x-k8s.io/cloned-from-name": "fence-template",
        "cluster.x-k8s.io/cloned-from-groupkind": "FenceTemplate.fence.example",
      });
      assert.deepEqual(fence.metadata.ownerReferences, [
        { apiVersion: `cluster.x-k8s.io/${version}`, kind: "Machine", name: "m1", uid: machine.metadata.uid },
      ]);
      await world.until("it is marked", () => world.told("MachineMarkedUnhealthy").length > 0);
      assert.deepEqual(world.told("MachineMarkedUnhealthy"), [
        "Machine tenant/m1 has been marked as unhealthy by tenant/check",
      ]);
      const failed = world.condition(world.machineOf("m1"), "HealthCheckSucceeded");
      assert.equal(failed?.status, "False");
      assert.equal(failed.reason, "UnhealthyNode");
      assert.equal(failed.severity, version === "v1beta1" ? "Warning" : undefined);
      assert.match(failed.message ?? "", /Condition Ready on Node is reporting status Unknown for more than 10s$/);

      world.ready("m1", "True");
      await world.until("the request is gone", () => world.fences().length === 0);
      await world.until(
        "the machine says so",
        () => world.condition(world.machineOf("m1"), "HealthCheckSucceeded")?.status === "True",
      );
      assert.equal(world.condition(world.machineOf("m1"), "ExternallyRemediated"), undefined);
    });

    it(`a MachineHealthCheck of ${version} shows its status, belongs to its cluster, and says that remediation is allowed`, async () => {
      const world = await start(version);
      world.template();
      world.machinesOf("m", 3);
      world.healthCheck({ max: "40%" });
      world.start();
      await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 3);
      const { status, metadata } = world.check();
      assert.equal(status?.["expectedMachines"], 3);
      assert.equal(status["remediationsAllowed"], 1);
      assert.equal(status["observedGeneration"], metadata.generation);
      assert.deepEqual(status["targets"], ["m0", "m1", "m2"]);
      const allowed = world.condition(world.check(), "RemediationAllowed");
      assert.equal(allowed?.status, "True");
      assert.equal(allowed.reason, version === "v1beta1" ? undefined : "RemediationAllowed");
      assert.equal(metadata.labels?.["cluster.x-k8s.io/cluster-name"], CLUSTER);
      assert.deepEqual(
        metadata.ownerReferences?.map(({ kind, name }) => `${kind} ${name}`),
        [`Cluster ${CLUSTER}`],
      );
      assert.equal(world.condition(world.check(), "Paused")?.status, version === "v1beta1" ? undefined : "False");
    });

    it(`a MachineHealthCheck of ${version} asks the machine's owner if it names no template, and asks once`, async () => {
      const world = await start(version);
      world.machinesOf("m", 2);
      world.healthCheck({ template: null });
      world.start();
      world.ready("m0", "False");
      const owner = () => world.condition(world.machineOf("m0"), "OwnerRemediated");
      await world.until("the owner is asked", () => owner() !== undefined);
      assert.equal(owner()?.status, "False");
      assert.equal(owner()?.reason, "WaitingForRemediation");
      assert.equal(owner()?.severity, version === "v1beta1" ? "Warning" : undefined);
      const conditions = (world.machineOf("m0").status?.conditions ?? []).map((condition) =>
        condition.type === "OwnerRemediated" ? { ...condition, reason: "RemediationInProgress" } : condition,
      );
      world.status("Machine", "m0", { conditions });
      await world.clock.advance(120_000);
      assert.equal(owner()?.reason, "RemediationInProgress");
      assert.equal(world.fences().length, 0);
    });

    it(`a MachineHealthCheck of ${version} starts nothing while too many nodes are unhealthy, reports it once in upstream's words, and continues when enough are healthy`, async () => {
      const world = await start(version);
      world.template();
      const names = world.machinesOf("m", 6);
      world.healthCheck({ max: "40%" });
      world.start();
      await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 6);
      for (const name of names.slice(0, 3)) world.ready(name, "Unknown");
      await world.until("it is restricted", () => world.told("RemediationRestricted").length > 0);
      await world.clock.advance(60_000);
      const message =
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 6, unhealthy: 3, maxUnhealthy: 40%)";
      assert.deepEqual(world.told("RemediationRestricted"), [message]);
      assert.equal(world.fences().length, 0);
      assert.equal(world.check().status?.["remediationsAllowed"], 0);
      const allowed = world.condition(world.check(), "RemediationAllowed");
      assert.equal(allowed?.reason, "TooManyUnhealthy");
      assert.equal(allowed.message, message);
      world.ready("m0", "True");
      await world.until("two requests", () => world.fences().length === 2);
      assert.deepEqual(world.fenceNames(), ["m1", "m2"]);
      assert.equal(world.check().status?.["remediationsAllowed"], 0);
    });

    it(`a MachineHealthCheck of ${version} starts a remediation only when a live list of the nodes allows it, even if a watch that lags would allow it before`, async () => {
      const world = await start(version);
      world.template();
      world.machinesOf("m", 6);
      world.healthCheck({ max: "40%" });
      world.start();
      await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 6);
      world.ready("m0", "Unknown");
      await world.clock.advance(1_000);
      world.workload.faults.lagWatches({}, 3_600_000);
      world.ready("m1", "Unknown");
      world.ready("m2", "Unknown");
      await world.clock.advance(60_000);
      assert.deepEqual(world.fenceNames(), []);
      world.ready("m2", "True");
      await world.until("a request", () => world.fences().length > 0);
      assert.deepEqual(world.fenceNames(), ["m0"]);
    });

    it(`a MachineHealthCheck of ${version} reports a missing template and continues when the template exists`, async () => {
      const world = await start(version);
      world.machinesOf("m", 2);
      world.healthCheck();
      world.start();
      world.ready("m0", "Unknown");
      await world.until("it is reported", () => world.told("RemediationTemplateNotFound").length > 0);
      await world.until("the machine is marked", () => world.told("MachineMarkedUnhealthy").length > 0);
      await world.until("it is saved", () =>
        version === "v1beta1"
          ? world.condition(world.check(), "ExternalRemediationTemplateAvailable")?.reason ===
            "ExternalRemediationTemplateNotFound"
          : world.condition(world.machineOf("m0"), "ExternallyRemediated")?.reason === "RemediationTemplateNotFound",
      );
      world.template();
      await world.until("a request", () => world.fences().length === 1);
      await world.until("it is reported", () =>
        version === "v1beta1"
          ? world.condition(world.check(), "ExternalRemediationTemplateAvailable")?.status === "True"
          : world.condition(world.machineOf("m0"), "ExternallyRemediated")?.reason === "WaitingForRemediation",
      );
    });
  });
}

describe("MachineHealthChecks where upstream is weak", () => {
  it("a MachineHealthCheck makes a request for every unhealthy machine although the first one has its own already, unlike upstream", async () => {
    const world = await serve(5);
    world.ready("m0", "Unknown");
    await world.until("the first request", () => world.fences().length === 1);
    for (const name of ["m1", "m2", "m3"]) world.ready(name, "Unknown");
    await world.until("all four", () => world.fences().length === 4);
    assert.deepEqual(world.fenceNames(), ["m0", "m1", "m2", "m3"]);
  });

  it("a MachineHealthCheck deletes the requests of machines that are healthy again while it is short-circuited, unlike upstream", async () => {
    const world = await serve(5, { max: 2 });
    for (const name of ["m0", "m1"]) world.ready(name, "Unknown");
    await world.until("two requests", () => world.fences().length === 2);
    for (const name of ["m2", "m3", "m4"]) world.ready(name, "Unknown");
    await world.until("it is restricted", () => world.told("RemediationRestricted").length > 0);
    world.ready("m0", "True");
    await world.until("its request is gone", () => !world.fenceNames().includes("m0"));
    assert.deepEqual(world.fenceNames(), ["m1"]);
    assert.equal(world.check().status?.["remediationsAllowed"], 0);
  });

  it("a MachineHealthCheck acts on a second failure at once, while upstream spaces evaluations apart", async () => {
    const world = await serve(3);
    world.ready("m0", "Unknown");
    await world.clock.advance(2_000);
    world.ready("m1", "Unknown");
    await world.until("the first", () => world.fences().length === 1);
    const laterMs = await world.until("the second", () => world.fences().length === 2);
    assert.ok(laterMs <= 3_500, `${laterMs} ms after the first`);
  });

  it("a MachineHealthCheck stops asking for replacements if all of them fail: the budget counts over the machines of a MachineDeployment", async () => {
    const world = await start();
    const labels = { "cluster.x-k8s.io/deployment-name": "workers" };
    world.machinesOf("old", 2);
    world.healthCheck({
      template: null,
      startupSeconds: 30,
      annotations: { "ironfence.io/attempt-budget": "3/24h" },
    });
    world.start();
    const asked = () => world.machines().filter((machine) => world.condition(machine, "OwnerRemediated") !== undefined);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      world.machine(`new${attempt}`, { node: false, labels });
      await world.until(`replacement ${attempt} is given up`, () => asked().length === 1);
      // The MachineSet replaces it.
      world.management.collection(world.type("Machine")).delete({ namespace: NAMESPACE, name: `new${attempt}` });
    }
    world.machine("new4", { node: false, labels });
    await world.until("the node is left to the operator", () => world.told("RemediationSkipped").length > 0);
    await world.clock.advance(120_000);
    assert.equal(asked().length, 0);
    assert.match(
      world.told("RemediationSkipped")[0] ?? "",
      /^Machine tenant\/new4 is not remediated: giving up until \S+ unless the operator intervenes: new Machines of MachineDeployment\/workers were replaced 3 times/,
    );
    // A machine that has worked for a long time does not count as a replacement.
    await world.clock.advance(3_600_000);
    world.ready("old0", "Unknown");
    await world.until("the old one's owner is asked", () => asked().length === 1);
  });

  it("a MachineHealthCheck makes a failed request again, with pauses that double, and gives up none, unlike upstream", async () => {
    const world = await serve(3);
    const uid = (): string | undefined => world.fences()[0]?.metadata.uid;
    const fail = (): void => {
      const failed = { type: "Succeeded", status: "False", reason: "BMCUnreachable", message: "no route" };
      const lastTransitionTime = toTime(world.clock.nowMs());
      const status = { conditions: [{ ...failed, lastTransitionTime }] };
      const fences = world.management.collection(vendorType("Fence"));
      fences.mergePatch({ namespace: NAMESPACE, name: "m1" }, { status }, "status");
    };
    world.ready("m1", "Unknown");
    const pausesMs: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      await world.until("a request", () => uid() !== undefined);
      const before = uid();
      await world.clock.advance(60_000);
      fail();
      const pauseMs = await world.until("another one", () => ![undefined, before].includes(uid()), 7_300_000);
      pausesMs.push(Math.round(pauseMs / 60_000));
    }
    assert.deepEqual(pausesMs, [10, 12, 25, 51]);
    assert.match(world.told("RemediationFailed").at(-1) ?? "", /Fence m1 has failed \(BMCUnreachable: no route\)/);
    world.ready("m1", "True");
    await world.until("the request is gone", () => world.fences().length === 0);
  });

  it("a MachineHealthCheck makes a failed request again at once when its host can be fenced again, unlike upstream", async () => {
    const world = await serve(3);
    const crd = new URL("../../deploy/crds/ironfence.io_fencingtargets.yaml", import.meta.url);
    world.management.load(readFileSync(crd, "utf8"));
    world.management.collection(NAMESPACES).create({ metadata: { name: "fencing" } });
    const targets = world.management.collection(FENCING_TARGETS);
    const key = { namespace: "fencing", name: "t1" };
    const devices = [{ address: "redfish://m1.example", credentialsSecretRef: { name: "bmc" } }];
    const clusterRef = { namespace: NAMESPACE, name: CLUSTER };
    targets.create({ metadata: key, spec: { nodeName: "m1", clusterRef, devices } });
    const say = (status: "True" | "False"): void => {
      const time = { lastTransitionTime: toTime(world.clock.nowMs()) };
      const ready = { type: "Ready", status, reason: "Test", message: "", ...time };
      targets.mergePatch(key, { status: { conditions: [ready] } }, "status");
    };
    say("True");
    world.ready("m1", "Unknown");
    await world.until("a request", () => world.fences().length > 0);
    const uid = world.fences()[0]?.metadata.uid;
    const failed = { type: "Succeeded", status: "False", reason: "BMCUnreachable", message: "no route" };
    const conditions = [{ ...failed, lastTransitionTime: toTime(world.clock.nowMs()) }];
    const fences = world.management.collection(vendorType("Fence"));
    fences.mergePatch({ namespace: NAMESPACE, name: "m1" }, { status: { conditions } }, "status");
    await world.clock.advance(5_000);
    say("False");
    await world.clock.advance(120_000);
    assert.equal(world.fences()[0]?.metadata.uid, uid, "nothing is fixed yet");
    say("True");
    const tookMs = await world.until("another one", () => ![undefined, uid].includes(world.fences()[0]?.metadata.uid));
    assert.ok(tookMs < 2_000, `${tookMs} ms`);
  });

  it("MachineHealthChecks where upstream is weak reports that a request was refused, and tries again", async () => {
    const world = await start();
    world.template();
    world.machinesOf("m", 2);
    world.healthCheck();
    world.management.faults.inject({
      match: { method: "POST", pathPrefix: `/apis/fence.example/v1/namespaces/${NAMESPACE}/fences` },
      times: 100,
      action: { kind: "status", status: 403 },
    });
    world.start();
    world.ready("m0", "Unknown");
    await world.until(
      "it is reported",
      () =>
        world.condition(world.machineOf("m0"), "ExternallyRemediated")?.reason === "RemediationRequestCreationFailed",
    );
    world.management.faults.clear();
    await world.until("a request", () => world.fences().length === 1);
    await world.until(
      "it is reported",
      () => world.condition(world.machineOf("m0"), "ExternallyRemediated")?.reason === "WaitingForRemediation",
    );
  });
});

describe("a MachineHealthCheck whose workload cluster cannot be reached", () => {
  it("a MachineHealthCheck whose workload cluster cannot be reached starts nothing, takes no node for deleted, reports it, and continues when the cluster is back", async () => {
    const world = await serve(3);
    world.ready("m0", "Unknown");
    await world.clock.advance(5_000);
    world.away("connection refused");
    await world.clock.advance(300_000);
    assert.equal(world.fences().length, 0);
    const allowed = world.condition(world.check(), "RemediationAllowed");
    assert.equal(allowed?.reason, "WorkloadClusterUnreachable");
    assert.match(allowed.message ?? "", /cluster tenant\/prod: connection refused/);
    assert.equal(world.told("RemediationRestricted").length, 1);
    // The last counts, in which m0 was already unhealthy.
    assert.equal(world.check().status?.["currentHealthy"], 2);
    assert.equal(world.told("MachineMarkedUnhealthy").length, 0);
    world.away(undefined);
    await world.until("a request", () => world.fences().length === 1);
    assert.deepEqual(world.fenceNames(), ["m0"]);
  });

  it("a MachineHealthCheck whose workload cluster cannot be reached remediates a machine whose node is gone only if the cluster itself confirms it", async () => {
    const world = await serve(3);
    // The node is gone, and no read of it gets an answer.
    world.workload.faults.inject({
      match: { method: "GET", pathPrefix: "/api/v1/nodes/m1" },
      times: 10_000,
      action: { kind: "status", status: 503 },
    });
    world.deleteNode("m1");
    await world.clock.advance(60_000);
    assert.equal(world.fences().length, 0);
    assert.equal(world.told("MachineMarkedUnhealthy").length, 0);
    world.workload.faults.clear();
    await world.until("a request", () => world.fences().length === 1);
    assert.equal(world.condition(world.machineOf("m1"), "HealthCheckSucceeded")?.reason, "NodeDeleted");
  });
});

describe("a MachineHealthCheck whose kubeconfig leads to another cluster", () => {
  it("a MachineHealthCheck whose kubeconfig leads to another cluster reports it, takes no node for deleted, and waits for one of its nodes", async () => {
    const world = await serve(2);
    world.away("the kubeconfig was exchanged");
    for (const name of ["m0", "m1"]) world.deleteNode(name);
    world.workload.collection<Node>(NODES).create({ metadata: { name: "stranger" }, spec: {} });
    world.away(undefined);
    await world.clock.advance(120_000);
    assert.deepEqual(world.fenceNames(), []);
    assert.match(world.told("RemediationRestricted")[0] ?? "", /none that a Machine names/);
    world.workload.collection<Node>(NODES).create({ metadata: { name: "m0" }, spec: {} });
    world.ready("m0", "True");
    await world.until("a request for the one that is gone", () => world.fences().length === 1);
    assert.deepEqual(world.fenceNames(), ["m1"]);
  });

  it("a MachineHealthCheck does not judge a machine by a node of the same name in another cluster, which has another providerID", async () => {
    const world = await serve(2);
    const machines = world.management.collection(world.type("Machine"));
    machines.mergePatch({ namespace: NAMESPACE, name: "m0" }, { spec: { providerID: "metal3://tenant/h0/m0" } });
    const nodes = world.workload.collection<Node>(NODES);
    nodes.mergePatch({ name: "m0" }, { spec: { providerID: "metal3://others/h0/m0" } });
    world.ready("m0", "Unknown");
    await world.clock.advance(120_000);
    assert.deepEqual(world.fenceNames(), []);
    machines.mergePatch({ namespace: NAMESPACE, name: "m0" }, { spec: { providerID: "metal3://others/h0/m0" } });
    await world.until("a request", () => world.fences().length === 1);
  });
});

describe("a MachineHealthCheck whose view is behind", () => {
  it("a MachineHealthCheck whose view is behind remediates no machine that a live read shows well", async () => {
    const world = await serve(3);
    world.ready("m0", "Unknown");
    await world.clock.advance(2_000);
    world.workload.faults.lagWatches({}, 30_000);
    world.ready("m0", "True");
    await world.clock.advance(25_000);
    assert.equal(world.fences().length, 0);
    assert.equal(world.told("MachineMarkedUnhealthy").length, 0);
  });

  it("a MachineHealthCheck whose watch lags does not remediate a machine whose node comes back while the nodes are listed", async () => {
    const world = await serve(3);
    world.ready("m0", "Unknown");
    await world.clock.advance(2_000);
    // From now on no event proves that the view is fresh, so the nodes are listed before a remediation starts.
    world.workload.faults.lagWatches({}, 30_000);
    let lists = 0;
    world.workload.onRequest(({ method, path, watch }) => {
      if (method !== "GET" || watch || !path.startsWith("/api/v1/nodes?")) return;
      lists += 1;
      world.ready("m0", "True");
    });
    await world.clock.advance(25_000);
    assert.ok(lists > 0, "the nodes were listed");
    assert.equal(world.fences().length, 0);
  });

  it("a MachineHealthCheck whose view is behind remediates no machine in place of another one that had its name", async () => {
    const world = await serve(3);
    world.management.faults.lagWatches({ pathPrefix: "/apis/cluster.x-k8s.io/" }, 40_000);
    world.ready("m0", "Unknown");
    const key = { namespace: NAMESPACE, name: "m0" };
    world.management.collection(world.type("Machine")).delete(key);
    world.machine("m0", { node: false });
    world.joins("m0");
    await world.clock.advance(35_000);
    assert.equal(world.fences().length, 0);
  });

  it("a MachineHealthCheck starts nothing if it has received nothing about machines for minutes, and continues when it has", async () => {
    const world = await serve(3);
    const machines = { pathPrefix: "/apis/cluster.x-k8s.io/v1beta2/machines" };
    world.management.faults.inject({ match: machines, times: 10_000, action: { kind: "status", status: 503 } });
    world.management.faults.cutWatches(machines);
    await world.clock.advance(200_000);
    world.ready("m0", "Unknown");
    await world.clock.advance(60_000);
    assert.equal(world.fences().length, 0);
    world.management.faults.clear();
    await world.until("a request", () => world.fences().length === 1, 120_000);
  });

  it("a MachineHealthCheck whose view is behind asks no owner to replace a machine that a live read shows well", async () => {
    const world = await start();
    world.machinesOf("m", 3);
    world.healthCheck({ template: null });
    world.start();
    await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 3);
    world.ready("m0", "Unknown");
    await world.clock.advance(2_000);
    world.workload.faults.lagWatches({}, 30_000);
    world.ready("m0", "True");
    await world.clock.advance(25_000);
    assert.equal(world.condition(world.machineOf("m0"), "OwnerRemediated"), undefined);
  });
});

describe("what a MachineHealthCheck leaves alone", () => {
  it("a machine that is paused or skipped is neither remediated nor counted", async () => {
    const world = await start();
    world.template();
    world.machinesOf("m", 2);
    world.machine("paused", { annotations: { "cluster.x-k8s.io/paused": "" } });
    world.machine("skipped", { annotations: { "cluster.x-k8s.io/skip-remediation": "" } });
    world.machine("other", { labels: { "cluster.x-k8s.io/cluster-name": "other" } });
    world.healthCheck();
    world.start();
    await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 2);
    for (const name of ["paused", "skipped", "other"]) world.ready(name, "Unknown");
    await world.clock.advance(60_000);
    assert.deepEqual(world.check().status?.["targets"], ["m0", "m1"]);
    assert.equal(world.fences().length, 0);
    world.annotate("Machine", "skipped", { "cluster.x-k8s.io/skip-remediation": null });
    await world.until("a request", () => world.fences().length === 1);
    assert.deepEqual(world.fenceNames(), ["skipped"]);
  });

  it("a machine of a paused cluster is left alone, whether it is unhealthy or healthy again", async () => {
    const world = await serve(2);
    world.ready("m0", "Unknown");
    await world.until("a request", () => world.fences().length === 1);
    world.cluster({ paused: true });
    await world.until("it says so", () => world.condition(world.check(), "Paused")?.status === "True");
    world.ready("m0", "True");
    world.ready("m1", "Unknown");
    await world.clock.advance(60_000);
    assert.deepEqual(world.fenceNames(), ["m0"]);
    world.cluster({ paused: false });
    await world.until("it goes on", () => world.fenceNames().join() === "m1");
  });

  it("a worker is left alone before the control plane is initialized, but the first control plane machine has its timeout", async () => {
    const world = await start();
    world.cluster({ initialized: false });
    world.template();
    world.machine("worker", { node: false });
    world.machine("master", { node: false, controlPlane: true });
    world.healthCheck({ startupSeconds: 60 });
    world.start();
    await world.until("a request", () => world.fences().length > 0, 120_000);
    await world.clock.advance(120_000);
    assert.deepEqual(world.fenceNames(), ["master"]);
    assert.equal(world.condition(world.machineOf("master"), "HealthCheckSucceeded")?.reason, "NodeStartupTimeout");
  });

  it("an object with the machine's name that is not the machine's own is left alone", async () => {
    const world = await start();
    world.template();
    world.machinesOf("m", 2);
    world.management
      .collection(vendorType("Fence"))
      .create({ metadata: { namespace: NAMESPACE, name: "m0" }, spec: {} });
    world.healthCheck();
    world.start();
    await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 2);
    await world.clock.advance(5_000);
    assert.equal(world.fences().length, 1);
    world.ready("m0", "Unknown");
    await world.until("it is reported", () => world.told("RemediationSkipped").length > 0);
    assert.equal(world.fences().length, 1);
  });

  it("a machine that is being remediated on behalf of another health check is left alone", async () => {
    const world = await serve(2);
    const { uid } = world.machineOf("m0").metadata;
    const owner = { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name: "m0", uid };
    const fences = world.management.collection(vendorType("Fence"));
    fences.create({ metadata: { namespace: NAMESPACE, name: "by-hand", ownerReferences: [owner] }, spec: {} });
    world.ready("m0", "Unknown");
    await world.until("it is reported", () => world.told("RemediationSkipped").length > 0);
    assert.deepEqual(world.fenceNames(), ["by-hand"]);
    fences.delete({ namespace: NAMESPACE, name: "by-hand" });
    await world.until("a request", () => world.fenceNames().join() === "m0");
  });

  it("a control plane machine is left alone while another one is in remediation", async () => {
    const world = await start();
    world.template();
    for (const name of ["c0", "c1", "c2"]) world.machine(name, { controlPlane: true });
    world.healthCheck();
    world.start();
    await world.until("all are healthy", () => world.check().status?.["currentHealthy"] === 3);
    for (const name of ["c0", "c1"]) world.ready(name, "Unknown");
    await world.until("a request", () => world.fences().length > 0);
    await world.clock.advance(120_000);
    assert.equal(world.fences().length, 1);
    const [first] = world.fenceNames();
    world.ready(first ?? "", "True");
    await world.until("the other one", () => world.fences().length === 1 && world.fenceNames()[0] !== first);
  });

  it("a machine that has a request of another kind is left alone, since it has one remediation at a time", async () => {
    const world = await start();
    world.template();
    world.template("Other");
    world.machinesOf("m", 2);
    world.healthCheck();
    world.healthCheck({ name: "second", template: "Other" });
    world.start();
    world.ready("m0", "Unknown");
    await world.until("a request", () => world.fences().length + world.fences("Other").length > 0);
    await world.clock.advance(60_000);
    assert.equal(world.fences().length + world.fences("Other").length, 1);
  });
});

describe("a MachineHealthCheck that is paused", () => {
  it("a MachineHealthCheck that is paused only for other controllers is served and reports no pause", async () => {
    const world = await serve(2, { annotations: { "cluster.x-k8s.io/paused": "ironfence.io" } });
    world.ready("m0", "Unknown");
    await world.until("a request", () => world.fences().length === 1);
    assert.equal(world.condition(world.check(), "Paused"), undefined);
  });

  it("a MachineHealthCheck that is paused for all controllers does nothing", async () => {
    const world = await start();
    world.template();
    world.machinesOf("m", 2);
    world.healthCheck({ annotations: { "cluster.x-k8s.io/paused": "" } });
    world.start();
    await world.until("it says so", () => world.condition(world.check(), "Paused")?.status === "True");
    world.ready("m0", "Unknown");
    await world.clock.advance(60_000);
    assert.equal(world.fences().length, 0);
    assert.equal(world.check().status?.["expectedMachines"], undefined);
  });
});

describe("a MachineHealthCheck's process", () => {
  it("a MachineHealthCheck's process finds its requests again after a restart, and does not make them twice", async () => {
    const world = await serve(2);
    world.ready("m0", "Unknown");
    await world.until("a request", () => world.fences().length === 1);
    const { uid } = world.fences()[0]?.metadata ?? {};
    await world.stop();
    world.start();
    await world.clock.advance(60_000);
    assert.deepEqual(
      world.fences().map(({ metadata }) => metadata.uid),
      [uid],
    );
    world.ready("m0", "True");
    await world.until("it is gone", () => world.fences().length === 0);
  });

  it("a MachineHealthCheck causes no calls while no object changes", async () => {
    const world = await serve(20);
    await world.clock.advance(5_000);
    let writes = 0;
    world.management.onRequest(({ watch }) => {
      if (!watch) writes += 1;
    });
    await world.clock.advance(600_000);
    assert.equal(writes, 0);
  });
});
