import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE, World } from "./world.ts";

// What holds power orders: the stop switch holds only power-offs, maintenance of a target holds every order.

const KEY = { namespace: NAMESPACE, name: "n1" };

function hold(world: World, how: "pause" | "maintenance", on: boolean): void {
  if (how === "pause") world.pause(on);
  else world.server.collection(FENCING_TARGETS).mergePatch(KEY, { spec: { maintenance: on } });
}

/** Fences n1 until it is off. A pod does not leave. */
async function fence(world: World, strategy: Record<string, unknown> = {}): Promise<void> {
  await world.holdPod();
  world.remediate("n1", { retryLimit: 0, drainTimeout: "30m", ...strategy });
  await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
}

for (const how of ["pause", "maintenance"] as const) {
  describe(`a ${how} that is stored`, () => {
    it(`a ${how} that is stored keeps a host from being powered off although no watch shows it`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        const group = how === "pause" ? "/api/v1/namespaces" : "/apis/ironfence.io/v1alpha1/namespaces";
        const plural = how === "pause" ? "configmaps" : "fencingtargets";
        world.server.faults.lagWatches({ client: "agent", pathPrefix: `${group}/${NAMESPACE}/${plural}` }, 3_600_000);
        hold(world, how, true);
        await world.clock.advance(60_000);
        world.remediate("n1");
        await world.clock.advance(120_000);
        assert.deepEqual(world.powerLog, []);
        assert.equal(world.condition("n1", "Processing"), how === "pause" ? "True Paused" : "True Maintenance");
        hold(world, how, false);
        await world.phase("n1", "Succeeded");
      }));
  });
}

