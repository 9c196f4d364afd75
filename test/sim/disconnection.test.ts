import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { disconnectionJudge } from "../../src/cli/dashboard/view/fences.ts";
import type { DisconnectionAdvice } from "../../src/cli/dashboard/view/disconnection.ts";
import { OVERVIEW } from "../unit/cli/overview-fixture.ts";
import { NAMESPACE, World } from "./world.ts";

// Compares the dashboard's answer to "safe to disconnect the power by hand?" with what the agent does next.

const KEY = { namespace: NAMESPACE, name: "n1" };

/** The dashboard's answer for n1 from the present state of the API server. */
function plug(world: World): DisconnectionAdvice {
  const { server } = world;
  return disconnectionJudge({
    ...OVERVIEW,
    nodes: [...server.collection<Node>(NODES).values()],
    targets: [...server.collection<FencingTarget>(FENCING_TARGETS).values()],
    remediations: [...server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()],
  })("n1");
}

function maintain(world: World, maintenance: boolean): void {
  world.server.collection(FENCING_TARGETS).mergePatch(KEY, { spec: { maintenance } });
}

/** Advances time in small steps until `holds` returns true. Collects the dashboard's answer after each step. */
async function watch(world: World, holds: () => boolean): Promise<DisconnectionAdvice[]> {
  const seen: DisconnectionAdvice[] = [];
  for (let step = 0; step < 6_000 && !holds(); step++) {
    await world.clock.advance(100);
    seen.push(plug(world));
  }
  assert.ok(holds(), "what was waited for did not happen");
  return seen;
}

describe("a plug that the dashboard calls safe to pull", () => {
  it("the dashboard calls no plug safe to pull at any moment of a fence without a hold", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      const seen = await watch(world, () => world.remediation("n1")?.status?.phase === "Succeeded");
      assert.ok(seen.length > 20, `${seen.length} answers`);
      assert.deepEqual(
        seen.filter(({ safe }) => safe),
        [],
      );
    }));

  it("a plug that the dashboard calls safe to pull is one of a hung host in maintenance, and gets no power order from then on", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("silent");
      world.remediate("n1", { powerOffTimeout: "1h" });
      await world.until("it is to be powered off", () => world.phases.get("n1")?.includes("Verifying") === true);
      maintain(world, true);
      const before = await watch(world, () => plug(world).safe);
      const orders = [...world.powerLog];
      world.rack.bmc("n1").setReachability("up");
      await world.clock.advance(600_000);
      assert.deepEqual(world.powerLog, orders, "no order was sent after the answer");
      assert.equal(plug(world).safe, true);
      assert.ok(before.length > 0);
      maintain(world, false);
      assert.equal(plug(world).safe, false, "at once, before any agent has read that maintenance is over");
      await world.phase("n1", "Succeeded");
    }));

  it("the dashboard calls no plug safe to pull while workloads are released, even during maintenance", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
      await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
      maintain(world, true);
      await world.clock.advance(120_000);
      const { safe, why } = plug(world);
      assert.equal(safe, false);
      assert.match(why, /a BMC without power shows nothing/);
      maintain(world, false);
      world.freePod();
      await world.phase("n1", "Succeeded");
    }));
});
