import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { SKIP_DURATION_IF_OFF } from "../../../../../src/api/names/annotations.ts";
import { LEASES, NODES } from "../../../../../src/api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../../../../src/api/ironfence/node-health-check.ts";
import type { PowerReading } from "../../../../../src/bmc/interface/driver.ts";
import { BmcError } from "../../../../../src/bmc/interface/errors.ts";
import { claimTarget } from "../../../../../src/remediator/hosts/fencing-target/target-store.ts";
import { toMicroTime, toTime } from "../../../../../src/runtime/time.ts";
import { settle } from "../../../../lib/virtual-clock.ts";
import {
  address,
  device,
  FakeBmc,
  NAMESPACE,
  startController as start,
  uuid,
  World,
} from "../../hosts/targets-fixture.ts";

// Off proofs that the controller of FencingTargets makes for health checks that request them.

const MINUTE_MS = 60_000;
const OFF: PowerReading = { state: "Off", raw: "Off" };
const ON: PowerReading = { state: "On", raw: "On" };

/** A world with n1, Ready and probed, and a health check that requests off proofs. */
async function asking(
  t: TestContext,
  spec: Partial<FencingTarget["spec"]> = {},
): Promise<{ world: World; bmc: FakeBmc }> {
  const world = new World();
  ask(world);
  const bmc = world.host("n1", uuid(1), spec);
  await start(t, world);
  await world.clock.advance(MINUTE_MS);
  return { world, bmc };
}

function ask(world: World, value = "true"): void {
  const check = world.put(NODE_HEALTH_CHECKS, "workers", {});
  const annotations = { [SKIP_DURATION_IF_OFF]: value };
  world.collection(NODE_HEALTH_CHECKS).put({ ...check, metadata: { ...check.metadata, annotations } });
}

/** Changes the condition Ready of the node now. Its kubelet has been silent for a while. */
function changes(world: World, name: string, status: "True" | "False" | "Unknown", n = 1): void {
  world.node(name, uuid(n), status === "True");
  const lastTransitionTime = toTime(world.clock.nowMs());
  const conditions = [{ type: "Ready", status, lastTransitionTime }];
  world.put<Node>(NODES, name, { spec: {}, status: { conditions, nodeInfo: { systemUUID: uuid(n), bootID: "b1" } } });
}

const proof = (world: World, name = "n1") => world.liveTarget(name).status?.offProof;
const probes = (world: World): number => world.calls.filter((call) => call.startsWith("get secrets")).length;

/** Lets the BMC answer with these in order, and then always with the last one. */
function reads(bmc: FakeBmc, ...readings: (PowerReading | BmcError)[]): void {
  let count = 0;
  Object.defineProperty(bmc, "power", {
    configurable: true,
    get: () => {
      const reading = readings[Math.min(count, readings.length - 1)];
      count += 1;
      if (reading instanceof BmcError) throw reading;
      return reading;
    },
  });
}

test("a host that reads Off twice while its node is not Ready is proven off, and the proof names the outage", async (t) => {
  for (const status of ["Unknown", "False"] as const) {
    const { world, bmc } = await asking(t);
    let count = 0;
    Object.defineProperty(bmc, "power", { get: () => (++count, OFF) });
    changes(world, "n1", status);
    await world.clock.advance(1_000);
    assert.equal(count, 2);
    const { metadata } = world.view<Node>(NODES).get({ name: "n1" }) ?? assert.fail();
    const { time, ...outage } = proof(world) ?? assert.fail();
    assert.deepEqual(outage, {
      nodeUID: metadata.uid,
      bootID: "b1",
      notReadySince: toTime(world.clock.nowMs() - 1_000),
    });
    assert.ok(Date.parse(time) >= world.clock.nowMs() - 2_000, time);
    assert.equal(world.liveTarget("n1").status?.powerState, "Off");
    assert.deepEqual(bmc.orders, []);
    assert.equal(world.openDrivers, 0);
  }
});

test("no BMC is read for a node that fails if no health check requests a proof", async (t) => {
  const world = new World();
  ask(world, "false");
  const bmc = world.host("n1", uuid(1));
  await start(t, world);
  bmc.power = OFF;
  const before = probes(world);
  changes(world, "n1", "Unknown");
  await world.clock.advance(MINUTE_MS);
  assert.equal(probes(world), before);
  assert.equal(proof(world), undefined);

  ask(world);
  await world.clock.advance(1_000);
  assert.ok(proof(world), "a wish that comes in the middle of an outage is served");
  ask(world, "false");
  await world.clock.advance(1_000);
  assert.equal(proof(world), undefined, "and so is its end");
});

