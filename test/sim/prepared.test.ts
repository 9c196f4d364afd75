import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { parseTimeMs, toTime } from "../../src/runtime/time.ts";
import { PREPARED_AT_ONCE, PREPARED_BEFORE_MS, PREPARED_KEPT_MS } from "../../src/remediator/early/preparer.ts";
import type { EarlyOptions } from "./early-world.ts";
import { begun, runEarly } from "./early-world.ts";
import type { BmcCall } from "./rack-driver.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// The preparation shortly before the duration of a node ends, and changes between preparation and order.

const DURATION_MS = 300_000;
/** A host that boots in no time. */
const FAST = { bootMs: 100, powerOffDelayMs: 0, powerOnDelayMs: 0 };
const KEY = { namespace: NAMESPACE, name: "n1" };

/** Runs `test` on hosts under a health check with a duration of 300 s and without early releases. */
function runPrepared(options: EarlyOptions, test: (world: World) => Promise<void>): Promise<void> {
  return runEarly({ annotations: { [SKIP_DURATION_IF_OFF]: "false" }, ...options }, test);
}

/** Hangs n1, and lets time pass until just before its power-off is prepared. @returns when its duration is over. */
async function almostDue(world: World, names = ["n1"]): Promise<number> {
  for (const name of names) world.rack.host(name).hang();
  await world.until("none is Ready", () => names.every((name) => !world.isReady(name)));
  const ready = world.node("n1")?.status.conditions?.find(({ type }) => type === "Ready");
  const endMs = (parseTimeMs(ready?.lastTransitionTime) ?? assert.fail()) + DURATION_MS;
  await world.clock.advance(endMs - PREPARED_BEFORE_MS - 500 - world.clock.nowMs());
  return endMs;
}

/** The same, until the host is prepared. @returns the calls since the preparation began. */
async function prepare(world: World): Promise<() => BmcCall[]> {
  await almostDue(world);
  const from = world.devices.calls.length;
  await world.until("it is prepared", () => world.devices.calls.length > from, 2_000);
  await world.clock.advance(500);
  assert.deepEqual(begun(world), []);
  return () => world.devices.calls.slice(from);
}

/** Sets a node to Unknown, as the control plane does. Its kubelet soon sets it to Ready again. */
function becomeUnknown(world: World, name: string): void {
  const conditions = [{ type: "Ready", status: "Unknown", lastTransitionTime: toTime(world.clock.nowMs()) }];
  world.server.collection(NODES).mergePatch({ name }, { status: { conditions } }, "status");
}

const isOrder = ({ call }: BmcCall): boolean => call === "ForceOff";
const ordered = (world: World): Promise<void> =>
  world.until("it is ordered off", () => world.devices.calls.some(isOrder), PREPARED_BEFORE_MS + 3_000);
const names = (calls: readonly BmcCall[]): string[] => calls.map(({ host, call }) => `${host} ${call}`);

describe("a power-off that is prepared", () => {
  it("a power-off that is prepared finds its devices open: one read in the last seconds, and one before the order", () =>
    runPrepared({}, async (world) => {
      await almostDue(world);
      const from = world.devices.calls.length;
      await ordered(world);
      const calls = world.devices.calls.slice(from);
      const order = calls.findIndex(isOrder);
      assert.deepEqual(names(calls.slice(0, order + 1)), ["n1 identify", "n1 identify", "n1 ForceOff"]);
      assert.equal(new Set(calls.slice(0, order + 1).map(({ device }) => device)).size, 1);
      const createdMs = parseTimeMs(begun(world)[0]?.metadata.creationTimestamp) ?? assert.fail();
      assert.ok((calls[0]?.atMs ?? 0) >= createdMs - PREPARED_BEFORE_MS - 1_000);
      await world.until("n1 is back", () => begun(world).length === 0 && world.isReady("n1"));
      world.assertClean();
    }));

  it("a power-off that is prepared for a node that recovers leaves nothing open, and is prepared again in the next outage", () =>
    runPrepared({ hosts: ["n1", "n2"].map((name) => ({ name, ...FAST })) }, async (world) => {
      const calls = await prepare(world);
      assert.equal(world.devices.open(), 1);
      world.rack.host("n1").order("ForceRestart");
      await world.until("n1 is Ready", () => world.isReady("n1"), 1_500);
      await world.clock.advance(100);
      assert.equal(world.devices.open(), 0);
      await world.clock.advance(60_000);
      assert.deepEqual(calls().filter(isOrder), []);
      await prepare(world);
      await ordered(world);
    }));

  it("a power-off that is prepared is closed when its node recovers, although another node has failed since", () =>
    runPrepared({ hosts: ["n1", "n2"].map((name) => ({ name, ...FAST })) }, async (world) => {
      const calls = await prepare(world);
      becomeUnknown(world, "n2");
      await world.clock.advance(100);
      assert.equal(world.devices.open(), 1);
      world.rack.host("n1").order("ForceRestart");
      await world.until("n1 is Ready", () => world.isReady("n1"), 1_500);
      await world.clock.advance(100);
      assert.equal(world.devices.open(), 0);
      assert.deepEqual(calls().filter(isOrder), []);
    }));

  it("a power-off that is prepared and never asked for is given up soon after the duration", () =>
    runPrepared({}, async (world) => {
      const calls = await prepare(world);
      world.pause(true);
      world.server.faults.inject({
        match: { resource: "baremetalremediations", verbs: ["create"] },
        times: Infinity,
        action: { kind: "status", status: 500 },
      });
      await world.clock.advance(PREPARED_BEFORE_MS + PREPARED_KEPT_MS);
      assert.equal(world.devices.open(), 0);
      assert.deepEqual(names(calls()), ["n1 identify"]);
    }));

  it("a power-off that is prepared leaves nothing open when its agent ends, and the next agent orders it", () =>
    runPrepared({}, async (world) => {
      await prepare(world);
      const askedMs = world.clock.nowMs();
      await world.killAgent();
      assert.ok(world.clock.nowMs() - askedMs <= 1_000, `${world.clock.nowMs() - askedMs} ms`);
      assert.equal(world.devices.open(), 0);
      world.startAgent();
      await world.until("it is ordered off", () => world.devices.calls.some(isOrder), 60_000);
    }));
});

