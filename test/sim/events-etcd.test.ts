import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { World } from "./world.ts";

// The API server may store Events in a separate etcd (--etcd-servers-overrides), which fills up first in a large
// cluster.

const FULL = { kind: "status", status: 500, message: "etcdserver: mvcc: database space exceeded" } as const;
const EVENTS = { resource: "events", verbs: ["create", "patch"], client: "agent" } as const;
const HOSTS = Array.from({ length: 30 }, (_, index) => `n${index + 1}`);

describe("where only the etcd of Events is full", () => {
  it("a dead node is fenced as fast as ever", () =>
    World.run({}, async (world) => {
      world.server.faults.inject({ match: EVENTS, times: Infinity, action: FULL });
      await world.hang("n1");
      world.remediate("n1");
      await world.until("the taint is on the node", () => world.markLog.includes("n1 +taint"), 10_000);
      await world.phase("n1", "Succeeded");
    }));

  it("every one of thirty dead nodes is fenced, though a fence begins every 10 s and each reports steps", () =>
    World.run({ hosts: HOSTS }, async (world) => {
      world.server.faults.inject({ match: EVENTS, times: Infinity, action: FULL });
      for (const host of HOSTS) world.rack.host(host).hang();
      await world.clock.advance(90_000);
      for (const host of HOSTS) {
        world.remediate(host);
        await world.clock.advance(10_000);
      }
      for (const host of HOSTS) await world.phase(host, "Succeeded");
      assert.deepEqual(world.violations, []);
    }));
});