const doubts: [string, Partial<FencingTarget["spec"]>, (bmc: FakeBmc, world: World) => void][] = [
  ["reads On", {}, (bmc) => reads(bmc, ON)],
  ["reads On, and then Off once", {}, (bmc) => reads(bmc, ON, OFF)],
  ["reads Off once, and then On", {}, (bmc) => reads(bmc, OFF, ON)],
  [
    "reads Off once, and then something between",
    {},
    (bmc) => reads(bmc, OFF, { state: "Changing", raw: "PoweringOn" }),
  ],
  ["reads Off once, and then not at all", {}, (bmc) => reads(bmc, OFF, new BmcError("Unreachable", "reset"))],
  [
    "is another host",
    {},
    (bmc) => {
      bmc.identity = { systemUUID: uuid(2) };
      reads(bmc, OFF);
    },
  ],
  [
    "does not say who it is, though that is accepted",
    { identity: { verification: "None" } },
    (bmc) => {
      bmc.identity = {};
      reads(bmc, OFF);
    },
  ],
  [
    "reads Off by two devices of a level, and then by one of them alone",
    { devices: [device("n1"), device("twin")] },
    (bmc, world) => {
      const twin = new FakeBmc({ systemUUID: uuid(1) });
      world.bmcs.set(address("twin"), twin);
      world.secret("twin-bmc", { username: "admin", password: "secret-1" });
      reads(bmc, OFF);
      reads(twin, OFF, new BmcError("Unreachable", "reset"));
    },
  ],
  ["is in maintenance", { maintenance: true }, (bmc) => reads(bmc, OFF)],
  [
    "is claimed by another target too",
    {},
    (bmc, world) => {
      world.target("n1-again", { nodeName: "n1", devices: [device("n1")] });
      reads(bmc, OFF);
    },
  ],
];
for (const [what, spec, set] of doubts) {
  test(`a host that ${what} is not proven off`, async (t) => {
    const { world, bmc } = await asking(t, spec);
    set(bmc, world);
    changes(world, "n1", "Unknown");
    await world.clock.advance(5_000);
    assert.equal(proof(world), undefined);
  });
}

test("a host whose kubelet renews its lease is not proven off, whatever its BMC reports, until the kubelet stops", async (t) => {
  const { world, bmc } = await asking(t);
  bmc.power = OFF;
  changes(world, "n1", "False");
  const renewTime = toMicroTime(world.clock.nowMs());
  world.put<Lease>(LEASES, "n1", { spec: { renewTime, leaseDurationSeconds: 40 } }, "kube-node-lease");
  await world.clock.advance(5_000);
  assert.equal(proof(world), undefined);
  await world.clock.advance(2 * MINUTE_MS);
  assert.ok(proof(world));
});

test("a lease that was renewed after Ready became Unknown prevents a proof of Off, and an older lease does not", async (t) => {
  for (const [agoMs, isProven] of [
    [-2_000, false],
    [8_000, true],
  ] as const) {
    const { world, bmc } = await asking(t);
    bmc.power = OFF;
    changes(world, "n1", "Unknown");
    const renewTime = toMicroTime(world.clock.nowMs() - agoMs);
    world.put<Lease>(LEASES, "n1", { spec: { renewTime, leaseDurationSeconds: 40 } }, "kube-node-lease");
    await world.clock.advance(5_000);
    assert.equal(proof(world) !== undefined, isProven);
  }
});

test("a proof ends with the outage, with the next reading that differs, and with an edit of its target", async (t) => {
  const { world, bmc } = await asking(t);
  const proven = async (): Promise<void> => {
    bmc.power = OFF;
    changes(world, "n1", "Unknown");
    await world.clock.advance(10_000);
    assert.ok(proof(world));
  };
  await proven();
  changes(world, "n1", "True");
  await settle();
  assert.equal(proof(world), undefined, "the node is back");

  await proven();
  bmc.power = ON;
  await world.clock.advance(20_000);
  assert.equal(proof(world), undefined, "switched on again");

  await proven();
  changes(world, "n1", "False");
  await world.clock.advance(1_000);
  assert.equal(proof(world)?.notReadySince, toTime(world.clock.nowMs() - 1_000), "another outage, another proof");

  await proven();
  bmc.failure = new BmcError("Unreachable", "gone");
  await world.clock.advance(20_000);
  assert.equal(proof(world), undefined, "no answer");
  bmc.failure = undefined;

  await world.clock.advance(10 * MINUTE_MS);
  await proven();
  world.target("n1", { maintenance: true });
  await world.clock.advance(10_000);
  assert.equal(proof(world), undefined, "in maintenance");
});