describe("what changes between a preparation and the order", () => {
  it("another host that answers the prepared devices is not powered off", () =>
    runPrepared({}, async (world) => {
      const calls = await prepare(world);
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False IdentityMismatch");
      assert.deepEqual(calls().filter(isOrder), []);
      assert.deepEqual(world.powerLog, []);
    }));

  it("a target that is edited after its power-off was prepared is powered off by its new devices", () =>
    runPrepared({}, async (world) => {
      const targets = world.server.collection<FencingTarget>(FENCING_TARGETS);
      targets.delete({ namespace: NAMESPACE, name: "n2" });
      world.rack.bmc("n2").rewire(world.rack.host("n1"));
      const calls = await prepare(world);
      const devices = targets.get(KEY)?.spec.devices.map((device) => ({ ...device, address: "redfish://n2" }));
      targets.mergePatch(KEY, { spec: { devices } });
      await ordered(world);
      assert.deepEqual(names(calls().filter(isOrder)), ["n2 ForceOff"]);
    }));

  it("an identity that is set after a power-off was prepared is the one that the host must have", () =>
    runPrepared({}, async (world) => {
      const calls = await prepare(world);
      const systemUUID = "a1b2c3d4-0001-4000-8000-00000000abcd";
      world.server.collection(FENCING_TARGETS).mergePatch(KEY, { spec: { identity: { systemUUID } } });
      await world.phase("n1", "Failed");
      assert.deepEqual(calls().filter(isOrder), []);
    }));

  it("a password that is changed after a power-off was prepared is used for the order", () =>
    runPrepared({}, async (world) => {
      const calls = await prepare(world);
      const [prepared] = calls();
      world.faults.password = "changed";
      const data = { password: Buffer.from("changed").toString("base64") };
      world.server.collection(SECRETS).mergePatch({ namespace: NAMESPACE, name: "bmc" }, { data });
      await ordered(world);
      assert.deepEqual(
        calls().filter(({ device, call }) => device === prepared?.device && call !== "identify"),
        [],
      );
      assert.equal(calls().filter(({ device }) => device === prepared?.device).length, 1);
    }));

  it("a second target for the host that appears after a power-off was prepared holds the order", () =>
    runPrepared({}, async (world) => {
      const calls = await prepare(world);
      const spec = world.target("n1")?.spec ?? assert.fail();
      world.create(FENCING_TARGETS, { namespace: NAMESPACE, name: "rival" }, { spec: { ...spec, nodeName: "n9" } });
      await world.clock.advance(20_000);
      assert.deepEqual(calls().filter(isOrder), []);
    }));

  for (const [what, hold] of [
    ["the stop switch", (world: World) => world.pause(true)],
    [
      "maintenance",
      (world: World) => world.server.collection(FENCING_TARGETS).mergePatch(KEY, { spec: { maintenance: true } }),
    ],
  ] as const) {
    it(`an order is held by ${what} that is set after the order was prepared`, () =>
      runPrepared({}, async (world) => {
        const calls = await prepare(world);
        hold(world);
        await world.clock.advance(30_000);
        assert.deepEqual(calls().filter(isOrder), []);
      }));

    it(`no power-off is prepared under ${what}`, () =>
      runPrepared({}, async (world) => {
        hold(world);
        // The target is probed after the edit.
        await world.clock.advance(10_000);
        await almostDue(world);
        const from = world.devices.calls.length;
        await world.clock.advance(PREPARED_BEFORE_MS + 500);
        assert.deepEqual(names(world.devices.calls.slice(from)), []);
      }));
  }
});

