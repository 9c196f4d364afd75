import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import * as fc from "fast-check";
import { BARE_METAL_REMEDIATIONS } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, SECRETS } from "../../../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../../../src/api/kubernetes/core.ts";
import type { Device, FencingTarget } from "../../../../../src/api/ironfence/fencing-target.ts";
import type { Condition } from "../../../../../src/api/schema/meta.ts";
import { FENCING_TARGETS } from "../../../../../src/api/ironfence/fencing-target.ts";
import { BmcError } from "../../../../../src/bmc/interface/errors.ts";
import { PartlyTakenError } from "../../../../../src/bmc/topology/order-errors.ts";
import type { DeviceConfig } from "../../../../../src/bmc/interface/device-config.ts";
import type { FencingTargetDirectory } from "../../../../../src/remediator/hosts/fencing-target/directory.ts";
import { NodeClusters } from "../../../../../src/remediator/clusters/node-clusters.ts";
import { localNode } from "../../../../../src/nodes/subject.ts";
import { createFencingTargetDirectory } from "../../../../../src/remediator/hosts/fencing-target/directory.ts";
import type { FencedHost } from "../../../../../src/remediator/hosts/model/host.ts";
import { TargetError } from "../../../../../src/remediator/hosts/model/host.ts";
import type { KubeObject } from "../../../../../src/kube/resource.ts";
import { address, device, FakeBmc, NAMESPACE, uuid, World } from "../targets-fixture.ts";
import type { HostOwner } from "../../../../../src/remediator/machine/model/facts/host-facts.ts";

const signal = new AbortController().signal;

function directoryOf(world: World, openDevice = world.openDevice): FencingTargetDirectory {
  const deps = {
    runtime: world.runtime,
    targets: world.view<FencingTarget>(FENCING_TARGETS),
    namespace: NAMESPACE,
    openDevice,
  };
  return createFencingTargetDirectory(deps, signal);
}

function hostOf(directory: FencingTargetDirectory, nodeName: string): FencedHost {
  const found = directory.find(localNode(nodeName));
  assert.ok(found.found, found.found ? "" : found.message);
  return found.host;
}

/** `open` opens the devices of n1, and `configs` collects with which configuration each of them is opened. */
function recordedOpens(world: World): { configs: DeviceConfig[]; open: () => ReturnType<FencedHost["open"]> } {
  const configs: DeviceConfig[] = [];
  const recording: typeof world.openDevice = (config, deps) => {
    configs.push(config);
    return world.openDevice(config, deps);
  };
  return { configs, open: () => hostOf(directoryOf(world, recording), "n1").open(undefined, signal) };
}

function ownerOf(remediation: KubeObject): HostOwner {
  const { uid, name, namespace = "" } = remediation.metadata;
  return { uid, kind: remediation.kind, namespace, name };
}

const OWNER = {
  uid: "r2",
  kind: BARE_METAL_REMEDIATIONS.kind,
  namespace: NAMESPACE,
  name: "n2",
  since: "2026-01-01T00:00:00Z",
};

const identity = (n: number): FencingTarget["spec"]["identity"] => ({ verification: "Required", systemUUID: uuid(n) });

test("a host is found by its node's name and by its target's UID", () => {
  const world = new World();
  world.host("n1", uuid(1));
  const directory = directoryOf(world);
  const host = hostOf(directory, "n1");
  assert.equal(directory.byUid(host.ref.uid)?.mismatchWith(localNode("n1")), undefined);
  assert.equal(host.mismatchWith(localNode("n2")), "names node n1 now");
  const missing = directory.find(localNode("n2"));
  assert.ok(!missing.found && missing.reason === "NoTarget");
  assert.match(missing.message, /create one with spec\.nodeName n2/);
});

test("a target of another namespace is not honored", () => {
  const world = new World();
  const { spec } = world.target("n1", {});
  world.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n1" });
  world.put<FencingTarget>(FENCING_TARGETS, "n1", { spec }, "tenant");
  const found = directoryOf(world).find(localNode("n1"));
  assert.ok(!found.found && found.reason === "NoTarget");
});

test("two targets for one node are both ambiguous until one of them is deleted", () => {
  const world = new World();
  world.host("n1", uuid(1));
  world.target("copy", { nodeName: "n1" });
  const directory = directoryOf(world);
  const found = directory.find(localNode("n1"));
  assert.ok(!found.found && found.reason === "Ambiguous");
  world.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "copy" });
  assert.ok(directory.find(localNode("n1")).found);
});

