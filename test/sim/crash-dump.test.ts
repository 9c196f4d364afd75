import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HostSpec } from "../../hack/rack/host.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { PURE_FUNCTIONS } from "../../src/cli/agent/pure-functions.ts";
import { Replayer } from "../../src/telemetry/decisions/replay.ts";
import { HOLDS, holdDuringReading } from "./holds.ts";
import { NAMESPACE, World } from "./world.ts";

// A crash dump by an NMI before the first power-off. It is ordered once, it delays the power-off at most for its
// timeout, and it proves nothing.

const NMI = { diagnostics: "NMI", retryLimit: 0 };

const HOSTS = (first: Partial<HostSpec>) => [{ name: "n1", ...first }, { name: "n2" }, { name: "n3" }];

/** The times in milliseconds at which orders of a type reached n1. */
function ordersOf(world: World, type: string): number[] {
  return world.rack
    .host("n1")
    .orders.filter((order) => order.type === type)
    .map(({ atMs }) => atMs);
}

function maintain(world: World, maintenance: boolean): void {
  world.server.collection(FENCING_TARGETS).mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { maintenance } });
}

const MESSAGE = Buffer.from("402a301b01000000", "hex");
const ADDRESS = "10.0.0.1";

/** Sets the addresses of n1, as its kubelet reports them. */
function address(world: World): void {
  const addresses = [
    { type: "Hostname", address: "n1" },
    { type: "InternalIP", address: ADDRESS },
    { type: "InternalIP", address: "FD00:0::1" },
  ];
  world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status: { addresses } }, "status");
}

/** Sends messages like `fence_kdump_send`: one at once, then one every 10 s. @returns when the last one was sent. */
async function sendKdump(world: World, count: number, from = ADDRESS): Promise<number> {
  for (let sent = 0; sent < count; sent += 1) {
    if (sent > 0) await world.clock.advance(10_000);
    world.sendKdump(MESSAGE, from);
  }
  return world.clock.nowMs();
}

/** A world whose host n1 hangs and has received its NMI. Its kernel sends no message. */
async function interrupted(
  strategy: object,
  test: (world: World, nmiMs: number) => Promise<void>,
  record?: (line: string) => void,
): Promise<void> {
  await World.run({ hosts: HOSTS({ onNmi: "hang" }), kdump: true, ...(record && { record }) }, async (world) => {
    await world.hang("n1");
    address(world);
    world.remediate("n1", { ...NMI, diagnosticsTimeout: "5m", ...strategy });
    await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
    await world.clock.advance(2_000);
    await test(world, ordersOf(world, "Nmi")[0] ?? NaN);
  });
}

/** Waits until n1 is ordered off. @returns the time. */
async function orderedOff(world: World): Promise<number> {
  await world.phase("n1", "Succeeded");
  assert.equal(ordersOf(world, "Nmi").length, 1);
  return ordersOf(world, "ForceOff")[0] ?? NaN;
}

function stepsOf(world: World, step: string): number {
  return world.notes.filter(({ reason }) => reason === step).length;
}

const diagnosticsOf = (world: World, name = "n1") => world.remediation(name)?.status?.diagnostics;

