import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../src/api/kubernetes/core.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { outageOf } from "../../src/api/kubernetes/outage.ts";
import { toMicroTime, toTime } from "../../src/runtime/time.ts";
import { createHealthCheck } from "./health-check.ts";
import { NAMESPACE, World } from "./world.ts";

// Both halves on one rack. Durations are the default of 300 s. A dead node is Unknown after 50 s.

/** With another way to release pods, nothing begins while a node is still Ready: see early-release.test.ts. */
const NOT_EARLY = { strategy: { podRelease: "GarbageCollector" } };
/** Shorter than the duration, and long enough for everything that does not wait for it. */
const SOON_MS = 120_000;

/** Runs `test` under a health check over all nodes. */
function run(asks: boolean, test: (world: World) => Promise<void>, agentAheadMs = 0): Promise<void> {
  return World.run({ detector: true, agentAheadMs }, async (world) => {
    const annotations = { [SKIP_DURATION_IF_OFF]: String(asks) };
    createHealthCheck(world, NOT_EARLY, { annotations, spec: { minHealthy: 0 } });
    // The first probe has ended then, and the next one may come at once.
    await world.clock.advance(10_000);
    await test(world);
  });
}

const created = (world: World): number => [...world.server.collection(BARE_METAL_REMEDIATIONS).values()].length;
const isUnknown = (world: World, name = "n1"): boolean => outageOf(world.node(name)) !== undefined;
const proof = (world: World) => world.target("n1")?.status?.offProof;
const notes = (world: World, reason: string): string[] =>
  world.notes.filter((note) => note.reason === reason).map(({ note }) => note);

/** Powers the host of n1 off, as a user does, and waits until the cluster notices. */
async function powerOff(world: World): Promise<void> {
  world.otherClientOrders("n1", "ForceOff");
  await world.until("n1 is Unknown", () => isUnknown(world));
}

function patchTarget(world: World, content: Record<string, unknown>, subresource?: "status"): void {
  world.server.collection(FENCING_TARGETS).mergePatch({ namespace: NAMESPACE, name: "n1" }, content, subresource);
}

function pauseCheck(world: World, pauseRequests: string[]): void {
  world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { pauseRequests } });
}

describe("the duration of a node whose host is proven off", () => {
  it("the duration of a node whose host is proven off is skipped: it is remediated at once, which is reported once, and comes back", () =>
    run(true, async (world) => {
      world.createPod("n1", "db");
      await powerOff(world);
      const startMs = world.clock.nowMs();
      await world.until("a remediation", () => created(world) === 1, 2_000);
      assert.ok(world.clock.nowMs() - startMs <= 1_000, `${world.clock.nowMs() - startMs} ms`);
      await world.until("n1 is back", () => created(world) === 0 && world.isReady("n1"));
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.deepEqual(world.pods("n1"), []);
      assert.equal(notes(world, "DurationSkipped").length, 1);
      assert.match(
        notes(world, "DurationSkipped")[0] ?? "",
        /Node n1 is remediated (29\d|300) s before its duration is over: FencingTarget ironfence\/n1 read its host Off twice/,
      );
      assert.equal(proof(world), undefined);
      world.assertClean();
    }));

  it("the duration of a node whose host is proven off is kept if no health check asks, and no BMC is asked a thing", () =>
    run(false, async (world) => {
      world.otherClientOrders("n1", "ForceOff");
      const calls = world.devices.calls.length;
      await world.until("n1 is Unknown", () => isUnknown(world));
      await world.clock.advance(SOON_MS);
      assert.equal(created(world), 0);
      assert.equal(world.devices.calls.length, calls);
      await world.until("a remediation", () => created(world) === 1, 200_000);
      assert.deepEqual(notes(world, "DurationSkipped"), []);
    }));
});