test("two targets that point at one System are both ambiguous, however its address is written", () => {
  const spellings = [
    "redfish://n1.example/redfish/v1/Systems/1/",
    "redfish://N1.example:443/redfish/v1/Systems/1",
    "idrac-redfish+https://n1.example/1",
    // The address names no System, so the only System of the BMC is used.
    "https://n1.example",
  ];
  for (const spelling of spellings) {
    const world = new World();
    world.host("n1", uuid(1));
    world.target("n2", { devices: [{ ...device("n2"), address: spelling }] });
    const directory = directoryOf(world);
    for (const node of ["n1", "n2"]) {
      const found = directory.find(localNode(node));
      assert.ok(!found.found && found.reason === "Ambiguous", `${spelling} ${node}`);
    }
  }
});

test("two Systems of one BMC are two hosts", () => {
  const world = new World();
  world.target("n1", { devices: [{ ...device("n1"), address: "redfish://chassis.example/redfish/v1/Systems/1" }] });
  world.target("n2", { devices: [{ ...device("n2"), address: "redfish://chassis.example/redfish/v1/Systems/2" }] });
  const directory = directoryOf(world);
  assert.ok(directory.find(localNode("n1")).found && directory.find(localNode("n2")).found);
});

test("two targets that claim one system UUID are both ambiguous, also in the other byte order", () => {
  const world = new World();
  world.host("n1", uuid(1), { identity: identity(1) });
  const swapped = "44454c4c-4200-104a-8054-000000000001";
  world.host("n2", uuid(2), { identity: { verification: "Required", systemUUID: swapped } });
  const found = directoryOf(world).find(localNode("n2"));
  assert.ok(!found.found && found.reason === "Ambiguous");
});

test("two targets whose specs give one serial number are both ambiguous", () => {
  const world = new World();
  world.host("n1", uuid(1), { identity: { verification: "Required", serialNumber: "S-1" } });
  world.host("n2", uuid(2), { identity: { verification: "Required", serialNumber: "S-1" } });
  const found = directoryOf(world).find(localNode("n2"));
  assert.ok(!found.found && found.reason === "Ambiguous");
});

test("the wrong machine is never powered: with swapped addresses nothing is ordered", async () => {
  const world = new World();
  const one = world.host("n1", uuid(1), {
    identity: identity(1),
    devices: [{ ...device("n1"), address: address("n2") }],
  });
  const two = world.host("n2", uuid(2), {
    identity: identity(2),
    devices: [{ ...device("n2"), address: address("n1") }],
  });
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  const verdict = await power.verifyIdentity(undefined, signal);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
  await assert.rejects(power.forceOff(signal), BmcError);
  await assert.rejects(power.on(signal), BmcError);
  await assert.rejects(power.setBootOverride("NetworkOnce", signal), BmcError);
  two.power = { state: "Off", raw: "Off" };
  assert.equal((await power.readPower(signal)).state, "Unknown", "another host's Off is not proof");
  await power.close();
  assert.deepEqual([...one.orders, ...two.orders], []);
});

test("a caller who forgets to verify does not get an order through to another host", async () => {
  const world = new World();
  const bmc = world.host("n1", uuid(7), { identity: identity(1) });
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  await assert.rejects(power.forceOff(signal), BmcError);
  assert.deepEqual(bmc.orders, []);
});

test("a competitor that appears after the lookup stops the order", async () => {
  const world = new World();
  const bmc = world.host("n1", uuid(1), { identity: identity(1) });
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  world.target("copy", { nodeName: "n1" });
  const verdict = await power.verifyIdentity(undefined, signal);
  assert.ok(!verdict.verified);
  await assert.rejects(power.forceOff(signal), BmcError);
  assert.deepEqual(bmc.orders, []);
});

