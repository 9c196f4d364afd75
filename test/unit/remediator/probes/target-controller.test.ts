import assert from "node:assert/strict";
import { test } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, SECRETS } from "../../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../../src/api/ironfence/fencing-target.ts";
import type { Condition } from "../../../../src/api/schema/meta.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { settle } from "../../../lib/virtual-clock.ts";
import {
  address,
  device,
  FakeBmc,
  NAMESPACE,
  startController as start,
  uuid,
  World,
} from "../hosts/targets-fixture.ts";

const MINUTE_MS = 60_000;

function condition(world: World, name: string, type: string): Condition | undefined {
  return world.liveTarget(name).status?.conditions?.find((condition) => condition.type === type);
}

function verdict(world: World, name: string, type = "Ready"): string {
  const found = condition(world, name, type);
  return `${found?.status} ${found?.reason}`;
}

const logins = (world: World): number => world.calls.filter((call) => call.startsWith("get secrets")).length;

test("a good target is Ready, has the system UUID of its node pinned, and gets one Event", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  await start(t, world);
  assert.equal(verdict(world, "n1"), "True Usable");
  assert.equal(verdict(world, "n1", "Reachable"), "True Answering");
  assert.equal(verdict(world, "n1", "IdentityVerified"), "True Matched");
  const { status, metadata } = world.liveTarget("n1");
  assert.deepEqual(status?.identity, { nodeName: "n1", systemUUID: uuid(1) });
  assert.equal(status?.powerState, "On");
  assert.equal(status?.observedGeneration, metadata.generation);
  await world.clock.advance(60 * MINUTE_MS);
  assert.deepEqual(
    world.events.map(({ type, reason }) => `${type} ${reason}`),
    ["Normal Usable"],
  );
  assert.deepEqual(world.bmcs.get(address("n1"))?.orders, [], "a probe orders nothing");
  assert.equal(world.openDrivers, 0);
});

test("swapped addresses are found by probes: both hosts are a mismatch, and neither is pinned", async (t) => {
  const world = new World();
  const one = world.host("n1", uuid(1));
  const two = world.host("n2", uuid(2));
  [one.identity, two.identity] = [two.identity, one.identity];
  await start(t, world);
  for (const name of ["n1", "n2"]) {
    assert.equal(verdict(world, name), "False Mismatch");
    assert.equal(verdict(world, name, "IdentityVerified"), "False Mismatch");
    assert.equal(world.liveTarget(name).status?.powerState, "Unknown");
  }
  assert.equal(world.events.filter(({ type, reason }) => type === "Warning" && reason === "Mismatch").length, 2);
});

test("a node that reports its neighbor's hardware is not pinned, and does not disable its neighbor", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  world.host("n2", uuid(2), { identity: { verification: "Required", systemUUID: uuid(2) } });
  world.node("n1", uuid(2));
  await start(t, world);
  assert.equal(world.liveTarget("n1").status?.identity, undefined);
  assert.equal(verdict(world, "n1"), "False Mismatch");
  assert.equal(verdict(world, "n2"), "True Usable");
});

test("a pinned identity does not disable a target with the same identity in its spec, and is not used itself", async (t) => {
  const world = new World();
  world.host("n1", uuid(2));
  world.host("n2", uuid(2), { identity: { verification: "Required", systemUUID: uuid(2) } });
  const pinned = { identity: { nodeName: "n1", systemUUID: uuid(2) } };
  world.target("n1", {}, pinned);
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False Ambiguous");
  assert.equal(verdict(world, "n2"), "True Usable");
});

test("nothing is pinned from a node that is not Ready or whose lease is old; it is once the node is back", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  world.node("n1", uuid(1), false);
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False NothingToCompare");
  assert.equal(world.liveTarget("n1").status?.identity, undefined);
  world.node("n1", uuid(1));
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a Ready node whose lease is old is not pinned", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  const conditions = [{ type: "Ready", status: "True" }];
  world.node("n1", uuid(1), false);
  world.put<Node>(NODES, "n1", { spec: {}, status: { conditions, nodeInfo: { systemUUID: uuid(1) } } });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False NothingToCompare");
});

test("new hardware under an old node name is pinned again once node and BMC agree on it", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  await start(t, world);
  world.node("n1", uuid(5));
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "False Mismatch");
  assert.equal(world.liveTarget("n1").status?.identity?.systemUUID, uuid(1));
  bmc.identity = { systemUUID: uuid(5) };
  await world.clock.advance(15 * MINUTE_MS);
  assert.equal(verdict(world, "n1", "IdentityVerified"), "True Matched");
  assert.equal(world.liveTarget("n1").status?.identity?.systemUUID, uuid(5));
});

