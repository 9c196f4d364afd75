import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { NAMESPACE, World } from "./world.ts";

/** A UUID that is not a known factory default. */
const SHARED_UUID = "a1b2c3d4-0001-4000-8000-00000000abcd";

/** Swaps the BMC addresses of two hosts, as a user may do by mistake. */
function swap(world: World): void {
  const [n1, n2] = [world.rack.host("n1"), world.rack.host("n2")];
  world.rack.bmc("n1").rewire(n2);
  world.rack.bmc("n2").rewire(n1);
}

describe("a rack whose BMC addresses are swapped", () => {
  it("a rack whose BMC addresses are swapped is never powered: both remediations fail, and say that another host answers", () =>
    World.run({}, async (world) => {
      swap(world);
      for (const name of ["n1", "n2"]) {
        await world.hang(name);
        world.remediate(name, { type: "Reboot", retryLimit: 0, timeout: "60s" });
      }
      for (const name of ["n1", "n2"]) {
        await world.phase(name, "Failed");
        assert.equal(world.condition(name, "Succeeded"), "False IdentityMismatch");
      }
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual(
        world.rack.hosts.flatMap((host) => host.orders),
        [],
      );
      world.assertClean();
    }));

  it("a rack whose BMC addresses are swapped shows at the next probe, long before a fence is needed", () =>
    World.run({}, async (world) => {
      swap(world);
      const ready = (name: string): string | undefined =>
        world.target(name)?.status?.conditions?.find(({ type }) => type === "Ready")?.reason;
      const bothSaySo = (): boolean => ready("n1") === "Mismatch" && ready("n2") === "Mismatch";
      await world.until("both targets are not Ready", bothSaySo, 1_200_000);
      assert.deepEqual(world.powerLog, []);
    }));
});

describe("two hosts with one factory-default UUID, of which one alone has a target", () => {
  it("two hosts with one factory-default UUID are not distinguished by it: a wrong BMC address powers neither, also if only one has a target", () =>
    World.run({ hosts: ["n1", "n2"].map((name) => ({ name, systemUUID: SHARED_UUID })) }, async (world) => {
      const targets = world.server.collection<FencingTarget>(FENCING_TARGETS);
      targets.delete({ namespace: NAMESPACE, name: "n2" });
      // The identity is pinned from the live node, because the user has given none.
      targets.mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { identity: { systemUUID: null } } });
      const reason = (): string | undefined =>
        world.target("n1")?.status?.conditions?.find(({ type }) => type === "Ready")?.reason;
      await world.until("the target is refused", () => reason() === "Ambiguous", 1_200_000);
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      await world.hang("n1");
      world.remediate("n1", { type: "Reboot", retryLimit: 0, timeout: "60s" });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False Ambiguous");
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));
});

describe("a node that reports the hardware of its neighbor", () => {
  /** Leaves the target of n1 only its pinned identity. */
  async function pin(world: World): Promise<void> {
    const identity = { systemUUID: null, serialNumber: null };
    world.server
      .collection<FencingTarget>(FENCING_TARGETS)
      .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { identity } });
    await world.until("n1 is pinned", () => world.target("n1")?.status?.identity !== undefined, 1_200_000);
  }

  /** Lets the kubelet of n2 report the system UUID of n1 from now on. */
  function lie(world: World): void {
    const nodes = world.server.collection<Node>(NODES);
    const systemUUID = world.node("n1")?.status.nodeInfo?.systemUUID ?? assert.fail();
    const report = (): void => {
      nodes.mergePatch({ name: "n2" }, { status: { nodeInfo: { systemUUID } } }, "status");
    };
    world.server.onChange(({ object }) => {
      const isTrue = object.kind === "Node" && object.metadata.name === "n2" && reported(world, "n2") !== systemUUID;
      if (isTrue) queueMicrotask(report);
    });
    report();
  }

  /** Fences n1 up to the release of its pod. From then on n2 reports the hardware of n1. */
  async function lieDuringRelease(world: World): Promise<void> {
    await pin(world);
    await world.holdPod();
    world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
    await world.phase("n1", "Releasing");
    lie(world);
  }

  it("a node that reports the hardware of its neighbor during a fence does not leave it off: the host was verified before its power-off", () =>
    World.run({}, async (world) => {
      await lieDuringRelease(world);
      await world.clock.advance(5_000);
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a node that reports the hardware of its neighbor during a fence does not leave it off if another agent undoes it", () =>
    World.run({}, async (world) => {
      await lieDuringRelease(world);
      await world.killAgent();
      world.startAgent();
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      world.freePod();
      await world.until("the host is on", () => world.rack.host("n1").power === "On", 600_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    }));

  it("a node that reports the hardware of its neighbor before the power-off holds that, since one of the two would be cut off by mistake", () =>
    World.run({}, async (world) => {
      await pin(world);
      await world.hang("n1");
      lie(world);
      await world.clock.advance(5_000);
      world.remediate("n1", { retryLimit: 0, timeout: "60s" });
      await world.phase("n1", "Failed");
      assert.deepEqual(world.powerLog, []);
    }));
});

function reported(world: World, name: string): string | undefined {
  return world.node(name)?.status.nodeInfo?.systemUUID;
}