test("a node that reports the same UUID after the lookup stops the order", async () => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  world.target("n1", {}, { identity: { nodeName: "n1", systemUUID: uuid(1) } });
  const { runtime, openDevice } = world;
  const nodes = world.view<Node>(NODES);
  const clusters = new NodeClusters({ runtime, nodes, clusters: world.workloadClusters });
  const targets = world.view<FencingTarget>(FENCING_TARGETS);
  const directory = createFencingTargetDirectory(
    { runtime, targets, namespace: NAMESPACE, openDevice, clusters },
    signal,
  );
  const power = await hostOf(directory, "n1").open(undefined, signal);
  world.node("n2", uuid(1));
  const verdict = await power.verifyIdentity(nodes.get({ name: "n1" }), signal);
  assert.ok(!verdict.verified && verdict.reason === "Unknown");
  await assert.rejects(power.forceOff(signal), /node n2 reports system UUID/);
  assert.deepEqual(bmc.orders, []);
  assert.equal(verdict.enoughForOn, true, "one that was verified before its power-off is powered on");
  assert.equal((await power.readPower(signal)).state, "Unknown", "nor does it prove anything off");
  assert.equal((await power.readWhole(signal)).state, "On");
  world.node("n2", uuid(2));
  assert.ok((await power.verifyIdentity(nodes.get({ name: "n1" }), signal)).verified);
  await power.close();
});

for (const [what, competitor, status, isEnough] of [
  ["a pin of another target", {}, {}, true],
  ["a pin of another target that is being remediated", {}, { owner: OWNER }, false],
  ["a spec.identity", { identity: identity(1) }, {}, false],
] as const) {
  test(`a power-off waits because of ${what} with the same UUID, and a power-on ${isEnough ? "does not wait" : "waits as well"}`, async () => {
    const world = new World();
    const pinned = (nodeName: string) => ({ identity: { nodeName, systemUUID: uuid(1) } });
    const bmc = world.host("n1", uuid(1));
    world.target("n1", {}, pinned("n1"));
    const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
    world.host("n2", uuid(2));
    world.target("n2", competitor, { ...pinned("n2"), ...status });
    const verdict = await power.verifyIdentity(undefined, signal);
    assert.ok(!verdict.verified && verdict.reason === "Unknown");
    assert.equal(verdict.enoughForOn === true, isEnough);
    await assert.rejects(power.forceOff(signal), BmcError);
    assert.deepEqual(bmc.orders, []);
    await power.close();
  });
}

test("a host that is who it must be is powered off and on", async () => {
  const world = new World();
  const bmc = world.host("n1", uuid(1), { identity: identity(1) });
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  assert.ok((await power.verifyIdentity(undefined, signal)).verified);
  await power.forceOff(signal);
  assert.equal((await power.readPower(signal)).state, "Off");
  await power.on(signal);
  await power.close();
  assert.deepEqual(bmc.orders, ["ForceOff", "On"]);
  assert.equal(world.openDrivers, 0);
});

test("the next level is used if the first does not answer, and its devices must be verified too", async () => {
  const world = new World();
  const first = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("pdu", 2)] });
  world.secret("pdu-bmc", { username: "admin", password: "secret-1" });
  const pdu = new FakeBmc({});
  world.bmcs.set(address("pdu"), pdu);
  first.failure = new BmcError("Unreachable", "n1 is gone");
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  await assert.rejects(power.forceOff(signal), { code: "Unreachable" });
  assert.deepEqual(pdu.orders, [], "it is not known whose outlet that is");
  pdu.power = { state: "Off", raw: "Off" };
  await assert.rejects(power.readPower(signal), { code: "Unreachable" }, "nor whose Off");
  await assert.rejects(power.verifyIdentity(undefined, signal), { code: "Unreachable" }, "it may yet be accepted");
  pdu.identity = { systemUUID: uuid(1) };
  await power.verifyIdentity(undefined, signal);
  await power.forceOff(signal);
  assert.deepEqual(pdu.orders, ["ForceOff"]);
  assert.equal((await power.readPower(signal)).state, "Off");
});

test("a host without an identity is only powered on again, and its Off does not count", async () => {
  const world = new World();
  const bmc = world.host("n1", uuid(1), { identity: identity(1) });
  bmc.identity = {};
  bmc.power = { state: "Off", raw: "Off" };
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  assert.equal((await power.readPower(signal)).state, "Unknown");
  await assert.rejects(power.forceOff(signal), { code: "Unsupported" });
  await assert.rejects(power.setBootOverride("NetworkOnce", signal), { code: "Unsupported" });
  await power.setBootOverride("None", signal);
  await power.on(signal);
  assert.deepEqual(bmc.orders, ["boot None", "On"]);
});