describe("a crash dump by an NMI", () => {
  it("a crash dump by an NMI is written, and the host that is Ready in a new boot is not powered off", () =>
    World.run({ hosts: HOSTS({ dumpMs: 20_000 }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", NMI);
      await world.phase("n1", "Succeeded");
      assert.equal(ordersOf(world, "Nmi").length, 1);
      assert.deepEqual(ordersOf(world, "ForceOff"), []);
      assert.deepEqual(world.markLog, [], "no taint is put on: nothing is proven");
      const { timeline = [] } = world.remediation("n1")?.status ?? {};
      const recovered = timeline.find(({ step }) => step === "Recovered");
      const [nmiMs = NaN] = ordersOf(world, "Nmi");
      assert.ok(Date.parse(recovered?.time ?? "") - nmiMs < 50_000, "it does not wait for the end of its time");
    }));

  it("a crash dump by an NMI after which the host is back within seconds does not end in a power-off by older checks", () =>
    World.run({ hosts: HOSTS({ dumpMs: 500, bootMs: 500 }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", NMI);
      await world.phase("n1", "Succeeded");
      assert.equal(ordersOf(world, "Nmi").length, 1);
      assert.deepEqual(ordersOf(world, "ForceOff"), []);
    }));

  it("a crash dump by an NMI of a node that was Ready when its remediation began is written, and the host that is back is not powered off", () =>
    World.run({ hosts: HOSTS({ dumpMs: 10_000 }) }, async (world) => {
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.remediate("n1", NMI);
      await world.phase("n1", "Succeeded");
      assert.equal(world.remediation("n1")?.status?.node?.wasReady, true);
      assert.ok(world.remediation("n1")?.status?.timeline?.some(({ step }) => step === "Recovered"));
      assert.equal(ordersOf(world, "Nmi").length, 1);
      assert.deepEqual(ordersOf(world, "ForceOff"), []);
      world.assertClean();
    }));

  it("a crash dump by an NMI after which the node is Ready only in a watch that is behind ends 20 s after the new boot", () =>
    World.run({ hosts: HOSTS({ dumpMs: 10_000 }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "10m" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      world.network.cut.add("n1");
      await world.clock.advance(20_000);
      const reports = (ready: "True" | "False"): void => {
        const status = {
          nodeInfo: { bootID: "another" },
          conditions: [{ type: "Ready", status: ready, reason: "Test" }],
        };
        world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status }, "status");
      };
      const { faults } = world.server;
      const read = { method: "GET", pathPrefix: "/api/v1/nodes/n1", client: "agent" };
      faults.inject({ match: read, times: 1, action: { kind: "delay", delayMs: 500 } });
      reports("True");
      await world.clock.advance(250);
      const watch = { pathPrefix: "/api/v1/nodes", client: "agent", watch: true };
      faults.inject({ match: watch, times: Infinity, action: { kind: "hang" } });
      faults.cutWatches(watch);
      reports("False");
      const rebootedMs = world.clock.nowMs();
      await world.until("n1 is ordered off", () => ordersOf(world, "ForceOff").length === 1);
      const waitedMs = (ordersOf(world, "ForceOff")[0] ?? NaN) - rebootedMs;
      assert.ok(waitedMs >= 19_000 && waitedMs <= 22_000, `${waitedMs} ms`);
      assert.equal(stepsOf(world, "HostRebooted"), 1);
    }));

  it("a crash dump by an NMI that takes longer than its time is cut off by the power-off", () =>
    World.run({ hosts: HOSTS({ dumpMs: 600_000 }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "45s" });
      await world.phase("n1", "Succeeded");
      const [nmiMs = NaN] = ordersOf(world, "Nmi");
      const [offMs = NaN] = ordersOf(world, "ForceOff");
      assert.equal(ordersOf(world, "Nmi").length, 1);
      assert.ok(offMs - nmiMs >= 44_000 && offMs - nmiMs <= 46_000, `${offMs - nmiMs} ms`);
      assert.ok(world.markLog.includes("n1 +taint"));
    }));

  it("a crash dump by an NMI after which the host hangs, or which it ignores, delays the power-off by its time", async () => {
    for (const onNmi of ["hang", "ignore"] as const) {
      await World.run({ hosts: HOSTS({ onNmi }) }, async (world) => {
        await world.hang("n1");
        world.remediate("n1", { ...NMI, diagnosticsTimeout: "30s" });
        await world.phase("n1", "Succeeded");
        const [nmiMs = NaN] = ordersOf(world, "Nmi");
        const [offMs = NaN] = ordersOf(world, "ForceOff");
        assert.ok(offMs - nmiMs >= 29_000 && offMs - nmiMs <= 31_000, `${onNmi}: ${offMs - nmiMs} ms`);
      });
    }
  });

  it("a crash dump by an NMI of a host that boots again and is never Ready ends 20 s after the new boot", () =>
    World.run({ hosts: HOSTS({ dumpMs: 10_000 }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "10m" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      // The node boots, reports its boot once, and is then cut off.
      world.network.cut.add("n1");
      world.server
        .collection<Node>(NODES)
        .mergePatch({ name: "n1" }, { status: { nodeInfo: { bootID: "another" } } }, "status");
      await world.until("n1 is ordered off", () => ordersOf(world, "ForceOff").length === 1);
      world.network.cut.delete("n1");
      await world.phase("n1", "Succeeded");
      const rebooted = world.remediation("n1")?.status?.timeline?.find(({ step }) => step === "HostRebooted");
      const [offMs = NaN] = ordersOf(world, "ForceOff");
      const waitedMs = offMs - Date.parse(rebooted?.time ?? "");
      assert.ok(waitedMs >= 19_000 && waitedMs <= 21_000, `${waitedMs} ms`);
    }));

  it("a crash dump by an NMI leaves entries in the log of the BMC that are not the cause of death", () =>
    World.run({ hosts: HOSTS({ onNmi: "ignore" }) }, async (world) => {
      await world.hang("n1");
      world.rack.subscribe((event) => {
        if (event.type === "ordered" && event.order === "Nmi") world.rack.bmc("n1").logEvent("watchdogReset");
      });
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "10s" });
      await world.phase("n1", "Succeeded");
      assert.equal(ordersOf(world, "Nmi").length, 1);
      assert.equal(world.remediation("n1")?.status?.evidence?.class, "None");
    }));

  it("a crash dump by an NMI that the BMC does not send hides no cause of death", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.faults.refuses.add("n1 Nmi");
      world.rack.bmc("n1").logEvent("watchdogReset");
      world.remediate("n1", NMI);
      await world.phase("n1", "Succeeded");
      assert.equal(diagnosticsOf(world)?.result, "NotSent");
      assert.equal(world.remediation("n1")?.status?.evidence?.class, "Watchdog");
    }));

  it("a crash dump by an NMI is not ordered unless the strategy says so", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { retryLimit: 0 });
      await world.phase("n1", "Succeeded");
      assert.deepEqual(ordersOf(world, "Nmi"), []);
      assert.equal(diagnosticsOf(world), undefined);
    }));

  it("a crash dump by an NMI is ordered once, however many power cycles follow", () =>
    World.run({ hosts: HOSTS({ onNmi: "ignore" }) }, async (world) => {
      const host = await world.hang("n1");
      host.failDisk();
      world.remediate("n1", { ...NMI, retryLimit: 1, timeout: "30s", diagnosticsTimeout: "10s" });
      await world.phase("n1", "Failed");
      assert.equal(ordersOf(world, "ForceOff").length, 2);
      assert.equal(ordersOf(world, "Nmi").length, 1);
    }));

  for (const [what, moment] of [
    ["between the intent and the NMI", "intent"],
    ["right after the NMI", "sent"],
  ] as const) {
    it(`a crash dump by an NMI is not ordered again if the agent ended ${what}, by the next agent`, () =>
      World.run({ hosts: HOSTS({ onNmi: "ignore" }) }, async (world) => {
        await world.hang("n1");
        let killed: Promise<void> | undefined;
        const kill = (): void => {
          killed ??= world.killAgent();
        };
        if (moment === "intent") {
          const stop = world.server.onChange(() => {
            if (diagnosticsOf(world) === undefined) return;
            stop();
            queueMicrotask(kill);
          });
        } else {
          world.rack.subscribe((event) => {
            if (event.type === "ordered" && event.order === "Nmi") queueMicrotask(kill);
          });
        }
        world.remediate("n1", { ...NMI, diagnosticsTimeout: "30s" });
        await world.until("the agent has ended", () => killed !== undefined);
        await killed;
        await world.clock.advance(2_000);
        world.startAgent();
        await world.phase("n1", "Succeeded");
        assert.ok(ordersOf(world, "Nmi").length <= 1, "one NMI at most");
        const [offMs = NaN] = ordersOf(world, "ForceOff");
        const orderedMs = Date.parse(diagnosticsOf(world)?.orderedAt ?? "");
        assert.ok(offMs - orderedMs >= 29_000, "what is not known counts as sent, and the host gets its time");
        assert.ok(offMs - orderedMs <= 36_000);
      }));
  }
});