describe("a hold that is stored", () => {
  it("a hold that is stored keeps a host in maintenance from being powered on though no watch shows it", () =>
    World.run({}, async (world) => {
      await fence(world);
      const pathPrefix = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`;
      world.server.faults.lagWatches({ client: "agent", pathPrefix }, 3_600_000);
      hold(world, "maintenance", true);
      world.freePod();
      await world.clock.advance(120_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      assert.equal(world.condition("n1", "Processing"), "True Maintenance");
      hold(world, "maintenance", false);
      await world.phase("n1", "Succeeded");
    }));

  for (const [what, pathPrefix] of [
    ["the stop switch", `/api/v1/namespaces/${NAMESPACE}/configmaps/ironfence-pause`],
    ["the target", `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets/n1`],
  ] as const) {
    for (const [how, action, latencyMs] of [
      ["answer 500", { kind: "status", status: 500 }, 150],
      ["have no answer", { kind: "hang" }, 150],
      ["have no answer, and its BMC is slow", { kind: "hang" }, 700],
    ] as const) {
      it(`a hold that is stored leaves no host off if reads of ${what} ${how}`, () =>
        World.run({ interference: { latencyMs: () => latencyMs } }, async (world) => {
          await fence(world);
          const match = { method: "GET", watch: false, pathPrefix, client: "agent" } as const;
          world.server.faults.inject({ match, times: Infinity, action });
          const store = { resource: "baremetalremediations/status", client: "agent" };
          world.server.faults.inject({ match: store, times: Infinity, action: { kind: "delay", delayMs: 1_000 } });
          world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
          await world.until("n1 is powered on", () => world.powerLog.includes("n1 On"), 60_000);
        }));
    }
  }

  for (const [what, path] of [
    ["the stop switch", `/api/v1/namespaces/${NAMESPACE}/configmaps/ironfence-pause`],
    ["the target", `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets/n1`],
  ] as const) {
    it(`a hold that is stored still holds power-offs, and reports that, if ${what} cannot be read`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        const match = { method: "GET", watch: false, pathPrefix: path, client: "agent" } as const;
        world.onPhase("n1", "Verifying", () =>
          world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } }),
        );
        world.remediate("n1");
        await world.clock.advance(60_000);
        assert.deepEqual(world.powerLog, []);
        const processing = world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Processing");
        assert.equal(processing?.reason, "PauseUnknown");
        assert.match(processing.message, /could not be read/);
        world.server.faults.clear();
        await world.phase("n1", "Succeeded");
      }));
  }
});

describe("the stop switch", () => {
  it("the stop switch powers a host on that is off already", () =>
    World.run({}, async (world) => {
      await fence(world);
      world.pause(true);
      await world.clock.advance(5_000);
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("the stop switch lets an undo power a host on", () =>
    World.run({}, async (world) => {
      await fence(world);
      world.pause(true);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      await world.until("it is gone", () => world.remediation("n1") === undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
      world.freePod();
    }));

  it("the stop switch leaves no host off between two attempts", () =>
    World.run({}, async (world) => {
      await fence(world, { retryLimit: 1, powerOnTimeout: "60s" });
      const bmc = world.rack.bmc("n1");
      bmc.orderDelayMs = 10_000_000;
      world.freePod();
      await world.until("its On is out of time", () => world.remediation("n1")?.status?.retryCount === 1);
      world.pause(true);
      bmc.orderDelayMs = 0;
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False Paused");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.assertClean();
    }));

  it("the stop switch leaves no host off for the remediation that waits for it", () =>
    World.run({}, async (world) => {
      await fence(world);
      world.remediate("n1", {}, "second");
      await world.until("it waits", () => world.condition("second", "Processing") === "True HostBusy");
      world.pause(true);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.freePod();
      await world.phase("second", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    }));

  it("a pause holds a further power-off, and stops the time of its state", () =>
    World.run({}, async (world) => {
      await fence(world, { powerOffTimeout: "60s" });
      world.rack.host("n1").failDisk();
      world.pause(true);
      world.otherClientOrders("n1", "On");
      await world.until("the proof is lost", () => world.condition("n1", "Processing") === "True Paused");
      await world.clock.advance(3_600_000);
      assert.equal(world.remediation("n1")?.status?.phase, "PoweringOff");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.rack.host("n1").replaceDisk();
      world.pause(false);
      world.freePod();
      await world.phase("n1", "Succeeded");
    }));
});

/** Powers n1 off by an order whose intent was stored but not its result, and ends the agent. */
async function loseOrder(world: World): Promise<void> {
  await world.hang("n1");
  const match = { client: "agent", method: "PATCH", pathPrefix: "/apis/ironfence.io/v1alpha1/namespaces/" } as const;
  world.onPhase("n1", "PoweringOff", () =>
    world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 500 } }),
  );
  world.remediate("n1", { retryLimit: 0, powerOffTimeout: "60s" });
  await world.until("n1 is off", () => world.powerLog.includes("n1 ForceOff"));
  await world.killAgent();
  world.server.faults.clear();
  assert.equal(world.remediation("n1")?.status?.attempt?.sent, false);
}

describe("a host that reads Off while a further power-off of it is held", () => {
  it("a host that reads Off while a further power-off of it is held is powered on by the stop switch, if it is not known whether the last one was sent", () =>
    World.run({}, async (world) => {
      await loseOrder(world);
      world.pause(true);
      world.startAgent();
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False Paused");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    }));

  it("a host that reads Off while a further power-off of it is held waits in maintenance, if it is not known whether the last one was sent, and is fenced after that", () =>
    World.run({}, async (world) => {
      await loseOrder(world);
      hold(world, "maintenance", true);
      world.startAgent();
      await world.clock.advance(600_000);
      assert.equal(world.condition("n1", "Processing"), "True Maintenance");
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      hold(world, "maintenance", false);
      await world.phase("n1", "Succeeded");
    }));

  for (const how of ["pause", "maintenance"] as const) {
    it(`a host that reads Off during a ${how} is proven off and released, if its last power-off was sent`, () =>
      World.run({}, async (world) => {
        await fence(world, { powerOffTimeout: "60s" });
        hold(world, how, true);
        world.rack.bmc("n1").pretendPower("PoweringOff", 90_000);
        const held = how === "pause" ? "True Paused" : "True Maintenance";
        await world.until("its proof is lost", () => world.condition("n1", "Processing") === held, 60_000);
        await world.until("it is tainted again", () => world.markLog.at(-1) === "n1 +taint", 120_000);
        assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
        world.freePod();
        if (how === "pause") await world.phase("n1", "Succeeded");
      }));
  }
});

describe("maintenance of a target", () => {
  it("maintenance of a target holds an On until it is over", () =>
    World.run({}, async (world) => {
      await fence(world, { powerOnTimeout: "60s" });
      hold(world, "maintenance", true);
      await world.clock.advance(5_000);
      world.freePod();
      await world.clock.advance(3_600_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      assert.equal(world.condition("n1", "Processing"), "True Maintenance");
      hold(world, "maintenance", false);
      await world.phase("n1", "Succeeded");
    }));
});

describe("a pause that ends by itself", () => {
  for (const agentAheadMs of [0, 600_000]) {
    it(`a pause that ends by itself ends by the API server's clock if the agent's clock is ${agentAheadMs / 60_000} minutes ahead`, () =>
      World.run({ agentAheadMs }, async (world) => {
        await world.hang("n1");
        world.pause(true, new Date(world.clock.nowMs() + 300_000).toISOString());
        world.remediate("n1", { retryLimit: 0 });
        await world.clock.advance(295_000);
        assert.deepEqual(world.powerLog, []);
        await world.phase("n1", "Succeeded", 180_000);
      }));
  }

  /** Lets n1 wait for a pause of five minutes. */
  async function waits(world: World): Promise<void> {
    await world.hang("n1");
    world.pause(true, new Date(world.server.nowMs() + 300_000).toISOString());
    world.remediate("n1", { retryLimit: 0 });
    await world.clock.advance(60_000);
    assert.equal(world.condition("n1", "Processing"), "True Paused");
  }

  it("a pause that ends by itself ends no sooner if the clock of the agent is set forward meanwhile, and its network has become slower", () => {
    let latencyMs = 0;
    return World.run({ interference: { latencyMs: () => latencyMs } }, async (world) => {
      await waits(world);
      latencyMs = 400;
      world.jumpAgentClock(600_000);
      await world.clock.advance(230_000);
      assert.deepEqual(world.powerLog, []);
      await world.phase("n1", "Succeeded", 240_000);
    });
  });

  it("a pause that ends by itself ends within a minute if the clock of the API server is set forward over its end", () =>
    World.run({}, async (world) => {
      await waits(world);
      world.jumpServerClock(600_000);
      // Any answer shows the new time. An agent with a lease gets one every 2 s.
      const other = { namespace: NAMESPACE, name: "n2" };
      world.server.collection(FENCING_TARGETS).mergePatch(other, { spec: { maintenance: true } });
      await world.until("n1 is powered off", () => world.powerLog.includes("n1 ForceOff"), 60_000);
      await world.phase("n1", "Succeeded", 180_000);
    }));

  it("a pause that ends by itself goes on for longer if the clock of the API server is set back", () =>
    World.run({}, async (world) => {
      await waits(world);
      world.jumpServerClock(-600_000);
      await world.clock.advance(830_000);
      assert.deepEqual(world.powerLog, []);
      await world.phase("n1", "Succeeded", 180_000);
    }));
});