test("a level is verified only once each of its devices has shown its identity", async () => {
  const world = new World();
  const one = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("twin", 1)] });
  const twin = world.bmc("twin", uuid(7));
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  twin.failure = new BmcError("Unreachable", "the other device is gone");
  await assert.rejects(power.verifyIdentity(undefined, signal), { code: "Unreachable" });
  twin.failure = undefined;
  await assert.rejects(power.forceOff(signal), { code: "SystemNotFound" });
  assert.deepEqual([...one.orders, ...twin.orders], []);
});

test("a host that its node contradicts when it is verified counts as another host from then on", async () => {
  const world = new World();
  const bmc = world.host("n1", uuid(1));
  world.target("n1", {}, { identity: { nodeName: "n1", systemUUID: uuid(1) } });
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  assert.ok((await power.verifyIdentity(undefined, signal)).verified);
  world.node("n1", uuid(5));
  const verdict = await power.verifyIdentity(world.view<Node>(NODES).get({ name: "n1" }), signal);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
  await assert.rejects(power.forceOff(signal), { code: "SystemNotFound" });
  assert.deepEqual(bmc.orders, []);
});

test("another host on the first level is not a reason to believe the second one's Off", async () => {
  const world = new World();
  world.host("n1", uuid(7), { identity: identity(1), devices: [device("n1", 1), device("second", 2)] });
  const second = world.bmc("second", uuid(1));
  second.power = { state: "Off", raw: "Off" };
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  const verdict = await power.verifyIdentity(undefined, signal);
  assert.ok(!verdict.verified && verdict.reason === "Mismatch");
  assert.equal((await power.readPower(signal)).state, "Unknown");
  await assert.rejects(power.forceOff(signal), { code: "SystemNotFound" });
  assert.deepEqual(second.orders, []);
});

test("all devices of a level must show Off before the host is off", async () => {
  const world = new World();
  const one = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("twin", 1)] });
  const twin = world.bmc("twin", uuid(1));
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  twin.deaf = true;
  await power.forceOff(signal);
  assert.equal(one.power.state, "Off");
  assert.notEqual((await power.readPower(signal)).state, "Off");
  twin.failure = new BmcError("Timeout", "the other device is silent");
  await assert.rejects(power.readPower(signal), { code: "Timeout" });
});

test("an order that one device refuses and another may have carried out counts as one that may have been", async () => {
  const world = new World();
  const one = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("twin", 1)] });
  const twin = world.bmc("twin", uuid(1));
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  await power.verifyIdentity(undefined, signal);
  one.failure = new BmcError("Busy", "come back later");
  for (const code of ["Unreachable", "Timeout", "BadResponse"] as const) {
    twin.failure = new BmcError(code, "the answer is lost");
    await assert.rejects(power.forceOff(signal), { code });
  }
});

test("a device that was turned off while the other one refused keeps the host from reading On as a whole, until it is on again", async () => {
  for (const level of [1, 2]) {
    const world = new World();
    const one = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("twin", level)] });
    const twin = world.bmc("twin", uuid(1));
    const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
    const [obeys, refuses] = level === 1 ? [one, twin] : [twin, one];
    refuses.offFailure = new BmcError("Refused", "not now");
    if (level === 1) await assert.rejects(power.forceOff(signal), PartlyTakenError);
    else await power.forceOff(signal);
    assert.deepEqual([obeys.power.state, refuses.power.state], ["Off", "On"]);
    assert.equal((await power.readPower(signal)).state, "On", "the host runs");
    const off = `${address(obeys === one ? "n1" : "twin")}: Off`;
    assert.deepEqual(await power.readWhole(signal), { state: "Off", raw: off, runs: true });
    await power.on(signal);
    assert.deepEqual(await power.readWhole(signal), { state: "On", raw: "On", runs: true });
    assert.equal(obeys.power.state, "On");
  }
});