describe("an NMI that must not be sent", () => {
  it("an NMI is not sent for a strategy that was edited after the first power-off", () =>
    World.run({}, async (world) => {
      const host = await world.hang("n1");
      host.failDisk();
      world.remediate("n1", { retryLimit: 1, timeout: "30s" });
      await world.phase("n1", "Rejoining");
      world.server
        .collection(BARE_METAL_REMEDIATIONS)
        .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { strategy: { diagnostics: "NMI" } } });
      await world.phase("n1", "Failed");
      assert.equal(ordersOf(world, "ForceOff").length, 2);
      assert.deepEqual(ordersOf(world, "Nmi"), []);
    }));

  it("an NMI is not sent to a control plane host without which etcd has no quorum", () =>
    World.run({ hosts: HOSTS({}), labels: { "node-role.kubernetes.io/control-plane": "" } }, async (world) => {
      for (const name of ["n1", "n2"]) world.rack.host(name).hang();
      for (const name of ["n1", "n2"]) await world.until(`${name} is not Ready`, () => !world.isReady(name));
      world.remediate("n1", { ...NMI, powerOffTimeout: "30s" });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneQuorum");
      assert.deepEqual(ordersOf(world, "Nmi"), []);
    }));
});

describe("an NMI that is not sent", () => {
  for (const [what, hold] of Object.entries(HOLDS))
    it(`an NMI is not sent if ${what} while the power of its host is read`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        holdDuringReading(world, hold, () => diagnosticsOf(world) !== undefined);
        world.remediate("n1", NMI);
        await world.until("its intent is stored", () => diagnosticsOf(world) !== undefined);
        await world.clock.advance(60_000);
        assert.deepEqual(ordersOf(world, "Nmi"), []);
      }));

  it("an NMI that a pause has kept from being sent delays no power-off once the pause has ended", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      holdDuringReading(
        world,
        async () => world.pause(true),
        () => diagnosticsOf(world) !== undefined,
      );
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "300s" });
      await world.until("it is paused", () => world.condition("n1", "Processing")?.endsWith("Paused") === true);
      await world.clock.advance(20_000);
      assert.equal(diagnosticsOf(world)?.result, "NotSent");
      const resumedMs = world.clock.nowMs();
      world.pause(false);
      await world.phase("n1", "Succeeded");
      const [offMs = NaN] = ordersOf(world, "ForceOff");
      assert.ok(offMs - resumedMs < 5_000, `${offMs - resumedMs} ms`);
    }));

  for (const [what, fault] of [
    ["refuses it", (world: World) => world.faults.refuses.add("n1 Nmi")],
    ["does not permit it", (world: World) => world.faults.denies.add("n1 Nmi")],
  ] as const) {
    it(`an NMI that is not sent because the BMC ${what} delays no power-off`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        fault(world);
        world.remediate("n1", NMI);
        await world.phase("n1", "Succeeded");
        assert.deepEqual(ordersOf(world, "Nmi"), []);
        const orderedMs = Date.parse(diagnosticsOf(world)?.orderedAt ?? "");
        const [offMs = NaN] = ordersOf(world, "ForceOff");
        assert.ok(offMs - orderedMs < 2_000, `${offMs - orderedMs} ms`);
        assert.equal(diagnosticsOf(world)?.result, "NotSent");
        assert.ok(world.notes.some(({ reason, type }) => reason === "NmiNotSent" && type === "Warning"));
      }));
  }

  it("an NMI is not sent to a host that reads Off", () =>
    World.run({}, async (world) => {
      const host = await world.hang("n1");
      host.order("ForceOff");
      await world.until("n1 is off", () => host.power === "Off");
      world.remediate("n1", NMI);
      await world.phase("n1", "Succeeded");
      assert.deepEqual(ordersOf(world, "Nmi"), []);
      assert.match(diagnosticsOf(world)?.message ?? "", /not On/);
    }));

  it("an NMI is not sent to a host that is not the one that is meant", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.remediate("n1", NMI);
      await world.phase("n1", "Failed");
      assert.deepEqual(ordersOf(world, "Nmi"), []);
      assert.deepEqual(world.rack.host("n2").orders, []);
    }));

  it("an NMI is not sent while power orders are held by maintenance", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      maintain(world, true);
      world.remediate("n1", NMI);
      await world.clock.advance(60_000);
      assert.deepEqual(ordersOf(world, "Nmi"), []);
      maintain(world, false);
      await world.phase("n1", "Succeeded");
      assert.equal(ordersOf(world, "Nmi").length, 1);
    }));
});

