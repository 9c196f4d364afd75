import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE, World } from "./world.ts";

/** A control plane with five etcd members, which tolerates the loss of two. */
const PLANE = { hosts: ["n1", "n2", "n3", "n4", "n5"], labels: { "node-role.kubernetes.io/control-plane": "" } };
const LOST = ["n4", "n5"];
const BRIEF = { powerOffTimeout: "30s", retryLimit: 0 };

/** Two hosts fail, and an administrator deletes their Nodes. etcd still counts the members. */
async function loseMembers(world: World): Promise<void> {
  for (const name of LOST) world.rack.host(name).hang();
  await world.until("they are down", () => LOST.every((name) => !world.isReady(name)));
  for (const name of LOST) world.server.collection(NODES).delete({ name });
  await world.clock.advance(2_000);
}

function maintain(world: World, name: string, maintenance: boolean): void {
  world.server.collection(FENCING_TARGETS).mergePatch({ namespace: NAMESPACE, name }, { spec: { maintenance } });
}

async function leadAgain(world: World): Promise<void> {
  await world.killAgent();
  world.startAgent();
  await world.clock.advance(5_000);
}

async function failToFence(world: World, node: string): Promise<void> {
  await world.hang(node);
  world.remediate(node, BRIEF);
  await world.phase(node, "Failed");
  assert.equal(world.condition(node, "Succeeded"), "False ControlPlaneQuorum");
  assert.deepEqual(world.powerLog, []);
}

describe("a member of etcd whose Node was deleted", () => {
  it("a member of etcd whose Node was deleted counts as down for the next leader too: no third member is powered off", () =>
    World.run(PLANE, async (world) => {
      await loseMembers(world);
      await leadAgain(world);
      await failToFence(world, "n3");
      const message = world.remediation("n3")?.status?.conditions?.find(({ type }) => type === "Succeeded")?.message;
      assert.match(message ?? "", /n4 and n5|n4, n5/);
    }));

  it("a member of etcd whose Node was deleted while no agent ran counts as down for the agent that starts then", () =>
    World.run(PLANE, async (world) => {
      await world.killAgent();
      await loseMembers(world);
      world.startAgent();
      await world.clock.advance(5_000);
      await failToFence(world, "n3");
    }));

  it("a member of etcd whose Node was deleted is up again when its node has joined again", () =>
    World.run(PLANE, async (world) => {
      await loseMembers(world);
      await leadAgain(world);
      world.otherClientOrders("n4", "ForceRestart");
      await world.until("n4 is Ready", () => world.isReady("n4"));
      await world.hang("n3");
      world.remediate("n3");
      await world.phase("n3", "Succeeded");
    }));

  for (const [how, clear] of [
    [
      "its FencingTarget is deleted",
      (world: World, key: object) => world.server.collection(FENCING_TARGETS).delete(key as never),
    ],
    [
      "an administrator has removed it from the status of its FencingTarget",
      (world: World, key: object) =>
        world.server.collection(FENCING_TARGETS).mergePatch(key as never, { status: { etcdMember: null } }, "status"),
    ],
  ] as const) {
    it(`a member of etcd whose Node was deleted no longer counts when ${how}`, () =>
      World.run(PLANE, async (world) => {
        await loseMembers(world);
        // This also holds for the leader that has observed the deletion.
        for (const name of LOST) clear(world, { namespace: NAMESPACE, name });
        await world.hang("n3");
        world.remediate("n3");
        await world.phase("n3", "Succeeded");
      }));
  }

  it("a member of etcd whose Node was deleted is not powered off while etcd needs it", () =>
    World.run({ ...PLANE, hosts: ["n1", "n2", "n3"] }, async (world) => {
      maintain(world, "n1", true);
      await world.hang("n1");
      world.remediate("n1", BRIEF);
      await world.until("n1 waits", () => world.condition("n1", "Processing") === "True Maintenance");
      world.server.collection(NODES).delete({ name: "n1" });
      await world.hang("n2");
      maintain(world, "n1", false);
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneQuorum");
      assert.deepEqual(world.powerLog, []);
    }));
});