test("a device that does not answer leaves it open whether the whole host is on, unless a level is on without it", async () => {
  for (const level of [1, 2]) {
    const world = new World();
    const one = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("twin", level)] });
    const twin = world.bmc("twin", uuid(1));
    const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
    await power.verifyIdentity(undefined, signal);
    await power.readWhole(signal);
    twin.failure = new BmcError("Timeout", "the other device is silent");
    const { state, runs } = await power.readWhole(signal);
    assert.deepEqual([state, runs], [level === 1 ? "Unknown" : "On", true]);
    one.power = { state: "Off", raw: "Off" };
    assert.deepEqual(await power.readWhole(signal), { state: "Off", raw: "Off", runs: false });
    one.failure = twin.failure;
    await assert.rejects(power.readWhole(signal), { code: "Timeout" });
  }
});

test("a host that is off by its first level does not run, though another level's outlet is on", async () => {
  const world = new World();
  const one = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("outlet", 2)] });
  world.bmc("outlet", uuid(1));
  one.power = { state: "Off", raw: "Off" };
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  assert.deepEqual(await power.readWhole(signal), { state: "Off", raw: "Off", runs: false });
});

test("another host on one level proves nothing about this one, which is on by the other level", async () => {
  const world = new World();
  world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("second", 2)] });
  const second = world.bmc("second", uuid(7));
  second.power = { state: "Off", raw: "Off" };
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  assert.deepEqual(await power.readWhole(signal), { state: "On", raw: "On", runs: true });
});

test("a level whose Off never shows is followed by the next at the second order", async () => {
  const world = new World();
  const first = world.host("n1", uuid(1), { identity: identity(1), devices: [device("n1", 1), device("second", 2)] });
  const second = world.bmc("second", uuid(1));
  first.deaf = true;
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  await power.forceOff(signal);
  assert.deepEqual(second.orders, []);
  await power.forceOff(signal);
  assert.deepEqual(second.orders, ["ForceOff"]);
  // After an Off was read, orders begin with the first level again.
  first.deaf = false;
  await power.forceOff(signal);
  assert.equal((await power.readPower(signal)).state, "Off");
  await power.forceOff(signal);
  assert.deepEqual([first.orders.length, second.orders.length], [3, 1]);
});

test("a missing Secret, a missing key and a bad address each say what to do, and no password is ever in a message", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const directory = directoryOf(world);
  const open = (): Promise<unknown> => hostOf(directory, "n1").open(undefined, signal);
  const failsWith = (reason: TargetError["reason"], text: RegExp) => (error: unknown) => {
    assert.ok(error instanceof TargetError);
    assert.equal(error.reason, reason);
    assert.match(error.message, text);
    assert.doesNotMatch(error.message, /secret-1/);
    return true;
  };
  world.secret("n1-bmc", { username: "admin" });
  await assert.rejects(open(), failsWith("SecretInvalid", /Secret ironfence\/n1-bmc .* has no key password: add it/));
  world.collection(SECRETS).delete({ namespace: NAMESPACE, name: "n1-bmc" });
  await assert.rejects(open(), failsWith("SecretNotFound", /FencingTarget ironfence\/n1 does not exist: create it/));
  world.secret("n1-bmc", { username: "admin", password: "secret-1" });
  world.target("n1", { devices: [{ ...device("n1"), address: "bad:thing" }] });
  await assert.rejects(open(), failsWith("AddressInvalid", /spec\.devices\[0\]/));
  world.secret("ca", { "ca.crt": "no certificate" });
  const tls = { insecureSkipVerify: false, caSecretRef: { name: "ca", key: "ca.crt" } };
  world.target("n1", { devices: [{ ...device("n1"), tls }] });
  await assert.rejects(open(), failsWith("SecretInvalid", /PEM/));
});

test("a Secret is sent to no address but those that it allows, and over plain HTTP only if its device says so", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const { configs, open } = recordedOpens(world);
  const refused = (text: RegExp) => (error: unknown) =>
    error instanceof TargetError && error.reason === "AddressNotAllowed" && text.test(error.message);
  world.target("n1", { devices: [{ ...device("n1"), address: "redfish://attacker.test" }] });
  await assert.rejects(open(), refused(/n1-bmc may not be sent .* add https:\/\/attacker\.test:443 to the annotation/));
  world.secret("n1-bmc", { username: "admin", password: "secret-1" }, "");
  world.target("n1", { devices: [device("n1")] });
  await assert.rejects(open(), refused(/n1-bmc may not be sent/));
  const plain = { ...device("n1"), address: "redfish+http://n1.example" };
  world.secret("n1-bmc", { username: "admin", password: "secret-1" }, "redfish+http://n1.example");
  world.target("n1", { devices: [plain] });
  await assert.rejects(open(), refused(/plain HTTP address, .* set allowPlainHTTP/));
  assert.deepEqual(configs, []);
  world.target("n1", { devices: [{ ...plain, allowPlainHTTP: true }] });
  await (await open()).close();
  assert.equal(configs.length, 1);
});