describe("an NMI whose answer is lost", () => {
  it("an NMI whose answer is lost counts as sent, and is not repeated", () =>
    World.run({ hosts: HOSTS({ dumpMs: 20_000 }) }, async (world) => {
      await world.hang("n1");
      world.faults.losesAnswer.add("n1 Nmi");
      world.remediate("n1", NMI);
      await world.phase("n1", "Succeeded");
      assert.equal(ordersOf(world, "Nmi").length, 1);
      assert.deepEqual(ordersOf(world, "ForceOff"), []);
      assert.ok(world.notes.some(({ note }) => note?.includes("counts as sent") ?? false));
    }));

  it("an NMI that the BMC carries out late is not repeated, and the power-off comes in its time", () =>
    World.run({ hosts: HOSTS({ dumpMs: 600_000 }) }, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").orderDelayMs = 8_000;
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "30s" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      world.rack.bmc("n1").orderDelayMs = 0;
      await world.phase("n1", "Succeeded");
      assert.equal(ordersOf(world, "Nmi").length, 1);
    }));
});

describe("a remediation that waits for a crash dump", () => {
  it("a remediation that waits for a crash dump and is paused for seconds still waits for it, and then powers the host off", () =>
    World.run({ hosts: HOSTS({ onNmi: "hang" }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "5m", powerOffTimeout: "60s" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      world.pause(true);
      await world.clock.advance(5_000);
      world.pause(false);
      const waitedMs = (await orderedOff(world)) - (ordersOf(world, "Nmi")[0] ?? NaN);
      assert.ok(waitedMs >= 299_000 && waitedMs <= 301_000, `${waitedMs} ms`);
      assert.equal(stepsOf(world, "CrashDumpAwaited"), 1);
    }));

  it("a remediation that waits for a crash dump and is paused by a leader whose clock is behind has one more whole wait at most", () =>
    World.run({ hosts: HOSTS({ onNmi: "hang" }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "2m", powerOffTimeout: "60s" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      await world.killAgent();
      world.startAgent(-3_600_000);
      world.pause(true);
      await world.clock.advance(30_000);
      world.pause(false);
      const resumedMs = world.clock.nowMs();
      await world.until("n1 is ordered off", () => ordersOf(world, "ForceOff").length === 1, 200_000);
      const waitedMs = (ordersOf(world, "ForceOff")[0] ?? NaN) - resumedMs;
      assert.ok(waitedMs <= 121_000, `${waitedMs} ms`);
      await world.phase("n1", "Succeeded");
    }));

  it("a remediation that waits for a crash dump and is deleted sends nothing more", () =>
    World.run({ hosts: HOSTS({ onNmi: "ignore" }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "5m" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      await world.until("it is gone", () => world.remediation("n1") === undefined, 60_000);
      assert.deepEqual(ordersOf(world, "ForceOff"), []);
      world.assertClean();
    }));

  it("a remediation that waits for a crash dump and gets a leader whose clock is behind waits no longer for that", () =>
    World.run({ hosts: HOSTS({ onNmi: "ignore" }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "30s" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      await world.killAgent();
      world.startAgent(-3_600_000);
      await world.until("n1 is ordered off", () => ordersOf(world, "ForceOff").length === 1, 45_000);
      await world.phase("n1", "Succeeded");
    }));

  it("a remediation that waits for a crash dump while its clock is set back waits no longer for that", () =>
    World.run({ hosts: HOSTS({ onNmi: "ignore" }) }, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "30s" });
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      world.jumpAgentClock(-3_600_000);
      await world.until("n1 is ordered off", () => ordersOf(world, "ForceOff").length === 1, 40_000);
      await world.phase("n1", "Succeeded");
    }));
});

describe("messages of a crash kernel", () => {
  it("messages of a crash kernel that stop end the wait for its dump 30 s after the last one, and are reported once", () =>
    interrupted({}, async (world) => {
      const lastMs = await sendKdump(world, 4);
      assert.match(world.condition("n1", "Processing") ?? "", /CrashDump/);
      const offMs = await orderedOff(world);
      assert.ok(offMs - lastMs >= 30_000 && offMs - lastMs <= 31_000, `${offMs - lastMs} ms`);
      assert.equal(stepsOf(world, "CrashKernelRuns"), 1);
      assert.equal(stepsOf(world, "CrashDumpEnded"), 1);
      assert.match(await world.metrics("ironfence_kdump_messages_total"), /result="accepted"\} 4/);
      assert.ok(world.markLog.includes("n1 +taint"));
    }));

  it("messages of a crash kernel do not end the wait if one or two of them are lost", () =>
    interrupted({}, async (world) => {
      await sendKdump(world, 1);
      await world.clock.advance(29_000);
      const lastMs = await sendKdump(world, 1);
      const offMs = await orderedOff(world);
      assert.ok(offMs - lastMs >= 30_000 && offMs - lastMs <= 31_000, `${offMs - lastMs} ms`);
    }));

  it("messages of a crash kernel over IPv6 count as those over IPv4", () =>
    interrupted({}, async (world) => {
      const lastMs = await sendKdump(world, 2, "fd00::1");
      const offMs = await orderedOff(world);
      assert.ok(offMs - lastMs >= 30_000 && offMs - lastMs <= 31_000, `${offMs - lastMs} ms`);
    }));

  it("messages of a crash kernel that do not stop extend the wait by nothing", () =>
    interrupted({ diagnosticsTimeout: "45s" }, async (world, nmiMs) => {
      await sendKdump(world, 6);
      const offMs = await orderedOff(world);
      assert.ok(offMs - nmiMs >= 44_000 && offMs - nmiMs <= 46_000, `${offMs - nmiMs} ms`);
      assert.equal(stepsOf(world, "CrashDumpEnded"), 0);
    }));

  for (const [what, send] of [
    ["from another address", (world: World) => world.sendKdump(MESSAGE, "10.0.0.2")],
    ["of another version", (world: World) => world.sendKdump(Buffer.from("402a301b02000000", "hex"), ADDRESS)],
    ["with more than a message", (world: World) => world.sendKdump(Buffer.concat([MESSAGE, MESSAGE]), ADDRESS)],
    ["that are empty", (world: World) => world.sendKdump(Buffer.alloc(0), ADDRESS)],
  ] as const)
    it(`messages of a crash kernel change nothing if they are datagrams ${what}`, () =>
      interrupted({ diagnosticsTimeout: "60s" }, async (world, nmiMs) => {
        send(world);
        const offMs = await orderedOff(world);
        assert.ok(offMs - nmiMs >= 59_000 && offMs - nmiMs <= 61_000, `${offMs - nmiMs} ms`);
        assert.equal(stepsOf(world, "CrashKernelRuns"), 0);
        assert.match(await world.metrics("ironfence_kdump_messages_total"), /result="accepted"\} 0/);
      }));

  it("messages of a crash kernel from before the NMI change nothing", () =>
    World.run({ hosts: HOSTS({ onNmi: "hang" }), kdump: true }, async (world) => {
      address(world);
      await world.hang("n1");
      await sendKdump(world, 2);
      // This fault lasts until the NMI is ordered.
      const stop = world.server.onChange(() =>
        diagnosticsOf(world) === undefined ? world.sendKdump(MESSAGE, ADDRESS) : stop(),
      );
      world.remediate("n1", { ...NMI, diagnosticsTimeout: "60s" });
      const offMs = await orderedOff(world);
      const [nmiMs = NaN] = ordersOf(world, "Nmi");
      assert.ok(offMs - nmiMs >= 59_000 && offMs - nmiMs <= 61_000, `${offMs - nmiMs} ms`);
      assert.equal(stepsOf(world, "CrashKernelRuns"), 0);
    }));

  it("messages of a crash kernel in a flood count as one a second, and a replay of them leads to the same decisions", async () => {
    const lines: string[] = [];
    const record = (line: string): void => void lines.push(line.trimEnd());
    await interrupted(
      { diagnosticsTimeout: "20s" },
      async (world) => {
        for (let sent = 0; sent < 20_000; sent += 1) {
          world.sendKdump(MESSAGE, ADDRESS);
          if (sent % 1_000 === 999) await world.clock.advance(500);
        }
        await orderedOff(world);
        assert.equal(stepsOf(world, "CrashKernelRuns"), 1);
      },
      record,
    );
    const received = lines.filter((line) => line.includes('"KdumpReceived"')).length;
    assert.ok(received > 5 && received < 15, `${received} events in 10 s`);
    const replayer = new Replayer(PURE_FUNCTIONS);
    assert.ok(lines.every((line) => replayer.take(line)));
    assert.equal(replayer.result.difference, undefined);
  });

  it("messages of a crash kernel do not keep a node that is Ready in a new boot from ending the remediation", () =>
    World.run({ hosts: HOSTS({ dumpMs: 15_000 }), kdump: true }, async (world) => {
      await world.hang("n1");
      address(world);
      world.remediate("n1", NMI);
      await world.until("the NMI has reached the host", () => ordersOf(world, "Nmi").length === 1);
      await sendKdump(world, 2);
      await world.phase("n1", "Succeeded");
      assert.deepEqual(ordersOf(world, "ForceOff"), []);
    }));

  it("messages of a crash kernel are reported once by two agents, and those of the second end the wait early", () =>
    interrupted({}, async (world) => {
      await sendKdump(world, 2);
      await world.killAgent();
      await world.clock.advance(5_000);
      world.startAgent();
      await world.clock.advance(5_000);
      const lastMs = await sendKdump(world, 2);
      const offMs = await orderedOff(world);
      assert.ok(offMs - lastMs >= 30_000 && offMs - lastMs <= 31_000, `${offMs - lastMs} ms`);
      assert.equal(stepsOf(world, "CrashKernelRuns"), 1);
    }));

  it("messages of a crash kernel that only the agent before has received leave the wait its stored bound", () =>
    interrupted({ diagnosticsTimeout: "60s" }, async (world) => {
      await sendKdump(world, 2);
      await world.killAgent();
      world.startAgent();
      const offMs = await orderedOff(world);
      const orderedMs = Date.parse(diagnosticsOf(world)?.orderedAt ?? "");
      assert.ok(offMs - orderedMs >= 59_000 && offMs - orderedMs <= 62_000, `${offMs - orderedMs} ms`);
    }));
});
