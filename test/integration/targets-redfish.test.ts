import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import type { KubeRuntime } from "../../src/kube/runtime.ts";
import { NodeClusters } from "../../src/remediator/clusters/node-clusters.ts";
import { localNode } from "../../src/nodes/subject.ts";
import { NO_WORKLOAD_CLUSTERS } from "../lib/workload-clusters.ts";
import { createFencingTargetDirectory } from "../../src/remediator/hosts/fencing-target/directory.ts";
import type { FencedHost } from "../../src/remediator/hosts/model/host.ts";
import type { HostOwner } from "../../src/remediator/machine/model/facts/host-facts.ts";
import { DEFAULT_PROBE_INTERVALS } from "../../src/remediator/probes/schedule/probe-intervals.ts";
import { ProbeRecords } from "../../src/remediator/probes/schedule/probe-records.ts";
import { startTargetController } from "../../src/remediator/probes/target-controller.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { NAMESPACE, uuid, World } from "../unit/remediator/hosts/targets-fixture.ts";

// Targets with the real Redfish driver against simulated BMCs over HTTPS on loopback.

const PASSWORD = "correct-horse";

interface Fixture {
  world: World;
  runtime: KubeRuntime;
  rack: Rack;
  /** The BMC of each host, each with one System. */
  mocks: Record<"n1" | "n2", RedfishMock>;
  sha256Fingerprint: string;
  signal: AbortSignal;
}

async function setUp(t: TestContext): Promise<Fixture> {
  const stopping = new AbortController();
  const rack = createRack({
    clock: systemClock,
    random: systemRandom,
    hosts: [
      { name: "n1", systemUUID: uuid(1), powerOffDelayMs: 50, powerOnDelayMs: 50 },
      { name: "n2", systemUUID: uuid(2), powerOffDelayMs: 50, powerOnDelayMs: 50 },
    ],
  });
  const authority = await createCertificateAuthority(systemClock, "test BMCs");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const start = (host: string): Promise<RedfishMock> =>
    startRedfishMock({
      rack,
      clock: systemClock,
      random: systemRandom,
      hosts: [host],
      tls,
      username: "fencing",
      password: new Secret(PASSWORD),
    });
  const mocks = { n1: await start("n1"), n2: await start("n2") };
  t.after(async () => {
    stopping.abort(new Error("test is over"));
    await Promise.all(Object.values(mocks).map((mock) => mock.close()));
    rack.stop();
  });
  const world = new World();
  world.secret("bmc", { username: "fencing", password: PASSWORD });
  world.secret("ca", { "ca.crt": authority.certPem });
  const { sha256Fingerprint } = tls;
  // Drivers with the same clock share what they know about an address, and ports are reused, so this runtime has its
  // own clock.
  const runtime = { ...world.runtime, clock: { ...systemClock }, random: systemRandom };
  return { world, runtime, rack, mocks, sha256Fingerprint, signal: stopping.signal };
}

/** Points the target of `node` at the BMC of `host`. */
function point({ world, mocks }: Fixture, node: "n1" | "n2", host: "n1" | "n2", tls?: object): void {
  const { port } = new URL(mocks[host].url);
  const n = node === "n1" ? 1 : 2;
  world.target(node, {
    identity: { verification: "Required", systemUUID: uuid(n) },
    devices: [
      {
        address: `redfish://127.0.0.1:${port}${mocks[host].systemPath(host)}`,
        credentialsSecretRef: { name: "bmc" },
        level: 1,
        tls: { insecureSkipVerify: false, ...tls },
      },
    ],
  });
  world.put<Node>(NODES, node, { spec: {}, status: { conditions: [] } });
}

const BY_CA = { caSecretRef: { name: "ca", key: "ca.crt" } };

function directoryOf(fixture: Fixture): ReturnType<typeof createFencingTargetDirectory> {
  const { world, runtime, signal } = fixture;
  const targets = world.view<FencingTarget>(FENCING_TARGETS);
  return createFencingTargetDirectory(
    { runtime, targets, namespace: NAMESPACE, openDevice: openDeviceOn(runtime.clock) },
    signal,
  );
}