test("a wrong password is tried rarely, and at once when its Secret changes", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  bmc.password = "rotated";
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False AuthenticationFailed");
  assert.match(condition(world, "n1", "Ready")?.message ?? "", /spec\.devices\[0\]\.credentialsSecretRef/);
  assert.doesNotMatch(JSON.stringify(world.liveTarget("n1")), /secret-1/);
  assert.equal(bmc.logins, 1);
  await world.clock.advance(14 * MINUTE_MS);
  assert.equal(bmc.logins, 1, "no more tries for at least ten minutes");
  // Another change of spec or Secret is not a reason to try the same password again.
  world.target("n1", { maintenance: true });
  world.secret("n1-bmc", { username: "admin", password: "secret-1", note: "touched" });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(bmc.logins, 1);
  world.target("n1", { maintenance: false });
  world.secret("n1-bmc", { username: "admin", password: "rotated" });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
  assert.equal(bmc.logins, 1);
});

test("a wrong password that was found before a restart is not tried again at the start", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  bmc.password = "rotated";
  const { stop } = await start(t, world);
  await stop();
  for (let restart = 0; restart < 5; restart++) {
    const { stop } = await start(t, world);
    await world.clock.advance(MINUTE_MS);
    await stop();
  }
  assert.equal(bmc.logins, 1);
});

test("a rotated password is found soon if the watch reports the Secret", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  await start(t, world);
  world.secret("n1-bmc", { username: "admin", password: "typo" });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "False AuthenticationFailed");
  world.secret("n1-bmc", { username: "admin", password: bmc.password });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a target without its Secret reports this, and is probed soon after the Secret is created", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  world.collection(SECRETS).delete({ namespace: NAMESPACE, name: "n1-bmc" });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False SecretNotFound");
  assert.match(condition(world, "n1", "Ready")?.message ?? "", /Secret ironfence\/n1-bmc .* create it/);
  world.secret("n1-bmc", { username: "admin", password: "secret-1" });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a missing permission to read Secrets is reported on the target", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  world.readFailures.set("secrets/n1-bmc", new KubeError("Forbidden", "GET secret n1-bmc: forbidden", { status: 403 }));
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False SecretUnreadable");
});

test("every failure of a BMC is a reason with a next step", async (t) => {
  const world = new World();
  const fails = (name: string, n: number, error: BmcError): void => {
    world.host(name, uuid(n)).failure = error;
  };
  fails("untrusted", 1, new BmcError("TlsUntrusted", "https://untrusted presents SHA-256 AB:CD"));
  fails("silent", 2, new BmcError("Timeout", "no answer"));
  fails("two", 3, new BmcError("SystemAmbiguous", "two Systems"));
  fails("gone", 4, new BmcError("SystemNotFound", "no System 7"));
  await start(t, world);
  assert.equal(verdict(world, "untrusted"), "False TlsUntrusted");
  assert.match(condition(world, "untrusted", "Ready")?.message ?? "", /AB:CD.*spec\.devices\[0\]\.tls.*console/);
  assert.equal(verdict(world, "silent"), "False Timeout");
  assert.equal(verdict(world, "two"), "False SystemAmbiguous");
  assert.equal(verdict(world, "gone"), "False SystemNotFound");
  assert.equal(verdict(world, "gone", "IdentityVerified"), "Unknown NoAnswer");
});

test("a host that could not be proven off is not Ready, with the reason, until that is fixed", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  bmc.obstacle = { reason: "ChassisUnreadable", message: "the power of chassis /redfish/v1/Chassis/1 cannot be read" };
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False ChassisUnreadable");
  assert.equal(verdict(world, "n1", "Reachable"), "True Answering");
  assert.equal(verdict(world, "n1", "IdentityVerified"), "True Matched");
  assert.match(condition(world, "n1", "Ready")?.message ?? "", /Chassis\/1/);
  bmc.obstacle = undefined;
  await world.clock.advance(10 * MINUTE_MS);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a host whose second level could not be proven off is Degraded", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  const second = world.host("n2", uuid(2));
  second.identity = { systemUUID: uuid(1) };
  second.obstacle = { reason: "OffNotOffered", message: "no ForceOff is offered" };
  world.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n2" });
  world.target("n1", { devices: [device("n1"), device("n2", 2)] });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "True Degraded");
  assert.match(condition(world, "n1", "Ready")?.message ?? "", /no ForceOff is offered/);
});

