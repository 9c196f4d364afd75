import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import type { RackCommand } from "../../../hack/rack/commands.ts";
import { runCommand } from "../../../hack/rack/commands.ts";
import type { RackEvent } from "../../../hack/rack/events.ts";
import type { Host, HostSpec } from "../../../hack/rack/host.ts";
import { createRack } from "../../../hack/rack/rack.ts";
import type { Rack } from "../../../hack/rack/rack.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

/** A power-off while the host powers on. During this power-off it has no OS. */
const OFF_WHILE_POWERING_ON: [RackCommand, number][] = [
  [{ do: "order", order: "ForceOff" }, 2_000],
  [{ do: "order", order: "On" }, 0],
  [{ do: "order", order: "ForceOff" }, 0],
];
const TIMES = { powerOffDelayMs: 2_000, powerOnDelayMs: 1_000, bootMs: 5_000, reprovisionMs: 10_000 };

function setUp(spec: Partial<HostSpec> = {}): { clock: VirtualClock; rack: Rack; host: Host; events: RackEvent[] } {
  const clock = new VirtualClock();
  const rack = createRack({ clock, random: seededRandom(1), hosts: [{ name: "a", ...TIMES, ...spec }, { name: "b" }] });
  const events: RackEvent[] = [];
  rack.subscribe((event) => events.push(event));
  return { clock, rack, host: rack.host("a"), events };
}