test("the wrong machine is not fenced: with swapped addresses no BMC gets an order", { timeout: 60_000 }, async (t) => {
  const fixture = await setUp(t);
  point(fixture, "n1", "n2", BY_CA);
  point(fixture, "n2", "n1", BY_CA);
  const directory = directoryOf(fixture);
  for (const node of ["n1", "n2"]) {
    const found = directory.find(localNode(node));
    assert.ok(found.found);
    const power = await found.host.open(undefined, fixture.signal);
    const verdict = await power.verifyIdentity(undefined, fixture.signal);
    assert.ok(!verdict.verified && verdict.reason === "Mismatch");
    await assert.rejects(power.forceOff(fixture.signal));
    await power.close();
  }
  assert.deepEqual(
    fixture.rack.hosts.flatMap((host) => host.orders),
    [],
  );
});

test("the right machine is verified, powered off, read Off and powered on again", { timeout: 60_000 }, async (t) => {
  const fixture = await setUp(t);
  const { rack, mocks, signal } = fixture;
  point(fixture, "n1", "n1", BY_CA);
  const found = directoryOf(fixture).find(localNode("n1"));
  assert.ok(found.found);
  const power = await found.host.open(undefined, signal);
  assert.ok((await power.verifyIdentity(undefined, signal)).verified);
  await power.forceOff(signal);
  await until(async () => (await power.readPower(signal)).state === "Off", "the host is off");
  await power.on(signal);
  await until(async () => (await power.readPower(signal)).state === "On", "the host is on");
  await power.close();
  assert.deepEqual(
    rack.host("n1").orders.map((order) => order.type),
    ["ForceOff", "On"],
  );
  assert.deepEqual(rack.host("n2").orders, []);
  assert.equal(mocks.n1.sessionCount, 0, "no session is left behind");
});

test(
  "TLS is verified by CA or pin, and if a pin does not fit the BMC's own fingerprint is shown",
  { timeout: 60_000 },
  async (t) => {
    const fixture = await setUp(t);
    const { world, runtime, sha256Fingerprint, signal } = fixture;
    point(fixture, "n1", "n1");
    const running = startTargetController(
      {
        records: new ProbeRecords(),
        runtime,
        targets: world.view<FencingTarget>(FENCING_TARGETS),
        clusters: new NodeClusters({ runtime, nodes: world.view<Node>(NODES), clusters: NO_WORKLOAD_CLUSTERS }),
        directory: directoryOf(fixture),
        namespace: NAMESPACE,
        openDevice: openDeviceOn(runtime.clock),
        intervals: { ...DEFAULT_PROBE_INTERVALS, changeMs: 1 },
      },
      signal,
    );
    t.after(() => running);
    const ready = (): { generation: number; reason: string; message: string } => {
      const { conditions } = world.liveTarget("n1").status ?? {};
      const found = conditions?.find((condition) => condition.type === "Ready");
      return { generation: found?.observedGeneration ?? 0, reason: found?.reason ?? "", message: found?.message ?? "" };
    };
    const probed = (): Promise<void> =>
      until(
        () => Promise.resolve(ready().generation === world.liveTarget("n1").metadata.generation),
        "the target was probed",
      );
    await probed();
    assert.equal(ready().reason, "TlsUntrusted");
    const advice = new RegExp(`${sha256Fingerprint} is that of the BMC.*spec\\.devices\\[0\\]\\.tls; compare`);
    assert.match(ready().message, advice);

    for (const tls of [BY_CA, { sha256Fingerprint }, { insecureSkipVerify: true }]) {
      point(fixture, "n1", "n1", tls);
      await probed();
      assert.equal(ready().reason, "Usable", `${JSON.stringify(tls)}: ${ready().message}`);
    }
    point(fixture, "n1", "n1", { sha256Fingerprint: "ab".repeat(32) });
    await probed();
    assert.equal(ready().reason, "TlsUntrusted");
    assert.ok(ready().message.includes(sha256Fingerprint), ready().message);

    point(fixture, "n1", "n1", BY_CA);
    await probed();
    world.secret("bmc", { username: "fencing", password: "a-typo" });
    await until(() => Promise.resolve(ready().reason === "AuthenticationFailed"), "the wrong password was found");
    assert.doesNotMatch(JSON.stringify(world.liveTarget("n1").status), /a-typo|correct-horse/);
    world.secret("bmc", { username: "fencing", password: PASSWORD });
    await until(() => Promise.resolve(ready().reason === "Usable"), "the corrected password was found");
    assert.deepEqual(fixture.rack.host("n1").orders, [], "probes order nothing");
  },
);

