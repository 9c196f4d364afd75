import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CUSTOM_RESOURCE_DEFINITIONS } from "../../hack/kube-mock/custom-resources.ts";
import { FENCED_BY } from "../../src/api/names/annotations.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease, Node, Pod } from "../../src/api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import { parseTimeMs, toMicroTime } from "../../src/runtime/time.ts";
import { BEFORE_UNKNOWN_MS, begun, cutPower, INSTANT, isTainted, ordersOfAgent, runEarly } from "./early-world.ts";
import type { World } from "./world.ts";

// Actions of other clients and failures while hosts have lost power and their nodes are still Ready.

const gone = (world: World): Promise<void> =>
  world.until("the pod is gone", () => world.pods("n1").length === 0, BEFORE_UNKNOWN_MS);
const taintsOf = (world: World, name: string): NonNullable<Node["spec"]["taints"]> =>
  world.node(name)?.spec.taints ?? [];
const isFailed = ({ status }: Pod): boolean => status?.phase === "Failed";
const setTaints = (world: World, taints: Node["spec"]["taints"]): void =>
  void world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { spec: { taints } });
/** Removes a field from the schema of `spec` in the CRD of BareMetalRemediation. */
function dropField(world: World, field: string): void {
  const crds = world.server.collection<KubeObject & Crd>(CUSTOM_RESOURCE_DEFINITIONS);
  const key = { name: "baremetalremediations.ironfence.io" };
  const { spec } = structuredClone(crds.get(key) ?? assert.fail());
  for (const { schema } of spec.versions) delete schema.openAPIV3Schema.properties.spec.properties[field];
  crds.mergePatch(key, { spec });
}

interface Crd {
  spec: {
    versions: { schema: { openAPIV3Schema: { properties: { spec: { properties: Record<string, unknown> } } } } }[];
  };
}

/** Renews the lease of n1. */
function renew(world: World): void {
  const key = { namespace: "kube-node-lease", name: "n1" };
  const renewTime = toMicroTime(world.clock.nowMs());
  world.server.collection<Lease>(LEASES).mergePatch(key, { spec: { renewTime } });
}

describe("the release of a node that still says that it is Ready", () => {
  it("the release of a node that still says that it is Ready ends its pods, and does not put a taint on again that another client has removed", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      world.holdPods();
      cutPower(world, "n1");
      await world.until("a taint", () => isTainted(world, "n1"), BEFORE_UNKNOWN_MS);
      const left = taintsOf(world, "n1").filter(({ key }) => key !== OUT_OF_SERVICE.key);
      setTaints(world, left);
      await world.clock.advance(10_000);
      world.freePod();
      await gone(world);
      assert.deepEqual(
        world.markLog.filter((mark) => mark === "n1 +taint"),
        ["n1 +taint"],
      );
      assert.equal(world.rack.host("n1").power, "Off");
    }));

  it("the release of a node that still says that it is Ready leaves a taint alone that another client has put on meanwhile", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      cutPower(world, "n1");
      await world.until("a remediation", () => begun(world).length > 0, BEFORE_UNKNOWN_MS);
      setTaints(world, [...taintsOf(world, "n1"), OUT_OF_SERVICE]);
      await gone(world);
      assert.equal(world.node("n1")?.metadata.annotations?.[FENCED_BY], undefined);
      world.otherClientOrders("n1", "On");
      await world.until("it is over", () => begun(world).length === 0 && world.isReady("n1"), 200_000);
      assert.equal(isTainted(world, "n1"), true, "the taint of the other client");
    }));

  it("the release of a node that still says that it is Ready ends within 10 s of a renewal, though all watches lag and the BMC still says Off", () =>
    runEarly({ hosts: ["n1", "n2"].map((name) => ({ name, ...INSTANT, bootMs: 3_000 })) }, async (world) => {
      world.createPod("n1", "db");
      world.holdPods();
      cutPower(world, "n1");
      await world.until("a pod is being ended", () => world.pods("n1").some(isFailed), BEFORE_UNKNOWN_MS);
      const booted = world.node("n1")?.status.nodeInfo?.bootID;
      world.server.faults.lagWatches({ client: "agent" }, 60_000);
      world.rack.bmc("n1").pretendPower("Off", 600_000);
      world.otherClientOrders("n1", "On");
      await world.until("a new boot", () => world.node("n1")?.status.nodeInfo?.bootID !== booted, 60_000);
      await world.until("no taint", () => !isTainted(world, "n1"), 10_000);
      world.server.faults.lagWatches({ client: "agent" }, 0);
      world.freePod();
    }));

  it("the release of a node that still says that it is Ready ends at a renewal that the host sent before it lost its power, and is not taken for a wrong proof", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      world.holdPods();
      cutPower(world, "n1");
      await world.until("a taint", () => isTainted(world, "n1"), BEFORE_UNKNOWN_MS);
      const notBeforeMs = parseTimeMs(begun(world)[0]?.spec.powerOnNotBefore) ?? assert.fail();
      await world.clock.advance(1_000);
      // The API server stores it late, for example because an admission webhook has not answered.
      renew(world);
      await world.until("no taint", () => !isTainted(world, "n1"), 5_000);
      world.freePod();
      await world.clock.advance(notBeforeMs - world.clock.nowMs() - 1_000);
      assert.deepEqual(ordersOfAgent(world), ["n1 ForceOff"]);
      assert.equal(world.rack.host("n1").power, "Off");
      assert.equal(world.target("n1")?.status?.wrongHost, undefined);
    }));

  for (const bootMs of [3_000, 60_000]) {
    it(`the release of a node that still says that it is Ready leaves no pod half deleted if its host comes on between its two writes, and boots in ${bootMs / 1_000} s`, () =>
      runEarly({ hosts: ["n1", "n2"].map((name) => ({ name, ...INSTANT, bootMs })) }, async (world) => {
        const names = ["db", "web", "cache"];
        for (const name of names) world.createPod("n1", name);
        const before = world.pods("n1").map(({ metadata }) => metadata.uid);
        const stop = world.server.onChange(({ object }) => {
          if (object.kind !== "Pod" || (object as Pod).status?.phase !== "Failed") return;
          stop();
          queueMicrotask(() => world.otherClientOrders("n1", "On"));
        });
        const booted = world.node("n1")?.status.nodeInfo?.bootID;
        cutPower(world, "n1");
        await world.until("a new boot", () => world.node("n1")?.status.nodeInfo?.bootID !== booted, 120_000);
        await world.until("no taint", () => !isTainted(world, "n1"), 10_000);
        const failed = world.pods("n1").filter(({ status }) => status?.phase === "Failed");
        assert.deepEqual(
          failed.filter(({ metadata }) => before.includes(metadata.uid)),
          [],
        );
        await world.until("it is over", () => begun(world).length === 0 && world.isReady("n1"), 200_000);
        assert.equal(world.powerLog.filter((entry) => entry === "n1 ForceOff").length, 1, world.powerLog.join(", "));
        world.assertClean();
      }));
  }

  it("the release of a node that still says that it is Ready waits for the deletion of a pod that takes 1.9 s before it removes the taint", () => {
    const hosts = ["n1", "n2"].map((name) => ({ name, ...INSTANT, bootMs: 3_000 }));
    // Kubernetes does not evict pods because of the taint.
    return runEarly({ hosts, controllers: { taintEviction: false } }, async (world) => {
      world.createPod("n1", "db");
      const match = { method: "DELETE", client: "agent", pathPrefix: "/api/v1/namespaces/default/pods" };
      world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 1_900 } });
      cutPower(world, "n1");
      await world.until("a pod has failed", () => world.pods("n1").some(isFailed), BEFORE_UNKNOWN_MS);
      world.otherClientOrders("n1", "On");
      await world.until("no taint", () => !isTainted(world, "n1"), 10_000);
      assert.deepEqual(world.pods("n1"), []);
    });
  });
});