test("an outlet gets the passwords of its Secret, and a community only if its device allows plain text", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const { configs, open } = recordedOpens(world);
  const outlet = { ...device("n1"), address: "snmp://pdu-1.example/7" };
  const snmp = { version: "v3", securityLevel: "authPriv", authProtocol: "SHA", privProtocol: "AES" } as const;
  const data = { username: "fence", password: "secret-11", privPassword: "secret-22", community: "secret-33" };
  world.secret("n1-bmc", data, "snmp://pdu-1.example");
  world.target("n1", { devices: [{ ...outlet, snmp: { ...snmp, mib: "Raritan" } }] });
  await (await open()).close();
  const [v3] = configs.splice(0);
  assert.deepEqual([v3?.username, v3?.password.reveal()], ["fence", "secret-11"]);
  assert.deepEqual(
    [v3?.snmp?.privPassword?.reveal(), v3?.snmp?.authProtocol, v3?.snmp?.mib],
    ["secret-22", "SHA", "Raritan"],
  );
  const v2c = { ...snmp, version: "v2c" } as const;
  world.target("n1", { devices: [{ ...outlet, snmp: v2c }] });
  const refused = (error: unknown) =>
    error instanceof TargetError &&
    error.reason === "AddressNotAllowed" &&
    /set snmp\.allowPlainText/.test(error.message);
  await assert.rejects(open(), refused);
  world.target("n1", { devices: [{ ...outlet, allowPlainHTTP: true, snmp: v2c }] });
  await assert.rejects(open(), refused);
  assert.equal(configs.length, 0);
  world.target("n1", { devices: [{ ...outlet, snmp: { ...v2c, allowPlainText: true } }] });
  await (await open()).close();
  assert.deepEqual(
    configs.map(({ username, password }) => [username, password.reveal()]),
    [["", "secret-33"]],
  );
  world.secret("n1-bmc", { username: "fence", password: "secret-11" }, "snmp://pdu-1.example");
  await assert.rejects(
    open(),
    (error: unknown) => error instanceof TargetError && /no key community/.test(error.message),
  );
});

describe("a Secret without the annotation, of a host that 0.1.0 has taken", () => {
  const since = "2026-01-01T00:00:00Z";
  const reachable = (status: Condition["status"], reason: string): Condition => {
    return { type: "Reachable", status, reason, message: "m", lastTransitionTime: since };
  };
  const ANSWERING = reachable("True", "Answering");

  /** Whether the Secret is sent to n1's BMC, for a status of the present spec or of an earlier one. */
  async function isSent(
    { owner, condition }: { owner?: object; condition?: Condition },
    more: { editedSince?: boolean; annotation?: string; devices?: Device[] } = {},
  ): Promise<boolean> {
    const { editedSince = false, annotation, devices = [device("n1")] } = more;
    const world = new World();
    world.host("n1", uuid(1));
    const { generation = 0 } = world.target("n1", { devices }).metadata;
    // Storing the status also increments the generation here.
    const observedGeneration = editedSince ? generation : generation + 1;
    const conditions = condition === undefined ? [] : [{ ...condition, observedGeneration }];
    world.target("n1", { devices }, { conditions, ...(owner !== undefined && { owner }) } as FencingTarget["status"]);
    world.secret("n1-bmc", { username: "admin", password: "secret-1" }, annotation ?? null);
    try {
      await (await hostOf(directoryOf(world), "n1").open(undefined, signal)).close();
      return true;
    } catch (error) {
      assert.ok(error instanceof TargetError && error.reason === "AddressNotAllowed", String(error));
      return false;
    }
  }

  it("a Secret without the annotation is sent for a host that 0.1.0 owns if 0.1.0 has sent it already, so that the upgrade leaves no host off", async () => {
    assert.equal(await isSent({ owner: OWNER, condition: ANSWERING }), true);
    assert.equal(await isSent({ owner: OWNER, condition: reachable("False", "Unreachable") }), true);
  });

  it("a Secret without the annotation, of a host that 0.1.0 has taken, is sent nowhere once no remediation of 0.1.0 has the host", async () => {
    assert.equal(await isSent({ condition: ANSWERING }), false);
    assert.equal(await isSent({ owner: { ...OWNER, stateVersion: 1 }, condition: ANSWERING }), false);
  });

  it("a Secret without the annotation, of a host that 0.1.0 has taken, is sent to no address that has been edited since", async () => {
    assert.equal(await isSent({ owner: OWNER, condition: ANSWERING }, { editedSince: true }), false);
    assert.equal(await isSent({ owner: OWNER }), false);
  });

  it("a Secret without the annotation is not sent for a host that 0.1.0 owns after an edit, or if one device may hide the fault of another", async () => {
    for (const reason of [
      "AddressNotAllowed",
      "SecretNotFound",
      "SecretInvalid",
      "SecretUnreadable",
      "AddressInvalid",
    ]) {
      assert.equal(await isSent({ owner: OWNER, condition: reachable("False", reason) }), false, reason);
    }
    const devices = [device("n1"), device("n1", 2)];
    assert.equal(await isSent({ owner: OWNER, condition: reachable("False", "Unreachable") }, { devices }), false);
    assert.equal(await isSent({ owner: OWNER, condition: ANSWERING }, { devices }), true);
  });

  it("a Secret without the annotation, of a host that 0.1.0 has taken, no longer counts once the Secret has the annotation", async () => {
    for (const annotation of ["", "redfish://other.example"]) {
      assert.equal(await isSent({ owner: OWNER, condition: ANSWERING }, { annotation }), false);
    }
  });
});