test("a BMC that is unreachable is probed again with growing pauses, and is Ready when it answers again", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  bmc.failure = new BmcError("Unreachable", "no route");
  await start(t, world);
  const before = logins(world);
  await world.clock.advance(60 * MINUTE_MS);
  const tries = logins(world) - before;
  assert.ok(tries >= 5 && tries <= 20, `${tries} tries an hour`);
  bmc.failure = undefined;
  await world.clock.advance(11 * MINUTE_MS);
  assert.equal(verdict(world, "n1", "Reachable"), "True Answering");
});

test("two targets for one node are Ambiguous and not probed; the one that is left becomes Ready", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  world.target("copy", { nodeName: "n1" });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False Ambiguous");
  assert.equal(verdict(world, "copy"), "False Ambiguous");
  assert.equal(logins(world), 0);
  world.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "copy" });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a UUID that two hosts report proves neither, until one of them is deleted", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  await start(t, world);
  assert.equal(verdict(world, "n1"), "True Usable");
  // A second board with the same factory default, for which ironfence has no target.
  world.node("n2", uuid(1));
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "False Ambiguous");
  assert.equal(verdict(world, "n1", "IdentityVerified"), "Unknown NotUnique");
  assert.match(
    condition(world, "n1", "Ready")?.message ?? "",
    /node n2 reports system UUID .*proves neither.*spec\.identity/,
  );
  world.collection(NODES).delete({ name: "n2" });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
  assert.equal(verdict(world, "n1", "IdentityVerified"), "True Matched");
});

test("a UUID that the BMC of another target reports proves neither, until that one reports another", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  const bmc = new FakeBmc({ systemUUID: uuid(1) });
  world.bmcs.set(address("n2"), bmc);
  world.secret("n2-bmc", { username: "admin", password: "secret-1" });
  world.target("n2", {});
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False Ambiguous");
  assert.match(condition(world, "n1", "Ready")?.message ?? "", /FencingTarget ironfence\/n2/);
  bmc.identity = { systemUUID: uuid(2) };
  await world.clock.advance(30 * MINUTE_MS);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a UUID in a spec stays with its target, and a new target that reports the same one is refused and named", async (t) => {
  const world = new World();
  world.host("n1", uuid(1), { identity: { verification: "Required", systemUUID: uuid(1) } });
  await start(t, world);
  world.host("n2", uuid(1));
  await world.clock.advance(MINUTE_MS);
  assert.equal(verdict(world, "n1"), "True Usable");
  assert.equal(verdict(world, "n2"), "False Ambiguous");
  assert.match(condition(world, "n2", "Ready")?.message ?? "", /FencingTarget ironfence\/n1 has system UUID/);
  assert.ok(world.events.some(({ regarding, reason }) => regarding.metadata.name === "n2" && reason === "Ambiguous"));
  // The new target is recognized by an identity that only its host has.
  const bmc = world.bmcs.get(address("n2"));
  assert.ok(bmc !== undefined);
  bmc.identity = { systemUUID: uuid(1), serialNumber: "S-2" };
  world.target("n2", { identity: { verification: "Required", serialNumber: "S-2" } });
  await world.clock.advance(MINUTE_MS);
  assert.deepEqual([verdict(world, "n1"), verdict(world, "n2")], ["True Usable", "True Usable"]);
});

test("two hosts that report one UUID are both refused, and are probed on: the repaired one ends it for both", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  const other = world.host("n2", uuid(1));
  await start(t, world);
  await world.clock.advance(MINUTE_MS);
  assert.deepEqual([verdict(world, "n1"), verdict(world, "n2")], ["False Ambiguous", "False Ambiguous"]);
  other.identity = { systemUUID: uuid(2) };
  world.node("n2", uuid(2));
  await world.clock.advance(10 * MINUTE_MS);
  assert.deepEqual([verdict(world, "n1"), verdict(world, "n2")], ["True Usable", "True Usable"]);
});

test("maintenance shows as not Ready, and is over as soon as it is", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  world.target("n1", { maintenance: true });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False Maintenance");
  world.target("n1", { maintenance: false });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a target whose node does not exist is not Ready, whatever its devices report, until the node joins", async (t) => {
  const world = new World();
  world.host("n1", uuid(1), { identity: { verification: "Required", systemUUID: uuid(1) } });
  world.collection(NODES).delete({ name: "n1" });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False NodeNotFound");
  assert.equal(verdict(world, "n1", "Reachable"), "True Answering");
  assert.equal(condition(world, "n1", "Ready")?.message, NO_NODE);
  world.node("n1", uuid(1));
  await settle();
  assert.equal(verdict(world, "n1"), "True Usable");
});