async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await holds()) return;
    await wait(25);
  }
  assert.fail(`not within 10 s: ${what}`);
}

/** Prepares n1, whose node is not Ready, with a deadline of 120 s for each call. */
function prepare(fixture: Fixture): { host: FencedHost; ready: Promise<void>; preparing: Promise<void> } {
  point(fixture, "n1", "n1", BY_CA);
  const target = fixture.world.liveTarget("n1");
  const timeouts = { connect: "5s", call: "120s" };
  const devices = target.spec.devices.map((device) => ({ ...device, timeouts }));
  const edited = fixture.world.target("n1", { ...target.spec, devices });
  const directory = directoryOf(fixture);
  const found = directory.find(localNode("n1"));
  assert.ok(found.found);
  const node = fixture.world.collection(NODES).get({ name: "n1" }) as Node;
  const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
  const preparing = directory.prepare(edited, { node, onReady }, fixture.signal).catch(() => undefined);
  return { host: found.host, ready, preparing };
}

const OWNER: HostOwner = { uid: "r1", kind: "BareMetalRemediation", namespace: "default", name: "r1" };
const logins = (mock: RedfishMock): number =>
  mock.requests.filter(({ method, path }) => method === "POST" && path.endsWith("/Sessions")).length;
const reads = (mock: RedfishMock): number =>
  mock.requests.filter(({ method, path, status }) => method === "GET" && path.includes("/Systems/") && status === 200)
    .length;

async function eventually(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries += 1) {
    assert.ok(tries < 2_000, what);
    await wait(10);
  }
}

test(
  "a prepared host is ordered off on the connection and in the session that it was prepared with",
  { timeout: 60_000 },
  async (t) => {
    const fixture = await setUp(t);
    const { n1: mock } = fixture.mocks;
    const { host, preparing } = prepare(fixture);
    await eventually("it is prepared", () => reads(mock) === 1);
    // The answer must also be read.
    await wait(200);
    const power = await host.open(OWNER, fixture.signal);
    await preparing;
    assert.ok((await power.verifyIdentity(undefined, fixture.signal)).verified);
    await power.forceOff(fixture.signal);
    assert.deepEqual([logins(mock), reads(mock), mock.sessionCount], [1, 2, 1]);
    await power.close();
    assert.equal(mock.sessionCount, 0);
    assert.deepEqual(fixture.rack.host("n1").orders.length, 1);
  },
);

test(
  "a session that the BMC has ended since the preparation is replaced, and the host is identified in the new one",
  { timeout: 60_000 },
  async (t) => {
    const fixture = await setUp(t);
    const { n1: mock } = fixture.mocks;
    const { host } = prepare(fixture);
    await eventually("it is prepared", () => reads(mock) === 1);
    await wait(200);
    mock.addFault({ match: { path: "/Systems/" }, times: 3, action: { type: "status", status: 401, headers: {} } });
    const power = await host.open(OWNER, fixture.signal);
    assert.ok((await power.verifyIdentity(undefined, fixture.signal)).verified);
    await power.forceOff(fixture.signal);
    assert.deepEqual([logins(mock), reads(mock)], [2, 2]);
    await power.close();
    assert.equal(mock.sessionCount, 0);
  },
);

test(
  "a login that hangs while a host is prepared does not delay the login of the remediation",
  { timeout: 60_000 },
  async (t) => {
    const fixture = await setUp(t);
    const { n1: mock } = fixture.mocks;
    mock.addFault({
      match: { method: "POST", path: "/Sessions$" },
      times: 1,
      action: { type: "hang", effect: "none" },
    });
    const { host, preparing } = prepare(fixture);
    await eventually("it logs in", () => logins(mock) === 1);
    const power = await host.open(OWNER, fixture.signal);
    // A login that waits for the first one would start only after 15 s, when the connection is destroyed.
    assert.ok((await power.verifyIdentity(undefined, AbortSignal.timeout(10_000))).verified);
    await power.forceOff(fixture.signal);
    await preparing;
    await power.close();
    assert.deepEqual([logins(mock), mock.sessionCount], [2, 0]);
  },
);