test("the IPMI settings of a device come from its spec, and the BMC's own key from its Secret", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const { configs, open } = recordedOpens(world);
  const openIpmi = async (): Promise<DeviceConfig["ipmi"]> => {
    await (await open()).close();
    return configs.at(-1)?.ipmi;
  };
  assert.deepEqual(await openIpmi(), {});
  world.target("n1", { devices: [{ ...device("n1"), ipmi: { cipherSuites: [16, 3], bootMode: "Legacy" } }] });
  world.secret("n1-bmc", { username: "admin", password: "secret-1", kg: "own-key" });
  const { bmcKey, ...options } = (await openIpmi()) ?? {};
  assert.deepEqual(options, { cipherSuites: [16, 3], bootMode: "Legacy" });
  assert.equal(bmcKey?.reveal(), "own-key");
});

test("a driver server gets the client certificate that its Secret has now, and a BMC gets none", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const { configs, open } = recordedOpens(world);
  const configOf = async (): Promise<DeviceConfig | undefined> => {
    await (await open()).close();
    return configs.at(-1);
  };
  const certificate = { "tls.crt": "first", "tls.key": "secret-1" };
  world.secret("n1-bmc", { username: "admin", password: "secret-2", ...certificate });
  assert.equal((await configOf())?.certificate, undefined, "a BMC");
  const allowed = "driver://power.example";
  world.target("n1", { devices: [{ ...device("n1"), address: "driver://power.example/n1" }] });
  world.secret("n1-bmc", certificate, allowed);
  const alone = await configOf();
  assert.deepEqual([alone?.username, alone?.password.reveal(), alone?.certificate?.cert], ["", "", "first"]);
  world.secret("n1-bmc", { "tls.crt": "renewed", "tls.key": "secret-3" }, allowed);
  const renewed = await configOf();
  assert.deepEqual([renewed?.certificate?.cert, renewed?.certificate?.key.reveal()], ["renewed", "secret-3"]);
  world.secret("n1-bmc", { username: "id", password: "secret-2", ...certificate }, allowed);
  const both = await configOf();
  assert.deepEqual([both?.password.reveal(), both?.certificate?.cert], ["secret-2", "first"]);
  world.secret("n1-bmc", { "tls.crt": "first", "tls.key": "" }, allowed);
  await assert.rejects(configOf(), /has an empty key tls\.key: add it/);
});

test("a broken first level leaves the second one to fence with", async () => {
  const world = new World();
  const bmc = world.host("n1", uuid(1), { identity: identity(1), devices: [device("other", 1), device("n1", 2)] });
  const power = await hostOf(directoryOf(world), "n1").open(undefined, signal);
  await power.forceOff(signal);
  assert.deepEqual(bmc.orders, ["ForceOff"]);
});