test("a remediation that takes the host voids the proof, and a probe that was under way does not restore it", async (t) => {
  const { world, bmc } = await asking(t);
  bmc.power = OFF;
  changes(world, "n1", "Unknown");
  await world.clock.advance(1_000);
  assert.ok(proof(world));
  const { uid } = world.remediation("r1").metadata;
  const { name, uid: targetUid } = world.liveTarget("n1").metadata;
  const ref = { kind: "FencingTarget", namespace: NAMESPACE, name, uid: targetUid };
  const owner = { uid, kind: "BareMetalRemediation", namespace: "default", name: "r1" };
  const { signal } = new AbortController();
  await claimTarget(world.runtime, ref, owner, signal);
  assert.equal(proof(world), undefined);
  await world.clock.advance(10 * MINUTE_MS);
  assert.equal(proof(world), undefined);

  // The host is claimed between the second reading and the write of the proof.
  const late = await asking(t);
  late.bmc.power = OFF;
  const lateUid = late.world.remediation("r1").metadata.uid;
  const lateRef = { ...ref, uid: late.world.liveTarget("n1").metadata.uid };
  let claimed = false;
  late.world.beforeWrite = async () => {
    if (claimed) return;
    claimed = true;
    await claimTarget(late.world.runtime, lateRef, { ...owner, uid: lateUid }, signal);
  };
  changes(late.world, "n1", "Unknown");
  await late.world.clock.advance(1_000);
  assert.equal(late.world.liveTarget("n1").status?.owner?.uid, lateUid);
  assert.equal(proof(late.world), undefined);
});

test("a proof of before a restart is not kept: it is made again at once", async (t) => {
  const world = new World();
  ask(world);
  const bmc = world.host("n1", uuid(1));
  const { stop } = await start(t, world);
  bmc.power = OFF;
  changes(world, "n1", "Unknown");
  await world.clock.advance(10_000);
  const first = proof(world)?.time ?? assert.fail();
  await stop();
  await world.clock.advance(30_000);
  bmc.power = ON;
  await start(t, world);
  await world.clock.advance(1_000);
  assert.equal(proof(world), undefined);
  bmc.power = OFF;
  await world.clock.advance(30_000);
  assert.notEqual(proof(world)?.time ?? assert.fail(), first);
});

test("only the first level with a result is read again, and its host must be the expected one", async (t) => {
  const world = new World();
  ask(world);
  const devices = [device("n1"), device("pdu", 2)];
  const bmc = world.host("n1", uuid(1), { devices, identity: { verification: "None" } });
  const pdu = new FakeBmc({});
  world.bmcs.set(address("pdu"), pdu);
  world.secret("pdu-bmc", { username: "admin", password: "secret-1" });
  await start(t, world);
  await world.clock.advance(MINUTE_MS);
  bmc.power = OFF;
  changes(world, "n1", "Unknown");
  await world.clock.advance(1_000);
  assert.ok(proof(world), "the outlet of a host that is off may be on");

  bmc.power = { state: "Unknown", raw: "" };
  pdu.power = OFF;
  await world.clock.advance(MINUTE_MS);
  assert.equal(world.liveTarget("n1").status?.powerState, "Off");
  assert.equal(proof(world), undefined, "a level that does not say who it is proves nothing");
});

test("a BMC is probed less and less often in a long outage, and an outage of many nodes costs no more probes than normal operation", async (t) => {
  const { world, bmc } = await asking(t);
  bmc.power = OFF;
  let before = probes(world);
  changes(world, "n1", "Unknown");
  await world.clock.advance(60 * MINUTE_MS);
  const alone = probes(world) - before;
  assert.ok(alone >= 8 && alone <= 15, `${alone} probes in an hour`);

  const storm = new World();
  ask(storm);
  const names = Array.from({ length: 40 }, (_, n) => `m${n}`);
  for (const [n, name] of names.entries()) storm.host(name, uuid(n));
  await start(t, storm);
  await storm.clock.advance(MINUTE_MS);
  for (const [n, name] of names.entries()) changes(storm, name, "Unknown", n);
  await storm.clock.advance(5_000);
  before = probes(storm);
  await storm.clock.advance(MINUTE_MS);
  const apartMs = MINUTE_MS / (probes(storm) - before);
  assert.ok(apartMs >= 1_500, `${apartMs} ms between two probes`);
});

test("a password that was refused is not tried again because its node fails", async (t) => {
  const { world, bmc } = await asking(t);
  bmc.password = "rotated";
  world.secret("n1-bmc", { username: "admin", password: "secret-1", note: "touched" });
  await world.clock.advance(10_000);
  assert.equal(bmc.logins, 1);
  changes(world, "n1", "Unknown");
  await world.clock.advance(MINUTE_MS);
  assert.equal(bmc.logins, 1);
});
