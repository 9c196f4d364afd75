import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { HostSpec } from "../../hack/rack/host.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { HOLDS, holdDuringIdentification } from "./holds.ts";
import { giveOutlets, OUTLETS, QUICK, storeEnrolment } from "./outlets.ts";
import { NAMESPACE, World } from "./world.ts";

const [FIRST, SECOND] = OUTLETS;
const NEVER = new AbortController().signal;

/** A host with a dead BMC, and its enrolled outlets on level 2. */
async function withDeadBmc(
  test: (world: World) => Promise<void>,
  { prepare, host }: { prepare?: (world: World) => void; host?: Partial<HostSpec> } = {},
): Promise<void> {
  const hosts = host && [{ name: "n1", ...host }, { name: "n2" }, { name: "n3" }];
  await World.run(hosts === undefined ? {} : { hosts }, async (world) => {
    giveOutlets(world, "n1");
    storeEnrolment(world, "n1");
    prepare?.(world);
    world.rack.bmc("n1").setReachability("silent");
    await world.hang("n1");
    await test(world);
  });
}

const spec = (world: World, change: Record<string, unknown>): void => {
  world.server
    .collection<FencingTarget>(FENCING_TARGETS)
    .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: change });
};

const isRelease = (mark: string): boolean => mark.endsWith("+taint");

const messagesOf = (world: World): string =>
  (world.remediation("n1")?.status?.timeline ?? []).map(({ message }) => message ?? "").join("\n");

const ordersOff = (world: World): string[] => world.devices.pdus.orders.filter((order) => order.endsWith("Off"));

