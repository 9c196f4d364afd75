import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { WorkloadWorld } from "./world.ts";

const NO_SPACE = { kind: "status", status: 500, message: "etcdserver: mvcc: database space exceeded" } as const;
const WRITES = { verbs: ["create", "patch", "update", "delete"], client: "agent" } as const;

/** Waits until the agent has reported that etcd refuses its taint. */
async function refused(world: WorkloadWorld): Promise<void> {
  await world.until("the taint is refused", () => world.notes.some(({ note }) => note.includes("database space")));
}

describe("a node whose BMC powers another host, in a workload cluster whose etcd was full", () => {
  for (const healedAfterMs of [1_000, 15_000, 21_000, 40_000]) {
    it(`a node whose BMC powers another host is not tainted if the full etcd of its cluster takes writes again ${healedAfterMs / 1_000} s after it refused the taint`, () =>
      WorkloadWorld.run({}, async (world) => {
        const { workload } = world;
        workload.createPod("n1", "db");
        await world.clock.advance(3_000);
        workload.rack.bmc("n1").rewire(workload.rack.host("n2"));
        workload.rack.bmc("n1").pretendIdentity({ systemUUID: workload.rack.host("n1").spec.systemUUID });
        const uid = world.machine("m1", "n1");
        // Every client can read, and none can write, so the kubelet of n1 cannot renew its lease either.
        workload.network.cut.add("n1");
        await world.until("n1 is not Ready", () => !workload.isReady("n1"));
        workload.server.faults.inject({ match: WRITES, times: Infinity, action: NO_SPACE });
        world.remediateMachine("m1", uid);
        await refused(world);
        await world.clock.advance(healedAfterMs);
        workload.server.faults.clear();
        workload.network.cut.delete("n1");
        await world.until(
          "the verdict is stored",
          () => world.condition("Succeeded", "m1")?.startsWith("False") ?? false,
        );
        assert.equal(world.condition("Succeeded", "m1"), "False WrongHost");
        assert.equal(workload.pods("n1").length, 1);
      }));
  }
});

describe("a dead node of a workload cluster whose etcd was full", () => {
  it("a dead node of a workload cluster whose etcd was full is released once etcd takes writes again, though nothing else writes there", () =>
    WorkloadWorld.run({}, async (world) => {
      const { workload } = world;
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      workload.server.faults.inject({ match: WRITES, times: Infinity, action: NO_SPACE });
      world.remediateMachine("m1", uid, { powerOffTimeout: "300s" });
      await refused(world);
      workload.server.faults.clear();
      await world.until("the verdict is stored", () => world.condition("Succeeded", "m1")?.startsWith("True") ?? false);
    }));
});
