import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { LEASES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease } from "../../src/api/kubernetes/core.ts";
import { toMicroTime } from "../../src/runtime/time.ts";
import { BEFORE_UNKNOWN_MS, begun, cutPower, INSTANT, isTainted, ordersOfAgent, runEarly } from "./early-world.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// BMCs that report Off too late, for too long, or for another host, while the nodes of their hosts are Ready.

/** The maximum time until a target is probed after an edit or after its host has booted again. */
const PROBED_MS = 130_000;
/** The maximum time between two probes of a target that nothing else makes due. */
const PROBED_AGAIN_MS = 660_000;

/** Ends the kubelet of n1 right after a renewal. Its host stays on. A restarted kubelet first renews its lease. */
async function stopKubelet(world: World, forMs: number): Promise<void> {
  const leases = world.server.collection<Lease>(LEASES);
  const key = { namespace: "kube-node-lease", name: "n1" };
  const before = leases.get(key)?.spec.renewTime;
  await world.until("a renewal", () => leases.get(key)?.spec.renewTime !== before, 15_000);
  world.network.cut.add("n1");
  await world.clock.advance(forMs);
  world.network.cut.delete("n1");
  if (world.rack.host("n1").power !== "On") return;
  leases.mergePatch(key, { spec: { renewTime: toMicroTime(world.clock.nowMs()) } });
}

/** The safety rules that were broken since the last call. Violations because of a wrong Off are a documented limit. */
const broken = (world: World): string[] => [
  ...new Set(world.observer.violations.splice(0).map(({ invariant }) => invariant)),
];

/** Connects the BMC of n1 to n2, which is off, with the UUID of n1. */
async function miswire(world: World): Promise<void> {
  world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n2" });
  world.rack.bmc("n1").rewire(world.rack.host("n2"));
  world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
  cutPower(world, "n2");
  await world.clock.advance(1_000);
}

function rewire(world: World): void {
  world.rack.bmc("n1").rewire(world.rack.host("n1"));
  world.rack.bmc("n1").pretendIdentity(undefined);
}

function edit(world: World): void {
  const devices = [{ address: "redfish://n1", credentialsSecretRef: { name: "bmc" }, timeouts: { call: "9s" } }];
  world.server
    .collection<FencingTarget>(FENCING_TARGETS)
    .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { devices } });
}

/** The release of n1, whose BMC is miswired, begins early only after a probe has read its own host On. */
async function releasesNothingUntilReadOn(world: World): Promise<void> {
  await stopKubelet(world, 20_000);
  await world.clock.advance(20_000);
  assert.deepEqual(ordersOfAgent(world), []);
  assert.equal(isTainted(world, "n1"), false);
  rewire(world);
  await world.clock.advance(PROBED_AGAIN_MS);
  cutPower(world, "n1");
  await world.until("a remediation", () => begun(world).length > 0, BEFORE_UNKNOWN_MS);
}

describe("a BMC that reports Off of another host", () => {
  it("a BMC that reports Off of another host, found out by renewals in the same boot, fails the remediation and bars its target until that is edited", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      world.holdPods();
      await miswire(world);
      await stopKubelet(world, 20_000);
      assert.equal(isTainted(world, "n1"), true, "nothing showed that it was another host");
      await world.until("no taint", () => !isTainted(world, "n1"), 5_000);
      assert.deepEqual(broken(world), ["S1"], "no more than that the taint was on a host that was on");
      world.freePod();
      await world.until("it has failed, and is deleted", () => begun(world).length === 0, 45_000);
      assert.equal(world.phases.get("n1")?.at(-1), "Failed");
      assert.ok(world.notes.some(({ type, reason }) => type === "Warning" && reason === "WrongHost"));
      await world.clock.advance(1_000);
      const target = world.target("n1");
      assert.equal(target?.status?.wrongHost?.generation, target?.metadata.generation);
      // Everything is correct again except the recorded bar against early releases.
      rewire(world);
      await world.clock.advance(PROBED_MS);
      await stopKubelet(world, 20_000);
      await world.clock.advance(20_000);
      cutPower(world, "n1");
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(begun(world).length, 0, "barred");
      world.otherClientOrders("n1", "On");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      edit(world);
      await world.clock.advance(PROBED_MS);
      cutPower(world, "n1");
      await world.until("a remediation", () => begun(world).length > 0, BEFORE_UNKNOWN_MS);
      assert.equal(world.isReady("n1"), true);
    }));
});

describe("a target that is edited so that it leads to another host, which is off", () => {
  it("a target that is edited so that it leads to another host, which is off, has no host released early: it was not read On after the edit", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      await miswire(world);
      edit(world);
      await world.clock.advance(PROBED_MS);
      await releasesNothingUntilReadOn(world);
    }));
});

describe("a BMC that has read Off in two probes of a Ready node", () => {
  it("a BMC that has read Off in two probes of a Ready node has no host released early until it reads On", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      await miswire(world);
      await world.clock.advance(2 * PROBED_AGAIN_MS);
      await releasesNothingUntilReadOn(world);
    }));
});

describe("a BMC that reports Off for its running host", () => {
  for (const seconds of [17, 20, 30]) {
    it(`a BMC that reports Off for its running host has the host forced off before its pods are released, if the kubelet is down for ${seconds} s`, () =>
      runEarly({}, async (world) => {
        world.createPod("n1", "db");
        world.rack.bmc("n1").pretendPower("Off", 600_000);
        await stopKubelet(world, seconds * 1_000);
        await world.clock.advance(5_000);
        assert.deepEqual(ordersOfAgent(world), ["n1 ForceOff"]);
        assert.deepEqual(world.powerLog, ["n1 ForceOff"], "the order had an effect");
        assert.equal(world.rack.host("n1").power, "Off");
        await world.until("the pod is gone", () => world.pods("n1").length === 0, BEFORE_UNKNOWN_MS);
        assert.deepEqual(broken(world), ["S16"], "no more than that the host was forced off");
      }));
  }

  it("a BMC that reports Off for its running host, does nothing to the host if the kubelet is down for less than 16 s", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      world.rack.bmc("n1").pretendPower("Off", 600_000);
      await stopKubelet(world, 15_000);
      await world.clock.advance(60_000);
      assert.deepEqual(ordersOfAgent(world), []);
      assert.equal(world.pods("n1").length, 1);
    }));
});

describe("a BMC whose readings are old", () => {
  for (const lateMs of [5_000, 15_000, 25_000]) {
    it(`a BMC whose readings are ${lateMs / 1_000} s old has its host released as soon as they show Off`, () =>
      runEarly({}, async (world) => {
        world.createPod("n1", "db");
        world.rack.bmc("n1").freezePower(lateMs);
        cutPower(world, "n1");
        await world.clock.advance(lateMs);
        assert.equal(begun(world).length, 0);
        await world.until("the pod is gone", () => world.pods("n1").length === 0, BEFORE_UNKNOWN_MS);
        assert.equal(world.isReady("n1"), true);
      }));
  }

  it("a BMC whose readings are old, and show Off of a host that is back, has nothing done to the host before or after its node is silent for long", () =>
    runEarly({ hosts: ["n1", "n2"].map((name) => ({ name, ...INSTANT, bootMs: 3_000 })) }, async (world) => {
      world.createPod("n1", "db");
      cutPower(world, "n1");
      await world.clock.advance(500);
      world.rack.bmc("n1").freezePower(600_000);
      world.otherClientOrders("n1", "On");
      await world.clock.advance(120_000);
      assert.deepEqual(ordersOfAgent(world), []);
      assert.equal(begun(world).length, 0);
    }));
});
