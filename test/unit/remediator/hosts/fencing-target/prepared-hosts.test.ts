import assert from "node:assert/strict";
import { test } from "node:test";
import { NODES } from "../../../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../../../src/api/ironfence/fencing-target.ts";
import { createFencingTargetDirectory } from "../../../../../src/remediator/hosts/fencing-target/directory.ts";
import type { FencedHost } from "../../../../../src/remediator/hosts/model/host.ts";
import { localNode } from "../../../../../src/nodes/subject.ts";
import type { HostOwner } from "../../../../../src/remediator/machine/model/facts/host-facts.ts";
import type { FakeBmc } from "../targets-fixture.ts";
import { NAMESPACE, uuid, World } from "../targets-fixture.ts";

const never = new AbortController().signal;
const OWNER: HostOwner = { uid: "r1", kind: "BareMetalRemediation", namespace: NAMESPACE, name: "n1" };

interface Fixture {
  world: World;
  bmc: FakeBmc;
  host: () => FencedHost;
  prepare: (signal?: AbortSignal) => Promise<void>;
}

function setUp(): Fixture {
  const world = new World();
  const bmc = world.host("n1", uuid(1), { identity: { verification: "Required", systemUUID: uuid(1) } });
  world.node("n1", uuid(1), false);
  const targets = world.view<FencingTarget>(FENCING_TARGETS);
  const { runtime, openDevice } = world;
  const directory = createFencingTargetDirectory({ runtime, targets, namespace: NAMESPACE, openDevice }, never);
  const host = (): FencedHost => {
    const found = directory.find(localNode("n1"));
    return found.found ? found.host : assert.fail(found.message);
  };
  const prepare = (signal = never): Promise<void> => {
    const node = world.collection(NODES).get({ name: "n1" }) as Node;
    return directory.prepare(world.liveTarget("n1"), { node, onReady: () => undefined }, signal);
  };
  return { world, bmc, host, prepare };
}

/** Lets work in progress continue as far as possible. */
async function settle({ world }: Fixture): Promise<void> {
  await world.clock.advance(1_000);
}

test("a remediation gets the devices that were prepared, and verifies them again before anything else", async () => {
  const fixture = setUp();
  const { world, bmc, host, prepare } = fixture;
  const preparing = prepare();
  await settle(fixture);
  assert.equal(world.openDrivers, 1);
  const power = await host().open(OWNER, never);
  await preparing;
  assert.equal(world.openDrivers, 1);
  bmc.identity = { systemUUID: uuid(2) };
  // Readings of the preparation do not count, because another host answers now.
  assert.equal((await power.readPower(never)).state, "Unknown");
  await assert.rejects(power.forceOff(never));
  assert.deepEqual(bmc.orders, []);
  await power.close();
  assert.equal(world.openDrivers, 0);
});

test("a caller that owns no host gets devices of its own, and the prepared ones stay", async () => {
  const fixture = setUp();
  const { world, host, prepare } = fixture;
  const ended = new AbortController();
  const preparing = prepare(ended.signal);
  await settle(fixture);
  const power = await host().open(undefined, never);
  assert.equal(world.openDrivers, 2);
  await power.close();
  assert.equal(world.openDrivers, 1);
  ended.abort(new Error("the outage is over"));
  await assert.rejects(preparing, /the outage is over/);
  assert.equal(world.openDrivers, 0);
});

for (const [what, change] of [
  [
    "whose target was edited",
    (world: World) => {
      world.secret("other", { username: "admin", password: "secret-2" });
      const { spec } = world.liveTarget("n1");
      const devices = spec.devices.map((device) => ({ ...device, credentialsSecretRef: { name: "other" } }));
      world.target("n1", { ...spec, devices });
    },
  ],
  ["whose Secret was changed", (world: World) => world.secret("n1-bmc", { username: "admin", password: "secret-2" })],
] as const) {
  test(`a host ${what} after its preparation is opened again`, async () => {
    const fixture = setUp();
    const { world, bmc, host, prepare } = fixture;
    const preparing = prepare();
    await settle(fixture);
    change(world);
    bmc.password = "secret-2";
    const power = await host().open(OWNER, never);
    await preparing;
    assert.equal(world.openDrivers, 1);
    // The prepared devices still have the old password.
    assert.equal((await power.readPower(never)).state, "On");
    await power.close();
  });
}

test("a host is not kept open if another host answers", async () => {
  const fixture = setUp();
  const { world, bmc, prepare } = fixture;
  bmc.identity = { systemUUID: uuid(2) };
  await prepare();
  assert.equal(world.openDrivers, 0);
});

test("a host is prepared once at a time", async () => {
  const fixture = setUp();
  const ended = new AbortController();
  const first = fixture.prepare(ended.signal);
  await settle(fixture);
  await fixture.prepare();
  assert.equal(fixture.world.openDrivers, 1);
  ended.abort(new Error("over"));
  await assert.rejects(first, /over/);
});

test("a claim by a watch that says that the host is ours already is made live: another remediation may own it", async () => {
  const { world, host } = setUp();
  const since = "2026-01-01T00:00:00Z";
  const { spec } = world.liveTarget("n1");
  world.target("n1", spec, { owner: { ...OWNER, since } });
  const watched = host();
  world.remediation("r2");
  const other = { uid: world.remediation("r2").metadata.uid, kind: OWNER.kind, namespace: "default", name: "r2" };
  world.target("n1", spec, { owner: { ...other, since } });
  assert.deepEqual(await watched.claim(OWNER, never), { owned: false, by: other });
});
