import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCED_BY } from "../../src/api/names/annotations.ts";
import { NAMESPACE, World } from "./world.ts";

const REMEDIATIONS = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`;

describe("a taint that was put on, and not recorded yet", () => {
  it("a taint that was put on, and not recorded yet, is removed by the next process before all else, since nothing is proven to it", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      onTaint(world, () =>
        world.server.faults.inject({
          match: { method: "PATCH", pathPrefix: REMEDIATIONS, client: "agent" },
          times: 1,
          action: { kind: "hang" },
        }),
      );
      world.remediate("n1");
      await world.until("the taint is on", () => world.markLog.includes("n1 +taint"));
      await world.killAgent();
      world.otherClientOrders("n1", "On");
      await world.until("n1 is on", () => world.rack.host("n1").power === "On");
      world.startAgent();
      await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 3_000);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("a taint that was put on, and not recorded yet, is removed when the host comes on while the API server fails", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const match = { pathPrefix: "/api/v1/nodes/n1", client: "agent" };
      onTaint(world, () => {
        world.server.faults.inject({ match: { ...match, method: "GET" }, times: 6, action: { kind: "drop" } });
        world.otherClientOrders("n1", "On");
      });
      world.server.faults.inject({ match: { ...match, method: "PATCH" }, times: 1, action: { kind: "loseAnswer" } });
      world.remediate("n1");
      await world.until("the taint is on", () => world.markLog.includes("n1 +taint"));
      await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 15_000);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("a taint that was put on, and not recorded yet, which the API server refuses permanently leaves no host off", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.server.faults.inject({
        match: { method: "PATCH", pathPrefix: "/api/v1/nodes/n1", client: "agent" },
        times: Infinity,
        action: { kind: "status", status: 403 },
      });
      world.remediate("n1", { retryLimit: 0, powerOffTimeout: "30s" });
      await world.phase("n1", "Failed", 600_000);
      assert.equal(world.rack.host("n1").power, "On");
      assert.match(world.condition("n1", "Succeeded") ?? "", /^False/);
    }));
});

/** Calls `act` once, as soon as ironfence's taint is on. */
function onTaint(world: World, act: () => void): void {
  const stop = world.server.onChange(({ object }) => {
    if (object.kind !== "Node" || object.metadata.annotations?.[FENCED_BY] === undefined) return;
    stop();
    act();
  });
}