test("a host has one owner; the second remediation learns which one", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const host = hostOf(directoryOf(world), "n1");
  const first = ownerOf(world.remediation("r1"));
  const second = ownerOf(world.remediation("r2"));
  assert.deepEqual(await host.claim(first, signal), { owned: true });
  assert.deepEqual(await host.claim(first, signal), { owned: true });
  assert.deepEqual(await host.claim(second, signal), { owned: false, by: first });
  await host.release(second, { asItIs: false, outcome: undefined }, signal);
  assert.equal(world.liveTarget("n1").status?.owner?.uid, first.uid, "no remediation gives up what it does not have");
  assert.equal(world.liveTarget("n1").status?.owner?.stateVersion, 1, "it is not 0.1.0 that has taken it");
  await host.release(first, { asItIs: false, outcome: undefined }, signal);
  assert.deepEqual(await host.claim(second, signal), { owned: true });
});

test("a stale owner is replaced: its CR is gone, was created again, or has its final condition", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const host = hostOf(directoryOf(world), "n1");
  const key = { namespace: "default", name: "r1" };
  const next = async (): Promise<unknown> => {
    const owner = ownerOf(world.remediation(`r${Math.random()}`));
    const claimed = await host.claim(owner, signal);
    if (claimed.owned) await host.release(owner, { asItIs: false, outcome: undefined }, signal);
    return claimed.owned;
  };
  const first = ownerOf(world.remediation("r1"));
  await host.claim(first, signal);
  assert.equal(await next(), false);
  world.remediation("r1", "False");
  assert.equal(await next(), true);

  world.remediation("r1");
  await host.claim(first, signal);
  world.collection(BARE_METAL_REMEDIATIONS).delete(key);
  world.remediation("r1");
  assert.equal(await next(), true, "another UID under the same name is another remediation");

  await host.claim(first, signal);
  world.collection(BARE_METAL_REMEDIATIONS).delete(key);
  assert.equal(await next(), true);
});

test("an owner of an unknown kind is never replaced", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const host = hostOf(directoryOf(world), "n1");
  await host.claim({ uid: "x", kind: "SomebodyElse", namespace: "default", name: "x" }, signal);
  const claimed = await host.claim(ownerOf(world.remediation("r1")), signal);
  assert.equal(claimed.owned, false);
});

test("a target that was created again is not claimed through the old one's host", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const host = hostOf(directoryOf(world), "n1");
  world.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n1" });
  world.target("n1", {});
  await assert.rejects(host.claim(ownerOf(world.remediation("r1")), signal), { code: "NotFound" });
  assert.equal(world.liveTarget("n1").status?.owner, undefined);
});

test("exactly one of any number of owners that claim at once gets the host, at any interleaving", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 5 }), async (scheduler, count) => {
      const world = new World();
      world.host("n1", uuid(1));
      const host = hostOf(directoryOf(world), "n1");
      world.beforeRead = () => scheduler.schedule(Promise.resolve());
      world.beforeWrite = () => scheduler.schedule(Promise.resolve());
      const owners = Array.from({ length: count }, (_, i) => ownerOf(world.remediation(`r${i}`)));
      const claims = Promise.all(owners.map((owner) => host.claim(owner, signal)));
      await scheduler.waitFor(claims);
      const results = await claims;
      const winners = owners.filter((_, i) => results[i]?.owned);
      assert.equal(winners.length, 1);
      assert.equal(world.liveTarget("n1").status?.owner?.uid, winners[0]?.uid);
      for (const result of results) if (!result.owned) assert.equal(result.by.uid, winners[0]?.uid);
    }),
    { numRuns: 60, verbose: 1 },
  );
});

test("recording a reboot leaves no field of the one before", async () => {
  const world = new World();
  world.host("n1", uuid(1));
  const host = hostOf(directoryOf(world), "n1");
  const time = "2026-01-01T00:00:00Z";
  await host.recordReboot({ time, offConfirmedAt: time, nodeUID: "u", bootID: "b" }, signal);
  await host.recordReboot({ time, offConfirmedAt: time, nodeUID: "v" }, signal);
  assert.deepEqual(world.liveTarget("n1").status?.lastReboot, { time, offConfirmedAt: time, nodeUID: "v" });
});