describe("a BMC that does not answer a preparation", () => {
  for (const [how, fault] of [
    ["never answers", { error: "Timeout" }],
    ["answers late", { lie: "slow" }],
    ["refuses", { error: "Refused" }],
  ] as const) {
    it(`a BMC that ${how} while a power-off is prepared does not delay the order, and receives no further request to prepare it`, () => {
      let isPreparing = false;
      const interference = {
        call: (_agent: string, what: string) => (isPreparing && what.includes("identify") ? fault : undefined),
      };
      return runPrepared({ interference }, async (world) => {
        const endMs = await almostDue(world);
        const from = world.devices.calls.length;
        isPreparing = true;
        await world.until("it is prepared", () => world.devices.calls.length > from, 2_000);
        await world.clock.advance(50);
        isPreparing = false;
        // A change of another node does not lead to another preparation.
        becomeUnknown(world, "n2");
        await world.until("it begins", () => begun(world).length > 0, 5_000);
        const before = world.devices.calls.slice(from).filter(({ atMs }) => atMs < endMs);
        assert.deepEqual(names(before), ["n1 identify"]);
        const beganMs = world.clock.nowMs();
        await ordered(world);
        assert.ok(world.clock.nowMs() - beganMs <= 500, `${world.clock.nowMs() - beganMs} ms`);
      });
    });
  }
});

describe("many power-offs at once", () => {
  const hosts = Array.from({ length: 30 }, (_, index) => ({ name: `n${index + 1}` }));

  it("many power-offs that are due at once are prepared for eight hosts alone", () =>
    runPrepared({ hosts, minHealthy: 0 }, async (world) => {
      const all = hosts.map(({ name }) => name);
      const endMs = await almostDue(world, all);
      const from = world.devices.calls.length;
      await world.clock.advance(endMs - 100 - world.clock.nowMs());
      assert.equal(world.devices.open(), PREPARED_AT_ONCE);
      assert.equal(world.devices.calls.length - from, PREPARED_AT_ONCE);
      await world.until("all are ordered off", () => world.powerLog.length >= hosts.length, 60_000);
    }));

  it("no power-off is prepared while too few nodes are healthy", () =>
    runPrepared({ hosts, minHealthy: 20 }, async (world) => {
      await almostDue(
        world,
        hosts.slice(0, 12).map(({ name }) => name),
      );
      const from = world.devices.calls.length;
      await world.clock.advance(PREPARED_BEFORE_MS + 5_000);
      assert.deepEqual(names(world.devices.calls.slice(from)), []);
    }));
});

describe("a kubelet that says ever new things", () => {
  const loginsOf = (world: World, from: number): number =>
    new Set(world.devices.calls.slice(from).flatMap(({ host, device }) => (host === "n1" ? [device] : []))).size;

  it("a power-off is prepared once a minute of a node that says again and again that its duration is about to end", () =>
    runPrepared({}, async (world) => {
      world.rack.host("n1").hang();
      await world.clock.advance(20_000);
      const from = world.devices.calls.length;
      for (let step = 0; step < 600; step += 1) {
        const lastTransitionTime = toTime(world.clock.nowMs() - (step % 2 === 0 ? 298_000 : 299_000));
        const conditions = (world.node("n1")?.status.conditions ?? []).map((condition) =>
          condition.type === "Ready" ? { ...condition, status: "False", lastTransitionTime } : condition,
        );
        world.server.collection(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
        await world.clock.advance(100);
      }
      assert.ok(loginsOf(world, from) <= 5, `${loginsOf(world, from)} logins`);
    }));

  it("a host is probed no more than once a minute because its node reports ever new boots", () =>
    runEarly({}, async (world) => {
      const from = world.devices.calls.length;
      const nodeInfo = world.node("n1")?.status.nodeInfo;
      for (let step = 0; step < 300; step += 1) {
        const status = { nodeInfo: { ...nodeInfo, bootID: `boot-${step}` } };
        world.server.collection(NODES).mergePatch({ name: "n1" }, { status }, "status");
        await world.clock.advance(1_000);
      }
      assert.ok(loginsOf(world, from) <= 6, `${loginsOf(world, from)} logins`);
    }));
});
