import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { HOLDS, holdDuringReading } from "./holds.ts";
import { giveOutlets, OUTLETS, storeEnrolment } from "./outlets.ts";
import { bears, NAMESPACE, World } from "./world.ts";

// An AC cycle between the release and the power-on. It is ordered once per power cycle, when the host is off, its
// workloads have left and its taint is removed. No host stays off because of it.

const OTHER_UUID = "00000000-0000-4000-8000-00000000abcd";

const CYCLE = { powerOn: "ACCycle", retryLimit: 0 };

type Effect = "done" | "ignored" | "dead";

/** Hangs and remediates n1, whose BMC offers an AC cycle with this effect. */
async function fence(world: World, effect: Effect | undefined, strategy: Record<string, unknown> = {}): Promise<void> {
  if (effect !== undefined) world.faults.cycles.set("n1", effect);
  await world.hang("n1");
  world.remediate("n1", { ...CYCLE, ...strategy });
}

const cyclesOf = (world: World): readonly number[] => world.rack.bmc("n1").acCycles;
const cycleOf = (world: World) => world.remediation("n1")?.status?.acCycle;
const stepsOf = (world: World): string[] => (world.remediation("n1")?.status?.timeline ?? []).map(({ step }) => step);

function ordersOf(world: World, type: string): number[] {
  return world.rack
    .host("n1")
    .orders.filter((order) => order.type === type)
    .map(({ atMs }) => atMs);
}

describe("an AC cycle", () => {
  it("an AC cycle is ordered while the host is off and its taint is gone, and the host is powered on when its BMC is back", () =>
    World.run({}, async (world) => {
      let untaintedAtMs = NaN;
      let power = "";
      world.server.onChange(() => {
        if (world.markLog.includes("n1 -taint") && Number.isNaN(untaintedAtMs)) untaintedAtMs = world.clock.nowMs();
        if (cyclesOf(world).length === 1 && power === "") power = world.rack.host("n1").power;
      });
      await fence(world, "done");
      await world.phase("n1", "Succeeded");
      const [cycledMs = NaN] = cyclesOf(world);
      const [onMs = NaN] = ordersOf(world, "On");
      assert.equal(cyclesOf(world).length, 1);
      assert.equal(power, "Off");
      assert.ok(untaintedAtMs <= cycledMs, "the taint is gone before");
      assert.ok(onMs - cycledMs > 50_000, `the BMC does not answer for 53 s: ${onMs - cycledMs} ms`);
      assert.equal(cycleOf(world)?.result, "Done");
      assert.ok(!stepsOf(world).includes("PowerOffPending"), "nothing more is waited for");
      assert.ok(world.isReady("n1"));
      world.assertClean();
    }));

  it("an AC cycle is not ordered unless the strategy says so", () =>
    World.run({}, async (world) => {
      await fence(world, "done", { powerOn: "On" });
      await world.phase("n1", "Succeeded");
      assert.deepEqual(cyclesOf(world), []);
    }));

  it("an AC cycle that the BMC does not offer, or refuses, delays the power-on by nothing", async () => {
    for (const effect of [undefined, "done"] as const) {
      await World.run({}, async (world) => {
        if (effect !== undefined) world.faults.refuses.add("n1 acCycle");
        await fence(world, effect);
        await world.phase("n1", "Succeeded");
        assert.deepEqual(cyclesOf(world), []);
        assert.equal(cycleOf(world)?.result, "NotSent");
        const [onMs = NaN] = ordersOf(world, "On");
        assert.ok(onMs - Date.parse(cycleOf(world)?.orderedAt ?? "") < 3_000);
        assert.ok(world.notes.some(({ reason, type }) => reason === "ACCycleNotSent" && type === "Warning"));
      });
    }
  });

  it("an AC cycle that the BMC takes and ignores ends after its time, and the host is powered on", () =>
    World.run({}, async (world) => {
      await fence(world, "ignored", { acCycleTimeout: "90s" });
      await world.phase("n1", "Succeeded");
      assert.equal(cycleOf(world)?.result, "Unseen");
      const [cycledMs = NaN] = cyclesOf(world);
      const [onMs = NaN] = ordersOf(world, "On");
      assert.ok(onMs - cycledMs >= 89_000 && onMs - cycledMs <= 93_000, `${onMs - cycledMs} ms`);
    }));

  it("an AC cycle after which the BMC does not come back fails the remediation with the reason", () =>
    World.run({}, async (world) => {
      await fence(world, "dead", { acCycleTimeout: "60s", powerOnTimeout: "60s" });
      await world.until("the undo is over", () => world.remediation("n1")?.status?.phase === "Failed", 1_200_000);
      assert.equal(cycleOf(world)?.result, "Unseen");
      assert.match(world.condition("n1", "Succeeded") ?? "", /^False BMC(Timeout|Unreachable)$/);
      assert.ok(stepsOf(world).includes("ACCycleUnseen"));
    }));

  it("an AC cycle whose answer is lost counts as ordered, and is not repeated", () =>
    World.run({}, async (world) => {
      world.faults.losesAnswer.add("n1 acCycle");
      await fence(world, "done");
      await world.phase("n1", "Succeeded");
      assert.equal(cyclesOf(world).length, 1);
      assert.equal(cycleOf(world)?.result, "Done");
    }));

  it("an AC cycle is not ordered again by the agent that follows one that ended right after it", () =>
    World.run({}, async (world) => {
      await fence(world, "done");
      await world.until("it is ordered", () => cyclesOf(world).length === 1);
      await world.killAgent();
      await world.clock.advance(1_000);
      world.startAgent();
      await world.phase("n1", "Succeeded");
      assert.equal(cyclesOf(world).length, 1);
      assert.ok(world.isReady("n1"));
    }));

  it("an AC cycle is not ordered by the agent that follows one that ended between its intent and the order", () =>
    World.run({}, async (world) => {
      let killed: Promise<void> | undefined;
      const stop = world.server.onChange(() => {
        if (cycleOf(world) === undefined) return;
        stop();
        queueMicrotask(() => void (killed ??= world.killAgent()));
      });
      await fence(world, "done", { acCycleTimeout: "60s" });
      await world.until("the agent has ended", () => killed !== undefined);
      await killed;
      await world.clock.advance(1_000);
      world.startAgent();
      await world.phase("n1", "Succeeded");
      assert.ok(cyclesOf(world).length <= 1);
    }));
});

