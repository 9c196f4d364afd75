import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { parseTimeMs, toTime } from "../../src/runtime/time.ts";
import { begun, cutPower, INSTANT, isTainted, ordersOfAgent, runEarly } from "./early-world.ts";
import type { World } from "./world.ts";

// `poweroff` on a host whose node is not cordoned: the kubelet ends first, and the power goes off when everything else
// has ended. A kubelet with `shutdownGracePeriod` first reports that the node is not Ready and ends its pods.

const HOSTS = ["n1", "n2"].map((name) => ({ name, ...INSTANT }));
/** Time from the end of the kubelet until the power is off, from a fast system to one that waits for a unit. */
const SHUTDOWNS_MS = [0, 2_000, 5_000, 9_000, 11_000, 12_500, 14_000, 15_500, 16_500, 18_000, 25_000, 36_000];
/** Time from the last reading of the power to an order that depends on it. */
const ON_ITS_WAY_MS = 1_500;
/** The grace period of Kubernetes and the duration of the health check. */
const ORDINARY_MS = 340_000;

/** The kubelet of n1 ends, and after `forMs` its host is off. */
async function powerOff(world: World, forMs: number): Promise<void> {
  world.network.cut.add("n1");
  await world.clock.advance(forMs);
  cutPower(world, "n1");
  // In the next boot, the kubelet reaches the API server again.
  world.network.cut.delete("n1");
}

function sayNotReady(world: World): void {
  const lastTransitionTime = toTime(world.clock.nowMs());
  const ready = { type: "Ready", status: "False", reason: "KubeletNotReady", message: "node is shutting down" };
  const conditions = [{ ...ready, lastTransitionTime }];
  world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
}

const offsOf = (world: World): number => world.powerLog.filter((entry) => entry === "n1 ForceOff").length;

describe("a poweroff without a cordon", () => {
  for (const forMs of SHUTDOWNS_MS) {
    it(`a poweroff without a cordon moves the pods once the host is off, ${forMs} ms after its kubelet ended, and the host stays off as long as without ironfence`, () =>
      runEarly({ hosts: HOSTS }, async (world) => {
        world.createPod("n1", "db");
        await world.clock.advance(forMs % 7_000);
        const fromMs = world.clock.nowMs();
        await powerOff(world, forMs);
        await world.until("the pod is gone", () => world.pods("n1").length === 0, 45_000);
        const [remediation] = begun(world);
        const notBeforeMs = parseTimeMs(remediation?.spec.powerOnNotBefore) ?? assert.fail();
        assert.ok(notBeforeMs >= fromMs + ORDINARY_MS, `${notBeforeMs - fromMs} ms`);
        await world.clock.advance(notBeforeMs - world.clock.nowMs() - 1_000);
        assert.deepEqual(ordersOfAgent(world), ["n1 ForceOff"]);
        assert.equal(world.rack.host("n1").power, "Off");
      }));
  }

  for (const forMs of SHUTDOWNS_MS) {
    it(`a poweroff without a cordon starts nothing early if the kubelet reports the shutdown of its node, ${forMs} ms before the power is off`, () =>
      runEarly({ hosts: HOSTS }, async (world) => {
        world.createPod("n1", "db");
        await world.clock.advance(forMs % 7_000);
        const fromMs = world.clock.nowMs();
        sayNotReady(world);
        await powerOff(world, forMs);
        // Counted from Ready=False, which comes before the last renewal of the lease.
        await world.clock.advance(fromMs + 299_000 - world.clock.nowMs());
        assert.equal(begun(world).length, 0);
        assert.deepEqual(ordersOfAgent(world), []);
        assert.equal(isTainted(world, "n1"), false);
      }));
  }

  it("a poweroff without a cordon leaves the host to the user who powers it on again, at every step of its release", async () => {
    let effects = Infinity;
    for (let at = 0; at < effects; at += 1) {
      let seen = 0;
      let world: World | undefined;
      const interference = {
        effect: (_agent: string, _what: string) => {
          if (world === undefined) return undefined;
          if (seen === at) world.clock.schedule(0, () => world?.otherClientOrders("n1", "On"));
          seen += 1;
          return undefined;
        },
      };
      await runEarly({ hosts: HOSTS, interference }, async (started) => {
        started.createPod("n1", "db");
        await powerOff(started, 3_000);
        world = started;
        const wasOn = (): boolean => started.powerLog.includes("n1 On");
        await started.clock.advance(60_000);
        // The workloads are released and nothing else is done, so the number of effects is known.
        if (!wasOn()) {
          effects = seen;
          return;
        }
        await started.until("it is over", () => begun(started).length === 0 && started.isReady("n1"), 450_000);
        assert.equal(isTainted(started, "n1"), false);
        await started.clock.advance(60_000);
        // The state that was read just before the order may change while the order is in transit.
        const { orders } = started.rack.host("n1");
        const onAtMs = orders.find(({ type }) => type === "On")?.atMs ?? assert.fail();
        const later = orders.filter(({ type, atMs }) => type === "ForceOff" && atMs - onAtMs > ON_ITS_WAY_MS);
        assert.deepEqual(later, [], started.powerLog.join(", "));
        assert.ok(offsOf(started) <= 2, started.powerLog.join(", "));
        started.assertClean();
      });
    }
    assert.ok(effects > 8 && effects < 60, `${effects} effects`);
  });
});