describe("a host with enrolled outlets", () => {
  it("a host whose BMC is dead is fenced by all its outlets, released, and comes back without its BMC", () =>
    withDeadBmc(async (world) => {
      world.createPod("n1", "db");
      world.remediate("n1", QUICK);
      await world.until("it is off", () => world.rack.host("n1").power === "Off");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(ordersOff(world).toSorted(), [`${FIRST} Off`, `${SECOND} Off`]);
      assert.deepEqual(
        world.markLog.filter((mark) => mark.endsWith("taint")),
        ["n1 +taint", "n1 -taint"],
      );
      assert.equal(world.rack.host("n1").power, "On");
      world.assertClean();
    }));

  for (const [what, fail] of [
    ["refuses the power-off", (world: World) => world.faults.refuses.add("n1 ForceOff")],
    ["loses the answer to the power-off", (world: World) => world.faults.losesAnswer.add("n1 ForceOff")],
  ] as const) {
    it(`a host whose BMC ${what}, and then loses its power with the host, is proven off by its outlets at the first try`, () =>
      World.run({}, async (world) => {
        giveOutlets(world, "n1");
        storeEnrolment(world, "n1");
        await world.hang("n1");
        fail(world);
        // The BMC restarts with its host, and at first its Off does not count.
        world.remediate("n1", { ...QUICK, powerOffTimeout: "120s", powerOnTimeout: "120s", timeout: "120s" });
        await world.phase("n1", "PoweringOn", 60_000);
        assert.equal(ordersOff(world).length, OUTLETS.length, ordersOff(world).join(", "));
        await world.phase("n1", "Succeeded");
        world.assertClean();
      }));
  }

  it("a host that stays off when its power returns is ordered on through its BMC as soon as that answers", () =>
    withDeadBmc(
      async (world) => {
        // The BMC restarts with its host, and at first its Off does not count.
        world.remediate("n1", { ...QUICK, powerOnTimeout: "120s", timeout: "120s" });
        await world.until("it is off", () => world.rack.host("n1").power === "Off");
        world.rack.bmc("n1").setReachability("up");
        await world.phase("n1", "Succeeded");
        assert.deepEqual(world.powerLog, ["n1 On"]);
        world.assertClean();
      },
      { host: { restorePolicy: "AlwaysOff" } },
    ));

  it("a host that stays off when its power returns is powered on in time through a BMC that answers slowly while it starts", () =>
    World.run(
      { hosts: [{ name: "n1", restorePolicy: "AlwaysOff" }, { name: "n2" }, { name: "n3" }] },
      async (world) => {
        giveOutlets(world, "n1");
        storeEnrolment(world, "n1");
        await world.hang("n1");
        world.faults.refuses.add("n1 ForceOff");
        world.remediate("n1", { ...QUICK, powerOffTimeout: "120s", powerOnTimeout: "120s" });
        await world.until("it is off", () => world.rack.host("n1").power === "Off");
        for (const call of ["identify", "readPower", "On"] as const) {
          world.faults.meanwhile.set(`n1 ${call}`, () => sleep(world.clock, 3_000, NEVER));
        }
        await world.phase("n1", "Succeeded");
        assert.match(messagesOf(world), /the host reads On/);
        assert.deepEqual(world.powerLog, ["n1 On"]);
        world.faults.meanwhile.clear();
        await world.clock.advance(3_000);
        world.assertClean();
      },
    ));

  it("a host that boots for longer than its power-on may take, and whose BMC stays dead, ends well", () =>
    withDeadBmc(
      async (world) => {
        world.remediate("n1", { ...QUICK, powerOnTimeout: "30s", timeout: "600s" });
        await world.phase("n1", "Rejoining");
        assert.match(messagesOf(world), /its BMC does not answer/);
        await world.phase("n1", "Succeeded");
        assert.equal(world.rack.host("n1").power, "On");
        world.assertClean();
      },
      { host: { bootMs: 60_000 } },
    ));

  it("a host whose BMC dies before its power-on, and that a person powers on, ends well after a restart of the agent", () =>
    World.run({}, async (world) => {
      giveOutlets(world, "n1", { call: "2s" });
      storeEnrolment(world, "n1");
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, timeout: "600s" });
      await world.phase("n1", "PoweringOn");
      world.rack.bmc("n1").setReachability("silent");
      await world.phase("n1", "Rejoining");
      world.rack.host("n1").order("On");
      await world.killAgent();
      world.startAgent();
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("a host that stays off when its power returns, and whose BMC stays dead, fails with words that say so", () =>
    withDeadBmc(
      async (world) => {
        world.remediate("n1", QUICK);
        await world.phase("n1", "Failed");
        assert.match(messagesOf(world), /stays off after a power loss; power it on by hand/);
        assert.match(messagesOf(world), /the host may still be OFF: power it on by hand/);
      },
      { host: { restorePolicy: "AlwaysOff" } },
    ));

  it("a host that its BMC powered off is powered on as soon as that BMC, which died since, answers again", () =>
    World.run({}, async (world) => {
      giveOutlets(world, "n1", { call: "2s" });
      storeEnrolment(world, "n1");
      await world.hang("n1");
      world.remediate("n1", QUICK);
      await world.phase("n1", "PoweringOn");
      world.rack.bmc("n1").setReachability("silent");
      await world.phase("n1", "Undoing");
      world.rack.bmc("n1").setReachability("up");
      await world.phase("n1", "Failed");
      assert.equal(world.rack.host("n1").power, "On");
      world.assertClean();
    }));

  it("a host whose BMC is dead, with a boot override that only its BMC could set, fails and is on again", () =>
    withDeadBmc(async (world) => {
      world.rack.host("n1").failDisk();
      world.remediate("n1", { ...QUICK, type: "Escalate" });
      await world.phase("n1", "Failed", 600_000);
      assert.equal(world.condition("n1", "Succeeded"), "False BMCUnreachable");
      assert.match(messagesOf(world), /the next boot cannot be set to the network/);
      assert.ok(OUTLETS.every((address) => world.devices.pdus.outlet(address).isOn));
      assert.equal(ordersOff(world).length, 2 * OUTLETS.length);
      world.assertClean();
    }));

  /** Hangs n1, whose BMC dies as soon as its boot override is stored. */
  async function hangAndLoseBmcAtOverride(world: World): Promise<void> {
    giveOutlets(world, "n1");
    storeEnrolment(world, "n1");
    await world.hang("n1");
    const stop = world.server.onChange(() => {
      if (world.remediation("n1")?.status?.attempt?.bootOverride !== true) return;
      stop();
      world.rack.bmc("n1").setReachability("silent");
    });
  }

  it("a host whose BMC dies once its boot override is about to be set is not fenced again without end by its outlets", () =>
    World.run({}, async (world) => {
      await hangAndLoseBmcAtOverride(world);
      world.remediate("n1", { ...QUICK, type: "Reprovision", requireReboot: false, retryLimit: 1 });
      await world.phase("n1", "Failed", 1_200_000);
      assert.match(messagesOf(world), /the next boot cannot be set to the network/);
      assert.match(messagesOf(world), /clear the boot override by hand/);
      assert.equal(ordersOff(world).length, OUTLETS.length);
    }));

  /** A Reprovision whose BMC dies once its boot override is stored, so that outlets prove the host off again. */
  async function withOverrideOfDeadBmc(test: (world: World) => Promise<void>, host: Partial<HostSpec> = {}) {
    await World.run({ hosts: [{ name: "n1", ...host }, { name: "n2" }, { name: "n3" }] }, async (world) => {
      await hangAndLoseBmcAtOverride(world);
      const strategy = { ...QUICK, requireReboot: false, retryLimit: 1, powerOnTimeout: "60s" };
      world.remediate("n1", { ...strategy, type: "Reprovision" });
      await world.until("it is off by its outlets", () => !world.devices.pdus.isSupplied("n1"));
      await test(world);
    });
  }

  it("a host whose BMC died with a boot override, and that its outlets switched off, is powered on again, and the remediation ends", () =>
    withOverrideOfDeadBmc(
      async (world) => {
        await world.phase("n1", "Failed", 1_200_000);
        assert.ok(OUTLETS.every((address) => world.devices.pdus.outlet(address).isOn));
        assert.equal(world.rack.host("n1").power, "On");
        assert.match(messagesOf(world), /the host may have booted from the network, and no BMC answers/);
        assert.match(
          world.remediation("n1")?.status?.timeline?.at(-1)?.message ?? "",
          /clear the boot override by hand/,
        );
        assert.doesNotMatch(messagesOf(world), /the host may still be OFF/);
      },
      { restorePolicy: "AlwaysOn" },
    ));

  it("a host whose BMC died with a boot override is ordered on by no BMC before that override is cleared", () =>
    withOverrideOfDeadBmc(
      async (world) => {
        await world.until("its outlets are on", () => world.devices.pdus.isSupplied("n1"), 300_000);
        world.rack.bmc("n1").setReachability("up");
        await world.phase("n1", "Failed", 1_200_000);
        assert.equal(world.rack.host("n1").power, "On");
        const calls = world.devices.calls.filter(({ host }) => host === "n1").map(({ call }) => call);
        assert.ok(calls.lastIndexOf("setBootOverride") < calls.indexOf("On"), calls.join(" "));
        assert.match(messagesOf(world), /no boot override is left/);
        world.assertClean();
      },
      { restorePolicy: "AlwaysOff" },
    ));

  it("a remediation that is deleted gives up no host that its outlets switched off, whatever its boot override", () =>
    withOverrideOfDeadBmc(
      async (world) => {
        world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
        await world.until("it is gone", () => world.remediation("n1") === undefined, 1_200_000);
        assert.ok(world.notes.some(({ note }) => note.includes("look for a boot override")));
        assert.equal(world.rack.host("n1").power, "On");
      },
      { restorePolicy: "AlwaysOn" },
    ));

  it("a remediation that is deleted says what it waits for, and what to do, also after a restart of the agent, if its host stays off with a dead BMC", () =>
    World.run(
      { hosts: [{ name: "n1", restorePolicy: "AlwaysOff" }, { name: "n2" }, { name: "n3" }] },
      async (world) => {
        giveOutlets(world, "n1");
        storeEnrolment(world, "n1");
        world.rack.bmc("n1").setReachability("silent");
        await world.hang("n1");
        world.remediate("n1", QUICK);
        await world.until("it is off", () => world.rack.host("n1").power === "Off");
        world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
        await world.until("its outlets are on again", () => world.devices.pdus.isSupplied("n1"), 300_000);
        await world.killAgent();
        world.startAgent();
        await world.clock.advance(120_000);
        assert.equal(world.condition("n1", "Processing"), "True PowerOnTimeout");
        assert.match(messagesOf(world), /its BMC does not answer.*power it on by hand/);
        world.rack.bmc("n1").setReachability("up");
        await world.until("it is gone", () => world.remediation("n1") === undefined, 1_200_000);
        assert.equal(world.rack.host("n1").power, "On");
      },
    ));

  it("a host with one outlet that stays on, by a relay that is welded, is never proven off", () =>
    withDeadBmc(
      async (world) => {
        world.remediate("n1", QUICK);
        await world.phase("n1", "Failed");
        assert.deepEqual(world.markLog.filter(isRelease), []);
        assert.match(messagesOf(world), /outlets that are on show nothing about the host/);
      },
      {
        prepare: (world) => {
          world.devices.pdus.outlet(SECOND).isWelded = true;
        },
      },
    ));

  it("a host whose outlets are off and whose BMC says On, by a supply that no outlet feeds, is not proven off", () =>
    World.run(
      { interference: { call: (_agent, what) => (what === "ForceOff n1" ? { error: "Refused" } : undefined) } },
      async (world) => {
        giveOutlets(world, "n1");
        storeEnrolment(world, "n1");
        for (const address of OUTLETS) world.devices.pdus.outlet(address).feeds = [];
        await world.hang("n1");
        world.remediate("n1", QUICK);
        await world.phase("n1", "Failed");
        assert.ok(ordersOff(world).length > 0, "the outlets were switched off");
        assert.deepEqual(world.markLog.filter(isRelease), []);
        for (const address of OUTLETS) assert.equal(world.devices.pdus.outlet(address).isOn, true, "they are on again");
      },
    ));

  it("a host whose BMC does not answer is on or off by no probe of its outlets", () =>
    World.run({ detector: true }, async (world) => {
      giveOutlets(world, "n1");
      storeEnrolment(world, "n1");
      world.rack.bmc("n1").setReachability("silent");
      await world.hang("n1");
      await world.clock.advance(120_000);
      assert.equal(world.target("n1")?.status?.powerState, "Unknown");
      assert.equal(world.target("n1")?.status?.offProof, undefined);
    }));
});

describe("outlets of a host whose BMC fails to power it off", () => {
  for (const [what, hold] of Object.entries(HOLDS))
    it(`outlets of a host whose BMC fails to power it off are not switched if ${what} before that`, () =>
      World.run({}, async (world) => {
        giveOutlets(world, "n1", { call: "2s" });
        storeEnrolment(world, "n1");
        await world.hang("n1");
        let isHeld = false;
        world.faults.meanwhile.set("n1 ForceOff", async () => {
          isHeld = true;
          await hold(world);
          throw new BmcError("Busy", "redfish://n1: ForceOff failed: Busy");
        });
        world.remediate("n1", QUICK);
        await world.until("the hold has begun", () => isHeld);
        await world.clock.advance(30_000);
        assert.deepEqual(ordersOff(world), []);
      }));
});

describe("outlets of a host whose BMC takes a power-off that has no effect", () => {
  for (const [what, hold] of Object.entries(HOLDS))
    it(`outlets of a host whose BMC takes a power-off that has no effect are not switched if ${what} while they are identified`, () =>
      World.run({}, async (world) => {
        giveOutlets(world, "n1", { call: "2s" });
        storeEnrolment(world, "n1");
        await world.hang("n1");
        world.rack.bmc("n1").orderDelayMs = 3_600_000;
        let isHeld = false;
        const begin = (held: World): Promise<void> => {
          isHeld = true;
          return hold(held);
        };
        const isSecondOrder = (): boolean => (world.remediation("n1")?.status?.attempt?.orders ?? 0) > 1;
        holdDuringIdentification(world, begin, isSecondOrder);
        world.remediate("n1", { ...QUICK, powerOffTimeout: "60s" });
        await world.until("the hold has begun", () => isHeld);
        await world.clock.advance(30_000);
        assert.deepEqual(ordersOff(world), []);
        assert.match(world.condition("n1", "Processing") ?? "", /Paused|Maintenance/);
      }));
});

describe("outlets that do not count as those of the host", () => {
  for (const [what, change] of [
    ["were enrolled for another node", (world: World) => storeEnrolment(world, "n1", { nodeName: "other" })],
    ["belong to a PDU that was replaced", (world: World) => (world.devices.pdus.outlet(SECOND).pdu = "SN-PDU-NEW")],
    [
      "no longer have a meter",
      (world: World) => {
        world.devices.pdus.outlet(FIRST).metered = true;
        storeEnrolment(world, "n1");
        delete world.devices.pdus.outlet(FIRST).metered;
      },
    ],
    ["have another label now", (world: World) => (world.devices.pdus.outlet(FIRST).label = "n7 left")],
    [
      "are waived by verification None, and have no enrolment",
      (world: World) => {
        spec(world, { identity: { systemUUID: null, verification: "None" } });
        storeEnrolment(world, "n1", null);
      },
    ],
    ["were enrolled for another target", (world: World) => storeEnrolment(world, "n1", { specDigest: "0".repeat(64) })],
    [
      "were replaced by another outlet in the target",
      (world: World) => {
        world.devices.pdus.plug("snmp://pdu-1/3", ["n1"]);
        giveOutlets(world, "n1", { addresses: [FIRST, "snmp://pdu-1/3"] });
      },
    ],
    [
      "share their level with the BMC",
      (world: World) => {
        giveOutlets(world, "n1", { level: 1 });
        storeEnrolment(world, "n1");
      },
    ],
    [
      "are on two levels",
      (world: World) => {
        const devices = world.target("n1")?.spec.devices.map((device, index) => ({ ...device, level: index + 1 }));
        spec(world, { devices });
        storeEnrolment(world, "n1");
      },
    ],
    [
      "were enrolled on hardware that the node does not run on",
      (world: World) => {
        spec(world, { identity: { systemUUID: null, serialNumber: "SN-N1" } });
        storeEnrolment(world, "n1", { systemUUID: "4c4c4544-0042-4a10-8054-b9c04f503132" });
      },
    ],
    [
      "were enrolled on hardware that the target does not expect",
      (world: World) => {
        storeEnrolment(world, "n1", { systemUUID: "4c4c4544-0042-4a10-8054-b9c04f503132" });
      },
    ],
  ] as const) {
    it(`outlets that ${what} are never switched, and the target says so`, () =>
      withDeadBmc(
        async (world) => {
          world.remediate("n1", QUICK);
          await world.phase("n1", "Failed");
          assert.deepEqual(world.devices.pdus.orders, []);
          assert.equal(world.rack.host("n1").power, "On");
          const enrolled = world.target("n1")?.status?.conditions?.find(({ type }) => type === "OutletsEnrolled");
          assert.equal(enrolled?.status, "False", enrolled?.message);
        },
        { prepare: (world) => void change(world) },
      ));
  }

  it("a target whose outlets are not enrolled is fenced by its BMC, and says how to enrol them", () =>
    World.run({}, async (world) => {
      // One outlet is off because of another host that it feeds.
      for (const outlet of giveOutlets(world, "n1")) outlet.isOn = outlet.outlet === "1";
      for (const outlet of OUTLETS) world.devices.pdus.outlet(outlet).feeds = [];
      await world.clock.advance(20_000);
      const ready = world.target("n1")?.status?.conditions?.find(({ type }) => type === "Ready");
      assert.equal(`${ready?.status} ${ready?.reason}`, "True Degraded");
      assert.match(ready?.message ?? "", /run ironfence enroll n1 in maintenance/);
      await world.hang("n1");
      world.remediate("n1", QUICK);
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.devices.pdus.orders, []);
      world.assertClean();
    }));

  it("outlets on the level of a BMC that answers are not switched because the BMC is identified", () =>
    World.run({}, async (world) => {
      giveOutlets(world, "n1", { level: 1 });
      storeEnrolment(world, "n1");
      await world.hang("n1");
      world.remediate("n1", QUICK);
      await world.phase("n1", "Failed");
      assert.deepEqual([world.devices.pdus.orders, world.powerLog], [[], []]);
    }));

  it("outlets by which a host was powered off are put on again although their enrolment has ended since", () =>
    withDeadBmc(async (world) => {
      world.remediate("n1", QUICK);
      await world.until("it is off", () => world.rack.host("n1").power === "Off");
      spec(world, { identity: { serialNumber: "SN-N1" } });
      await world.until("it is on", () => world.rack.host("n1").power === "On");
      await world.until("it is over", () =>
        ["Succeeded", "Failed"].includes(world.remediation("n1")?.status?.phase ?? ""),
      );
      assert.deepEqual(
        OUTLETS.map((address) => world.devices.pdus.outlet(address).isOn),
        [true, true],
      );
    }));

  it("an outlet that is enrolled for two targets by two addresses is switched by neither of them", () =>
    withDeadBmc(async (world) => {
      giveOutlets(world, "n2", { addresses: ["snmp://10.0.0.5/2"] });
      storeEnrolment(world, "n2");
      await world.clock.advance(5_000);
      world.remediate("n1", QUICK);
      await world.phase("n1", "Failed");
      assert.deepEqual(world.devices.pdus.orders, []);
      assert.match(messagesOf(world), /n2 has outlet 2 of PDU SN-PDU-1 enrolled as well, so neither is trusted/);
    }));

  it("an outlet that two targets name is switched by neither of them", () =>
    withDeadBmc(async (world) => {
      giveOutlets(world, "n2", { addresses: [SECOND, "snmp://pdu-1/4"] });
      world.remediate("n1", QUICK);
      await world.phase("n1", "Failed");
      assert.deepEqual(world.devices.pdus.orders, []);
    }));
});