/** Runs `test` on a world in which n1 has enrolled outlets, and its BMC offers no AC cycle. */
function withOutlets(test: (world: World) => Promise<void>): Promise<void> {
  return World.run({ hosts: [{ name: "n1", restorePolicy: "AlwaysOn" }, { name: "n2" }] as never }, async (world) => {
    giveOutlets(world, "n1");
    storeEnrolment(world, "n1");
    await world.clock.advance(5_000);
    await test(world);
  });
}

const switchedOf = (world: World): string[] => world.devices.pdus.orders.map((order) => order.replace("snmp://", ""));
const bothOn = (world: World): boolean => OUTLETS.every((address) => world.devices.pdus.outlet(address).isOn);

describe("an AC cycle by outlets", () => {
  it("the outlets of a host that is off are switched off and on, if its BMC has no AC cycle", () =>
    withOutlets(async (world) => {
      const at = new Map<string, number>();
      for (const address of OUTLETS) {
        world.devices.pdus.outlet(address).onSwitch = (isOn) => at.set(`${address} ${isOn}`, world.clock.nowMs());
      }
      let power = "";
      let isTainted = true;
      world.server.onChange(() => {
        if (world.devices.pdus.orders.length === 0 || power !== "") return;
        power = world.rack.host("n1").power;
        isTainted = !world.markLog.includes("n1 -taint");
      });
      await fence(world, undefined);
      await world.phase("n1", "Succeeded");
      assert.deepEqual([power, isTainted], ["Off", false]);
      const orders = switchedOf(world);
      assert.deepEqual(orders.slice(0, 2).toSorted(), ["pdu-1/1 Off", "pdu-1/2 Off"]);
      assert.ok(orders.slice(2).every((order) => order.endsWith("On")));
      const darkMs = (at.get(`${OUTLETS[0]} true`) ?? NaN) - (at.get(`${OUTLETS[1]} false`) ?? NaN);
      assert.ok(darkMs >= 10_000 && darkMs <= 60_000, `${darkMs} ms`);
      const { orderedAt = "", endsAt = "", result } = cycleOf(world) ?? {};
      const cutMs = Date.parse(endsAt) - Date.parse(orderedAt);
      assert.ok(cutMs >= 20_000 && cutMs <= 25_000, `${cutMs} ms`);
      assert.equal(result, "Done");
      assert.match(cycleOf(world)?.message ?? "", /all outlets of the host were off/);
      assert.ok(bothOn(world) && world.isReady("n1"));
      world.assertClean();
    }));

  it("outlets whose enrolment has ended are not switched for an AC cycle", () =>
    withOutlets(async (world) => {
      world.devices.pdus.outlet(OUTLETS[1]).label = "worker-9";
      await fence(world, undefined);
      await world.phase("n1", "Succeeded");
      assert.deepEqual(
        switchedOf(world).filter((order) => order.endsWith("Off")),
        [],
      );
      assert.equal(cycleOf(world)?.result, "NotSent");
    }));

  it("the outlets of a host that was powered off by them are not switched off a second time", () =>
    withOutlets(async (world) => {
      world.rack.bmc("n1").setReachability("silent");
      await fence(world, undefined);
      await world.phase("n1", "Succeeded");
      assert.equal(switchedOf(world).filter((order) => order.endsWith("Off")).length, 2);
      assert.equal(cycleOf(world)?.result, "NotSent");
      assert.ok(bothOn(world));
    }));

  it("outlets that do not open end the AC cycle after its time, and the host is powered on", () =>
    withOutlets(async (world) => {
      world.devices.pdus.outlet(OUTLETS[1]).isWelded = true;
      await fence(world, undefined, { acCycleTimeout: "60s" });
      await world.phase("n1", "Succeeded");
      assert.equal(cycleOf(world)?.result, "Unseen");
      assert.ok(bothOn(world) && world.isReady("n1"));
    }));

  it("an agent that ends while the outlets are off leaves them to the next one, which switches them on after 20 s", () =>
    withOutlets(async (world) => {
      await fence(world, undefined, { acCycleTimeout: "5m" });
      await world.until("an outlet is off", () => switchedOf(world).includes("pdu-1/2 Off"));
      const cutMs = world.clock.nowMs();
      await world.killAgent();
      await world.clock.advance(1_000);
      world.startAgent();
      await world.until("the outlets are on", () => bothOn(world));
      const darkMs = world.clock.nowMs() - cutMs;
      assert.ok(darkMs >= 18_000 && darkMs <= 25_000, `${darkMs} ms`);
      assert.equal(cycleOf(world)?.result, "Done");
      await world.phase("n1", "Succeeded");
      assert.equal(switchedOf(world).filter((order) => order.endsWith("Off")).length, 2, "it is not repeated");
      assert.ok(bothOn(world) && world.isReady("n1"));
      world.assertClean();
    }));
});