describe("a simulated host", () => {
  it("a simulated host is off only when its delay is over, and writes until then", async () => {
    const { clock, host } = setUp();
    assert.equal(host.order("ForceOff"), "Started");
    await clock.advance(1_999);
    assert.equal(host.power, "PoweringOff");
    assert.equal(host.canWrite, true);
    await clock.advance(1);
    assert.equal(host.power, "Off");
    assert.equal(host.os, "down");
    assert.equal(host.canWrite, false);
  });

  it("a simulated host boots again after on, with a new boot id, and says so with the time", async () => {
    const { clock, host, events } = setUp({ power: "Off" });
    const before = host.bootID;
    const startMs = clock.nowMs();
    host.order("On");
    await clock.advance(5_999);
    assert.equal(host.os, "booting");
    await clock.advance(1);
    assert.equal(host.os, "running");
    assert.notEqual(host.bootID, before);
    assert.deepEqual(
      events.map(({ type, atMs }) => [type, atMs - startMs]),
      [
        ["powerChanged", 0],
        ["ordered", 0],
        ["powerChanged", 1_000],
        ["booted", 6_000],
      ],
    );
  });

  it("a simulated host may still write when its OS hangs, and goes on with the same boot when it thaws", () => {
    const { host } = setUp();
    const { bootID } = host;
    host.hang();
    assert.equal(host.os, "hung");
    assert.equal(host.canWrite, true);
    host.resume();
    assert.equal(host.os, "running");
    assert.equal(host.bootID, bootID);
  });

  it("a simulated host does not come up from a failed disk until a network boot has written it again", async () => {
    const { clock, host, events } = setUp();
    const { bootID, machineID } = host;
    host.failDisk();
    assert.equal(host.os, "hung");
    host.order("ForceOff");
    await clock.advance(2_000);
    host.order("On");
    await clock.advance(60_000);
    assert.equal(host.os, "noBootDevice");
    assert.equal(host.bootID, bootID);

    host.setBoot({ enabled: "Once", target: "Pxe", mode: "UEFI" });
    host.order("ForceOff");
    await clock.advance(2_000);
    host.order("On");
    await clock.advance(1_000);
    assert.equal(host.os, "installing");
    assert.deepEqual(host.bootSetting, { enabled: "Disabled", target: "None", mode: "UEFI" });
    await clock.advance(15_000);
    assert.equal(host.os, "running");
    assert.notEqual(host.machineID, machineID);
    assert.equal(events.filter(({ type }) => type === "reinstalled").length, 1);
  });

  it("a simulated host comes up at the next boot from a disk that was replaced, and not before", async () => {
    const { clock, host } = setUp();
    const { machineID } = host;
    host.failDisk();
    host.order("PowerCycle");
    await clock.advance(60_000);
    host.replaceDisk();
    assert.equal(host.os, "noBootDevice");
    host.order("PowerCycle");
    await clock.advance(60_000);
    assert.equal(host.os, "running");
    assert.equal(host.machineID, machineID);
  });

  it("a simulated host keeps the boot override while it is off, and uses it up at the first boot only", async () => {
    const { clock, host, events } = setUp();
    host.setBoot({ enabled: "Once", target: "Pxe", mode: "Legacy" });
    host.order("ForceOff");
    await clock.advance(2_000);
    assert.equal(host.bootSetting.enabled, "Once");
    host.order("On");
    await clock.advance(20_000);
    host.order("PowerCycle");
    await clock.advance(20_000);
    assert.equal(events.filter(({ type }) => type === "reinstalled").length, 1);
    assert.equal(host.os, "running");
  });

  it("a simulated host logs every order with what resulted from it", async () => {
    const { clock, host } = setUp();
    host.order("On");
    host.order("ForceOff");
    host.order("ForceOff");
    host.order("On");
    await clock.advance(2_000);
    host.order("ForceOff");
    host.order("ForceRestart");
    assert.deepEqual(
      host.orders.map(({ type, outcome }) => `${type} ${outcome}`),
      [
        "On NoChange",
        "ForceOff Started",
        "ForceOff NoChange",
        "On Refused",
        "ForceOff NoChange",
        "ForceRestart Refused",
      ],
    );
  });

  it("a simulated host shuts down gracefully only while its OS works", async () => {
    const { clock, host } = setUp();
    host.hang();
    assert.equal(host.order("GracefulShutdown"), "Started");
    await clock.advance(60_000);
    assert.equal(host.power, "On");
    host.resume();
    host.order("GracefulShutdown");
    await clock.advance(2_000);
    assert.equal(host.power, "Off");
  });

  it("a simulated host shows no off in a restart, yet loses its pods", async () => {
    const { clock, host, events } = setUp();
    host.workloads.set("uid", { pod: "default/db", claims: ["default/data"] });
    host.order("ForceRestart");
    await clock.advance(5_000);
    assert.equal(host.os, "running");
    assert.equal(host.workloads.size, 0);
    assert.deepEqual(
      events.filter(({ type }) => type === "powerChanged"),
      [],
    );
  });

  it("a simulated host keeps its pods writing through a hang, until the power is truly off", async () => {
    const { clock, host } = setUp();
    host.workloads.set("uid", { pod: "default/db", claims: ["default/data"] });
    host.hang();
    host.order("ForceOff");
    await clock.advance(1_999);
    assert.equal(host.workloads.size, 1);
    await clock.advance(1);
    assert.equal(host.workloads.size, 0);
  });

  for (const [policy, wasOn, comesUp] of [
    ["AlwaysOn", false, true],
    ["AlwaysOff", true, false],
    ["LastState", true, true],
    ["LastState", false, false],
  ] as const) {
    it(`a simulated host with ${policy} that was ${wasOn ? "on" : "off"} is ${comesUp ? "on" : "off"} after mains power is back`, async () => {
      const { clock, host, rack } = setUp({ restorePolicy: policy, power: wasOn ? "On" : "Off" });
      host.cutMains();
      assert.equal(host.power, "Off");
      assert.equal(rack.bmc("a").reachability, "silent");
      assert.equal(host.order("On"), "Refused");
      host.restoreMains();
      await clock.advance(10_000);
      assert.equal(host.power, comesUp ? "On" : "Off");
      assert.equal(rack.bmc("a").reachability, "up");
    });
  }

  it("a simulated host leaves no timer behind once the rack is stopped", () => {
    const { clock, rack, host } = setUp();
    rack.bmc("a").orderDelayMs = 5_000;
    rack.bmc("a").order("ForceOff");
    host.order("PowerCycle");
    rack.stop();
    assert.equal(clock.pending, 0);
  });
});