const NO_NODE = "the cluster has no node n1: correct spec.nodeName, or wait until the node joins";

test("a target that misspells its node names the node that was probably meant, and is Ready once corrected", async (t) => {
  const world = new World();
  world.host("worker-1", uuid(1));
  world.host("worker-23", uuid(2));
  world.target("worker-23", { nodeName: "wroker-23" });
  await start(t, world);
  assert.equal(verdict(world, "worker-23"), "False NodeNotFound");
  assert.equal(
    condition(world, "worker-23", "Ready")?.message,
    "the cluster has no node wroker-23: did you mean worker-23? Correct spec.nodeName",
  );
  world.target("worker-23", { nodeName: "worker-23" });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "worker-23"), "True Usable");
});

test("a target whose node is misspelt and whose password is wrong reports both", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1), { nodeName: "n7" });
  bmc.password = "another";
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False NodeNotFound");
  assert.match(condition(world, "n1", "Ready")?.message ?? "", /no node n7.*cannot be used either: .* refused user/s);
});

test("a broken second level is a Degraded target that can still be fenced", async (t) => {
  const world = new World();
  world.host("n1", uuid(1), { devices: [device("n1", 1), device("pdu", 2)] });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "True Degraded");
  assert.equal(verdict(world, "n1", "Reachable"), "False SecretNotFound");
});

test("a target whose only device may share the host's power is warned about, whatever its levels; another device ends that", async (t) => {
  const world = new World();
  world.host("n1", uuid(1), { devices: [device("n1")] });
  world.host("n2", uuid(2), { devices: [device("n2"), device("n2", 2)] });
  world.host("n3", uuid(3), { devices: [device("n3"), { ...device("n3", 2), address: address("chassis") }] });
  world.bmcs.set(address("chassis"), new FakeBmc({ systemUUID: uuid(3) }));
  await start(t, world);
  for (const [name, warned] of [
    ["n1", true],
    ["n2", true],
    ["n3", false],
  ] as const) {
    assert.equal(verdict(world, name), "True Usable");
    assert.equal(condition(world, name, "Ready")?.message.includes("while its BMC has power"), warned, name);
  }
});

test("a host whose BMC reports no identity cannot be fenced, unless verification is None", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  bmc.identity = { serialNumber: "To be filled by O.E.M." };
  await start(t, world);
  assert.equal(verdict(world, "n1"), "False NothingToCompare");
  world.target("n1", { identity: { verification: "Required", systemUUID: uuid(1) } });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "False NotReported");
  world.target("n1", { identity: { verification: "None" } });
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
  assert.equal(verdict(world, "n1", "IdentityVerified"), "Unknown VerificationDisabled");
});

test("a host that a remediation owns is not probed, and is probed soon after its release", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  const { uid, name, namespace = "" } = world.remediation("r1").metadata;
  const owner = { uid, kind: "BareMetalRemediation", namespace, name, since: "2026-01-01T00:00:00Z" };
  world.target("n1", {}, { owner });
  await start(t, world);
  await world.clock.advance(30 * MINUTE_MS);
  assert.equal(logins(world), 0);
  const held = world.liveTarget("n1");
  world.collection(FENCING_TARGETS).put({ ...held, status: {} } as FencingTarget);
  await world.clock.advance(MINUTE_MS / 6);
  assert.equal(verdict(world, "n1"), "True Usable");
});

test("a host whose owner was deleted without a release is probed again", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  const { uid, name, namespace = "" } = world.remediation("r1").metadata;
  const owner = { uid, kind: "BareMetalRemediation", namespace, name, since: "2026-01-01T00:00:00Z" };
  world.target("n1", {}, { owner });
  world.collection(BARE_METAL_REMEDIATIONS).delete({ namespace, name });
  await start(t, world);
  assert.equal(verdict(world, "n1"), "True Usable");
  assert.equal(world.liveTarget("n1").status?.owner?.uid, uid, "a probe changes no owner");
});