describe("an AC cycle that must not be ordered", () => {
  it("an AC cycle is not ordered if workloads have not left in time", () =>
    World.run({}, async (world) => {
      world.faults.cycles.set("n1", "done");
      await world.holdPod();
      world.remediate("n1", { ...CYCLE, drainTimeout: "20s" });
      await world.phase("n1", "Succeeded");
      assert.deepEqual(cyclesOf(world), []);
      assert.equal(world.condition("n1", "WorkloadsReleased"), "False DrainTimeout");
    }));

  it("an AC cycle is not ordered if another host answers before the power-on", () =>
    World.run({}, async (world) => {
      const bmc = world.rack.bmc("n1");
      const pretend = (serialNumber: string | undefined): void =>
        bmc.pretendIdentity(serialNumber === undefined ? undefined : { systemUUID: OTHER_UUID, serialNumber });
      world.onPhase("n1", "PoweringOn", () => pretend("SN-OTHER"));
      await fence(world, "done");
      await world.phase("n1", "Undoing");
      assert.deepEqual(cyclesOf(world), []);
      pretend(undefined);
      await world.phase("n1", "Failed");
      assert.deepEqual(cyclesOf(world), []);
    }));

  it("an AC cycle is not ordered if another client has powered the host on", () =>
    World.run({}, async (world) => {
      world.onPhase("n1", "PoweringOn", () => world.rack.bmc("n1").pretendPower("On", 10_000));
      await fence(world, "done");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(cyclesOf(world), []);
      assert.match(cycleOf(world)?.message ?? "", /not Off/);
    }));

  it("an AC cycle is not ordered while the target is in maintenance", () =>
    World.run({}, async (world) => {
      const maintain = (maintenance: boolean): void => {
        const key = { namespace: NAMESPACE, name: "n1" };
        world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance } });
      };
      world.onPhase("n1", "PoweringOn", () => maintain(true));
      await fence(world, "done");
      await world.phase("n1", "PoweringOn");
      await world.clock.advance(120_000);
      assert.deepEqual(cyclesOf(world), []);
      maintain(false);
      await world.phase("n1", "Succeeded");
      assert.equal(cyclesOf(world).length, 1);
    }));

  for (const [what, hold] of Object.entries(HOLDS))
    it(`an AC cycle is not ordered if ${what} while the power of its host is read`, () =>
      World.run({}, async (world) => {
        holdDuringReading(world, hold, () => cycleOf(world) !== undefined);
        await fence(world, "done");
        await world.until("it is over", () => cycleOf(world)?.result !== undefined);
        assert.equal(cycleOf(world)?.result, "NotSent");
        assert.deepEqual(cyclesOf(world), []);
      }));

  it("an AC cycle is not ordered while fencing is paused, and the host is powered on without it", () =>
    World.run({}, async (world) => {
      world.onPhase("n1", "PoweringOn", () => world.pause(true));
      await fence(world, "done");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(cyclesOf(world), []);
    }));
});