describe("a BMC", () => {
  it("a BMC lies about power for a time, and the truth is seen on the host alone", async () => {
    const { clock, rack, host } = setUp();
    const bmc = rack.bmc("a");
    bmc.pretendPower("Off", 3_000);
    assert.equal(bmc.readPower(), "Off");
    assert.equal(host.power, "On");
    await clock.advance(3_000);
    assert.equal(bmc.readPower(), "On");
  });

  it("a BMC goes on reporting an old reading when frozen", async () => {
    const { clock, rack, host } = setUp({ power: "Off" });
    const bmc = rack.bmc("a");
    bmc.freezePower(30_000);
    bmc.order("On");
    await clock.advance(20_000);
    assert.equal(host.power, "On");
    assert.equal(bmc.readPower(), "Off");
  });

  it("a BMC acknowledges a late order at once, which takes effect later", async () => {
    const { clock, rack, host } = setUp();
    rack.bmc("a").orderDelayMs = 10_000;
    assert.equal(rack.bmc("a").order("ForceOff"), "Started");
    await clock.advance(9_999);
    assert.equal(host.orders.length, 0);
    await clock.advance(2_001);
    assert.equal(host.power, "Off");
  });

  it("a BMC answers for and orders another host when it is wired to that", () => {
    const { rack, host } = setUp();
    const bmc = rack.bmc("a");
    bmc.rewire(rack.host("b"));
    assert.equal(bmc.identity().systemUUID, rack.host("b").spec.systemUUID);
    bmc.order("ForceOff");
    assert.equal(host.power, "On");
    assert.equal(rack.host("b").power, "PoweringOff");
  });

  it("a BMC can claim to be another while it controls its own host", () => {
    const { rack, host } = setUp();
    runCommand(rack, "a", { do: "pretendIdentity", identity: { serialNumber: "OTHER" } });
    assert.equal(rack.bmc("a").identity().serialNumber, "OTHER");
    assert.equal(rack.bmc("a").identity().systemUUID, host.spec.systemUUID);
    runCommand(rack, "a", { do: "pretendIdentity" });
    assert.equal(rack.bmc("a").identity().serialNumber, "SN-A");
  });

  it("a BMC is silent while it restarts, and its host goes on", async () => {
    const { clock, rack, host, events } = setUp();
    rack.bmc("a").restart(4_000);
    assert.equal(rack.bmc("a").reachability, "silent");
    assert.equal(host.os, "running");
    await clock.advance(4_000);
    assert.equal(rack.bmc("a").reachability, "up");
    assert.ok(events.some(({ type }) => type === "bmcRestarted"));
  });
});

describe("a rack", () => {
  it("a rack never lets a host that is off run or write, whatever is done to it", async () => {
    const command = fc.oneof(
      fc.constantFrom("hang", "resume", "failDisk", "cutMains", "restoreMains").map((what) => ({ do: what })),
      fc
        .constantFrom("On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle")
        .map((order) => ({ do: "order", order })),
    ) as fc.Arbitrary<RackCommand>;
    const step = fc.tuple(command, fc.integer({ min: 0, max: 8_000 }));
    const check = ({ power, os, canWrite }: Host): void => {
      if (power === "Off" || power === "PoweringOn") assert.deepEqual([os, canWrite], ["down", false]);
      // During a power-off there is an OS or, if the order came while the host powered on, none yet.
      else if (power === "On") assert.notEqual(os, "down");
    };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { clock, rack, host } = setUp();
        for (const [command, waitMs] of steps) {
          runCommand(rack, "a", command);
          check(host);
          await clock.advance(waitMs);
          check(host);
        }
        await clock.advance(60_000);
        assert.equal(clock.pending, 0);
      }),
      { numRuns: 50, examples: [[OFF_WHILE_POWERING_ON]] },
    );
  });

  it("a rack plays the same story for the same seed", async () => {
    const play = async (): Promise<RackEvent[]> => {
      const { clock, host, events } = setUp();
      host.order("PowerCycle");
      await clock.advance(10_000);
      return events;
    };
    assert.deepEqual(await play(), await play());
  });

  it("a rack refuses two hosts of one name, and names a host that it does not know", () => {
    const deps = { clock: new VirtualClock(), random: seededRandom(1) };
    assert.throws(() => createRack({ ...deps, hosts: [{ name: "a" }, { name: "a" }] }), /two hosts are named a/);
    assert.throws(() => createRack({ ...deps, hosts: [] }).host("x"), /no host is named x/);
  });
});