test("a write of another client in between is neither lost nor an obstacle", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  let races = 2;
  world.beforeWrite = () => {
    if (races-- <= 0) return;
    const live = world.liveTarget("n1");
    const lastReboot = { time: "2026-01-01T00:00:00Z", offConfirmedAt: "2026-01-01T00:00:00Z" };
    world.target("n1", live.spec, { ...live.status, lastReboot });
    const raced = world.liveTarget("n1");
    raced.metadata.generation = live.metadata.generation ?? 1;
  };
  await start(t, world);
  assert.equal(verdict(world, "n1"), "True Usable");
  assert.ok(world.liveTarget("n1").status?.lastReboot);
});

test("a thousand healthy targets cost less than one API call per second, as any larger number does", async (t) => {
  const world = new World();
  const count = 1_000;
  const bmc = new FakeBmc({ systemUUID: uuid(1) });
  world.secret("shared", { username: "admin", password: "secret-1" });
  for (let n = 0; n < count; n++) {
    const name = `n${n}`;
    world.bmcs.set(address(name), Object.assign(new FakeBmc({ systemUUID: uuid(n) }), { password: bmc.password }));
    const identity = { verification: "Required", systemUUID: uuid(n) } as const;
    world.target(name, { identity, devices: [{ ...device(name), credentialsSecretRef: { name: "shared" } }] });
    world.put<Node>(NODES, name, { spec: {}, status: { conditions: [] } });
  }
  await start(t, world);
  // The first round probes all new targets quickly. Then probes are rare.
  for (let i = 0; i < 100 && verdict(world, `n${count - 1}`) !== "True Usable"; i++) await settle();
  await settle();
  const before = world.calls.length;
  const hours = 3;
  for (let i = 0; i < hours; i++) await world.clock.advance(60 * MINUTE_MS);
  const perSecond = (world.calls.length - before) / (hours * 3_600);
  assert.ok(perSecond > 0.3 && perSecond < 1, `${perSecond} calls a second`);
});

test("nothing is left when the target controller ends: no timer, no subscription, no open device", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  world.host("n2", uuid(2)).failure = new BmcError("Busy", "later");
  const { stop } = await start(t, world);
  await stop();
  assert.equal(world.clock.pending, 0);
  assert.equal(world.openDrivers, 0);
  for (const type of [FENCING_TARGETS, NODES, SECRETS])
    assert.equal(world.collection(type).listenerCount, 0, type.kind);
});

test("a host that was reset between two probes, and not by this agent, is reported, once", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  bmc.lastReset = "2026-01-01T00:00:00Z";
  await start(t, world);
  const told = (): string[] =>
    world.events
      .filter(({ reason }) => reason === "ResetByOthers")
      .map(({ type, note }) => `${type} ${note.slice(0, 45)}`);
  await world.clock.advance(15 * MINUTE_MS);
  assert.deepEqual(told(), []);
  // The same reset with another rounding.
  bmc.lastReset = "2026-01-01T00:00:01+00:00";
  await world.clock.advance(15 * MINUTE_MS);
  assert.deepEqual(told(), []);
  bmc.lastReset = "2026-01-01T00:20:00Z";
  await world.clock.advance(45 * MINUTE_MS);
  assert.deepEqual(told(), ["Warning the host was reset at 2026-01-01T00:20:00Z (c"]);
});

test("a reset while a remediation owned the host is not reported as another client's, nor one of ironfence that is on record", async (t) => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  bmc.lastReset = "2026-01-01T00:00:00Z";
  await start(t, world);
  const owner = world.remediation("r1");
  const { uid } = owner.metadata;
  const status = (change: object): void => {
    const target = world.liveTarget("n1");
    const { spec } = target;
    world.put<FencingTarget>(FENCING_TARGETS, "n1", { spec, status: { ...target.status, ...change } }, NAMESPACE);
  };
  status({
    owner: { uid, kind: "BareMetalRemediation", namespace: "default", name: "r1", since: "2026-01-01T00:00:00Z" },
  });
  await world.clock.advance(MINUTE_MS);
  bmc.lastReset = "2026-01-01T00:01:00Z";
  status({ owner: undefined });
  await world.clock.advance(45 * MINUTE_MS);
  // The host was owned and given up again between two probes. Only the record shows it.
  bmc.lastReset = "2026-01-01T00:50:00Z";
  status({ lastReboot: { time: "2026-01-01T00:50:00Z", offConfirmedAt: "2026-01-01T00:49:50Z" } });
  await world.clock.advance(45 * MINUTE_MS);
  assert.deepEqual(
    world.events.filter(({ reason }) => reason === "ResetByOthers"),
    [],
  );
});