describe("an AC cycle of a host whose node is tainted", () => {
  it("an AC cycle of a host whose node is tainted is ordered only once it is off, by the agent that finds it", () =>
    World.run({}, async (world) => {
      let taints: Node["spec"]["taints"];
      let annotations: Record<string, string> = {};
      let hadTaint: boolean | undefined;
      world.server.onChange(() => {
        const node = world.node("n1");
        if (node !== undefined && bears(node, OUT_OF_SERVICE) && taints === undefined) {
          taints = node.spec.taints;
          annotations = node.metadata.annotations ?? {};
        }
      });
      let killed: Promise<void> | undefined;
      world.onPhase("n1", "PoweringOn", () => void (killed ??= world.killAgent()));
      await fence(world, "done");
      await world.until("the agent has ended", () => killed !== undefined);
      await killed;
      assert.deepEqual(cyclesOf(world), []);
      // Simulates that the API server has lost the last write to the Node.
      world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { spec: { taints }, metadata: { annotations } });
      world.startAgent();
      await world.until("it is ordered", () => {
        const node = world.node("n1");
        if (cyclesOf(world).length === 0 || node === undefined) return false;
        hadTaint ??= bears(node, OUT_OF_SERVICE);
        return true;
      });
      assert.equal(hadTaint, false);
      await world.phase("n1", "Succeeded");
    }));
});

describe("a host after an AC cycle", () => {
  it("a host after an AC cycle during which its remediation is deleted is not left off", () =>
    World.run({ hosts: [{ name: "n1", restorePolicy: "AlwaysOff" }, "n2"] }, async (world) => {
      await fence(world, "done");
      await world.until("it is ordered", () => cyclesOf(world).length === 1);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      await world.until("it is gone", () => world.remediation("n1") === undefined);
      assert.equal(world.rack.host("n1").power, "On");
      await world.clock.advance(300_000);
      assert.equal(world.rack.host("n1").power, "On");
      assert.equal(cyclesOf(world).length, 1);
    }));

  it("a host after an AC cycle that has no effect is restored, although that is known only when its node should be Ready", () =>
    World.run({}, async (world) => {
      await fence(world, "ignored", { acCycleTimeout: "30s", timeout: "60s" });
      await world.phase("n1", "Succeeded");
      assert.ok(stepsOf(world).includes("PowerOffPending"));
      assert.equal(ordersOf(world, "ForceOff").length, 1);
    }));

  for (const power of ["Off", "PoweringOn"] as const)
    it(`a host after an AC cycle without effect is restored although its BMC reports ${power} from then on`, () =>
      World.run({}, async (world) => {
        await fence(world, "ignored", { acCycleTimeout: "30s", timeout: "60s" });
        await world.phase("n1", "Restoring");
        world.rack.bmc("n1").pretendPower(power, 3_600_000);
        await world.phase("n1", "Succeeded", 300_000);
        assert.equal(ordersOf(world, "ForceOff").length, 1);
      }));

  it("a host after an AC cycle that takes effect late, when it is on again, is not left off", () =>
    World.run({}, async (world) => {
      await fence(world, "ignored", { acCycleTimeout: "30s", timeout: "60s" });
      await world.phase("n1", "Rejoining");
      // The BMC runs the cycle only now, and the host stays off, as after a loss of power.
      world.rack.host("n1").cutMains();
      await world.clock.advance(5_000);
      world.rack.host("n1").restoreMains();
      world.rack.host("n1").order("ForceOff");
      await world.phase("n1", "Failed", 1_200_000);
      await world.clock.advance(30_000);
      assert.equal(world.rack.host("n1").power, "On");
    }));
});