describe("no duration is skipped", () => {
  const cases: [string, (world: World) => Promise<void>][] = [
    [
      "a Ready node is not remediated before its duration is over, although its BMC reports Off and its target has a proof",
      async (world) => {
        world.rack.bmc("n1").pretendPower("Off", 600_000);
        const { uid } = world.node("n1")?.metadata ?? assert.fail();
        const offProof = { time: toTime(world.clock.nowMs()), nodeUID: uid, notReadySince: toTime(0) };
        patchTarget(world, { status: { powerState: "Off", offProof } }, "status");
      },
    ],
    [
      "a node that hangs while its host is on is not remediated before its duration is over",
      async (world) => {
        await world.hang("n1");
      },
    ],
    [
      "a node whose kubelet reports that it is not Ready is not remediated before its duration is over, although its BMC reports Off",
      async (world) => {
        world.rack.bmc("n1").pretendPower("Off", 600_000);
        world.rack.host("n1").hang();
        const lastTransitionTime = toTime(world.clock.nowMs());
        const conditions = [{ type: "Ready", status: "False", lastTransitionTime }];
        world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
        for (let seconds = 0; seconds < 30; seconds += 10) {
          const renewTime = toMicroTime(world.clock.nowMs());
          const key = { namespace: "kube-node-lease", name: "n1" };
          world.server.collection<Lease>(LEASES).mergePatch(key, { spec: { renewTime } });
          await world.clock.advance(10_000);
          assert.equal(created(world), 0);
        }
        world.rack.bmc("n1").pretendPower("On", 600_000);
      },
    ],
    [
      "a node whose target is in maintenance is not remediated before its duration is over",
      async (world) => {
        patchTarget(world, { spec: { maintenance: true } });
        await powerOff(world);
      },
    ],
    [
      "a node is not remediated before its duration is over under the stop switch",
      async (world) => {
        world.pause(true);
        await powerOff(world);
      },
    ],
    [
      "a cordoned node is not remediated before its duration is over",
      async (world) => {
        world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { spec: { unschedulable: true } });
        await powerOff(world);
      },
    ],
    [
      "a node is not remediated before its duration is over if its BMC answers for another host",
      async (world) => {
        world.rack.bmc("n1").rewire(world.rack.host("n2"));
        world.rack.host("n2").order("ForceOff");
        await world.hang("n1");
        world.server.collection(NODES).delete({ name: "n2" });
      },
    ],
    [
      "a node is not remediated before its duration is over after a single Off reading",
      async (world) => {
        const off = world.devices.calls.length;
        world.otherClientOrders("n1", "ForceOff");
        const read = (): boolean => world.devices.calls.slice(off).some(({ call }) => call === "readPower");
        await world.clock.advance(40_000);
        while (!read()) await world.clock.advance(5);
        // The BMC still answers this call.
        await world.clock.advance(25);
        world.rack.bmc("n1").pretendPower("PoweringOn", 600_000);
      },
    ],
    [
      "a node is not remediated before its duration is over if two targets name it",
      async (world) => {
        world.create(
          FENCING_TARGETS,
          { namespace: NAMESPACE, name: "n1-again" },
          { spec: { nodeName: "n1", devices: [{ address: "redfish://n1", credentialsSecretRef: { name: "bmc" } }] } },
        );
        await powerOff(world);
      },
    ],
    [
      "a node is not remediated before its duration is over because of a stale proof that is found after a restart",
      async (world) => {
        pauseCheck(world, ["a test"]);
        await powerOff(world);
        await world.until("a proof", () => proof(world) !== undefined, 5_000);
        await world.killAgent();
        await world.clock.advance(20_000);
        pauseCheck(world, []);
        world.rack.bmc("n1").setReachability("silent");
        world.startAgent();
      },
    ],
    [
      "a node is not remediated before its duration is over if its host was powered on again after the proof",
      async (world) => {
        pauseCheck(world, ["a test"]);
        await powerOff(world);
        await world.until("a proof", () => proof(world) !== undefined, 5_000);
        world.rack.host("n1").failDisk();
        world.otherClientOrders("n1", "On");
        await world.until("no proof", () => proof(world) === undefined, 40_000);
        pauseCheck(world, []);
      },
    ],
  ];
  for (const [name, arrange] of cases) {
    it(name, () =>
      run(true, async (world) => {
        await arrange(world);
        await world.clock.advance(SOON_MS);
        assert.equal(created(world), 0);
        assert.deepEqual(notes(world, "DurationSkipped"), []);
      }),
    );
  }

  it("no duration is skipped under a pause whose end has come by the agent's clock alone", () =>
    run(
      true,
      async (world) => {
        world.pause(true, toTime(world.server.nowMs() + 300_000));
        await powerOff(world);
        await world.clock.advance(SOON_MS);
        assert.equal(created(world), 0);
      },
      600_000,
    ));

  it("a duration is not skipped because of a watch that lags: target and pause are read again just before", () =>
    run(true, async (world) => {
      // Both changes come after the decision of the detector and before its live read.
      let orders = 0;
      const stop = world.server.onRequest(({ client, path, method, watch }) => {
        if (client !== "agent" || watch || method !== "GET" || !path.startsWith("/api/v1/nodes/n1")) return;
        orders += 1;
        world.pause(true);
      });
      await powerOff(world);
      await world.clock.advance(SOON_MS);
      assert.ok(orders > 0);
      assert.equal(created(world), 0);
      stop();
    }));
});