describe("an early remediation that a new agent takes over", () => {
  for (const action of [{ kind: "status", status: 429 }, { kind: "hang" }] as const) {
    it(`an early remediation keeps its host off although a new agent cannot list node leases (${action.kind}) and the node is Ready`, () =>
      runEarly({}, async (world) => {
        world.createPod("n1", "db");
        cutPower(world, "n1");
        await gone(world);
        const notBeforeMs = parseTimeMs(begun(world)[0]?.spec.powerOnNotBefore) ?? assert.fail();
        await world.killAgent();
        const match = { client: "agent", path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases" };
        world.server.faults.inject({ match, times: Infinity, action });
        world.startAgent();
        await world.clock.advance(5_000);
        assert.equal(world.isReady("n1"), true);
        await world.clock.advance(notBeforeMs - world.clock.nowMs() - 1_000);
        assert.deepEqual(ordersOfAgent(world), ["n1 ForceOff"]);
        assert.equal(world.rack.host("n1").power, "Off");
      }));
  }
});

describe("nothing begins early", () => {
  it("nothing begins early while a kubelet restarts, and its host is on", () =>
    runEarly({}, async (world) => {
      for (const downMs of [13_000, 20_000, 35_000]) {
        world.network.cut.add("n1");
        await world.clock.advance(downMs);
        world.network.cut.delete("n1");
        await world.clock.advance(25_000);
      }
      assert.equal(begun(world).length, 0);
      assert.deepEqual(ordersOfAgent(world), []);
    }));

  it("nothing begins early after an outage of the API server that kubelets have not got over, though a BMC says Off of a host that is on", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      world.rack.bmc("n1").pretendPower("Off", 600_000);
      for (const name of ["n1", "n2"]) world.network.cut.add(name);
      const match = { client: "agent" };
      const end = world.server.faults.inject({ match, times: Infinity, action: { kind: "hang" } });
      world.server.faults.cutWatches({ client: "agent" });
      await world.clock.advance(20_000);
      end();
      await world.clock.advance(18_000);
      for (const name of ["n1", "n2"]) world.network.cut.delete(name);
      await world.clock.advance(20_000);
      assert.equal(begun(world).length, 0);
      assert.equal(world.pods("n1").length, 1);
    }));

  it("nothing begins early while the agent alone is cut off from the API server, nor after that, though a BMC says Off of a host that is on", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      world.rack.bmc("n1").pretendPower("Off", 600_000);
      for (const cutMs of [10_000, 20_000, 40_000]) {
        const hang = { match: { client: "agent" }, times: Infinity, action: { kind: "hang" } } as const;
        const end = world.server.faults.inject(hang);
        world.server.faults.cutWatches({ client: "agent" });
        await world.clock.advance(cutMs);
        end();
        await world.clock.advance(30_000);
      }
      assert.equal(begun(world).length, 0);
      assert.deepEqual(ordersOfAgent(world), []);
      assert.equal(world.pods("n1").length, 1);
    }));

  it("nothing begins early of a node that renews its lease after it was read live, while the watch on leases lags, though its BMC says Off", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      world.rack.bmc("n1").pretendPower("Off", 600_000);
      world.network.cut.add("n1");
      const from = world.devices.calls.length;
      await world.until("a reading", () => world.devices.calls.length > from, 30_000);
      const proofs: unknown[] = [];
      world.server.onChange(({ object }) => {
        if (object.kind === "FencingTarget")
          proofs.push(...[(object as FencingTarget).status?.earlyOffProof ?? []].flat());
      });
      const leases = { client: "agent", pathPrefix: "/apis/coordination.k8s.io" };
      world.server.faults.lagWatches(leases, 60_000);
      // A kubelet that restarts renews its lease first.
      renew(world);
      await world.clock.advance(15_000);
      assert.deepEqual(proofs, []);
      world.server.faults.lagWatches(leases, 0);
      world.network.cut.delete("n1");
      await world.clock.advance(15_000);
      assert.equal(begun(world).length, 0);
    }));

  it("nothing begins early while one of three API servers fails, though a host has lost its power", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      cutPower(world, "n1");
      const match = { client: "agent", watch: false };
      for (let elapsedMs = 0; elapsedMs < BEFORE_UNKNOWN_MS; elapsedMs += 3_000) {
        world.server.faults.inject({ match, times: 1, action: { kind: "status", status: 503 } });
        await world.clock.advance(3_000);
      }
      assert.equal(begun(world).length, 0);
      assert.deepEqual(ordersOfAgent(world), []);
    }));

  it("nothing begins early if the CRD of BareMetalRemediation is older and has no spec.powerOnNotBefore", () =>
    runEarly({}, async (world) => {
      dropField(world, "powerOnNotBefore");
      world.createPod("n1", "db");
      cutPower(world, "n1");
      await world.clock.advance(BEFORE_UNKNOWN_MS + 60_000);
      assert.deepEqual(world.markLog, []);
      assert.equal(begun(world).length, 0);
      assert.deepEqual(ordersOfAgent(world), []);
      await world.until("the duration is over", () => begun(world).length === 1, 400_000);
    }));

  it("nothing begins early of two control plane nodes that lose their power together, and the third keeps its power", () => {
    const hosts = ["n1", "n2", "n3"].map((name) => ({ name, ...INSTANT }));
    const labels = { "node-role.kubernetes.io/control-plane": "" };
    return runEarly({ hosts, labels }, async (world) => {
      for (const name of ["n1", "n2"]) cutPower(world, name);
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.deepEqual([begun(world).length, ordersOfAgent(world)], [0, []]);
      for (const name of ["n1", "n2"]) world.otherClientOrders(name, "On");
      await world.until("all are Ready", () => hosts.every(({ name }) => world.isReady(name)), 300_000);
      await world.clock.advance(60_000);
      cutPower(world, "n1");
      await world.until("a remediation of one", () => begun(world).length > 0, BEFORE_UNKNOWN_MS);
      assert.equal(world.isReady("n1"), true);
    });
  });

  it("nothing begins early without the detector, whose health check another detector serves", () =>
    runEarly({ detector: false }, async (world) => {
      world.createPod("n1", "db");
      cutPower(world, "n1");
      await world.clock.advance(BEFORE_UNKNOWN_MS + 60_000);
      assert.equal(begun(world).length, 0);
      assert.deepEqual(ordersOfAgent(world), []);
      assert.equal(isTainted(world, "n1"), false);
    }));
});

describe("the clock of the API server is set after an early release", () => {
  for (const hours of [-48, -8, 8]) {
    it(`a host that was released early is powered on at the end of the duration although the clock of the API server is set by ${hours} h`, () => {
      let aheadMs = 0;
      return runEarly({ interference: { serverAheadMs: () => aheadMs } }, async (world) => {
        world.createPod("n1", "db");
        cutPower(world, "n1");
        await world.until("a remediation", () => begun(world).length > 0, 45_000);
        const notBeforeMs = parseTimeMs(begun(world)[0]?.spec.powerOnNotBefore) ?? assert.fail();
        await world.clock.advance(30_000);
        aheadMs = hours * 3_600_000;
        await world.until("n1 is On", () => world.rack.host("n1").power === "On", 700_000);
        const lateMs = world.clock.nowMs() - notBeforeMs;
        assert.ok(lateMs >= -1_000 && lateMs < 10_000, `${lateMs} ms`);
      });
    });
  }
});
