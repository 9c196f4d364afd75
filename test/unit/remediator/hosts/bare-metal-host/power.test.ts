import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { ApiServer } from "../../../../../hack/kube-mock/api-server.ts";
import { createApiServer } from "../../../../../hack/kube-mock/api-server.ts";
import { PROVISIONED_STATUS } from "../../../../../hack/rack/bare-metal-host-status.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import {
  ALLOWED_ADDRESSES,
  ALLOW_PROVIDER_ID,
  HOST_OWNER,
  POWER_OFF_REQUEST,
} from "../../../../../src/api/names/annotations.ts";
import { SECRETS } from "../../../../../src/api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../../../src/api/ironfence/fencing-target.ts";
import type { HostIdentity } from "../../../../../src/bmc/identity/host-identity.ts";
import type { PowerDriver, PowerReading } from "../../../../../src/bmc/interface/driver.ts";
import { BmcError } from "../../../../../src/bmc/interface/errors.ts";
import type { DeviceConfig, OpenDevice } from "../../../../../src/bmc/interface/device-config.ts";
import { openDeviceOn } from "../../../../lib/open-device.ts";
import { createKubeRuntime } from "../../../../../src/kube/connection/create-runtime.ts";
import type { KubeRuntime } from "../../../../../src/kube/runtime.ts";
import { localNode } from "../../../../../src/nodes/subject.ts";
import type { BareMetalHostDirectory } from "../../../../../src/remediator/hosts/bare-metal-host/directory.ts";
import { createBareMetalHostDirectory } from "../../../../../src/remediator/hosts/bare-metal-host/directory.ts";
import { BARE_METAL_HOSTS } from "../../../../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { createCompositeDirectory } from "../../../../../src/remediator/hosts/composite-directory.ts";
import { createFencingTargetDirectory } from "../../../../../src/remediator/hosts/fencing-target/directory.ts";
import type { FencedHost, HostDirectory } from "../../../../../src/remediator/hosts/model/host.ts";
import { HostRefusal, OrderNotDueError, TargetError } from "../../../../../src/remediator/hosts/model/host.ts";
import { seededRandom } from "../../../../lib/seeded-random.ts";
import { settle, VirtualClock } from "../../../../lib/virtual-clock.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import type { HostOwner } from "../../../../../src/remediator/machine/model/facts/host-facts.ts";
import { powerOffAnnotation } from "../../../../../src/api/metal3/metal3.ts";

// BareMetalHosts on an in-memory API server: ownership, requests to their operator, and which Secrets their BMCs get.

const crd = (path: string): string => readFileSync(new URL(`../../../../../${path}.yaml`, import.meta.url), "utf8");
const CRDS = [
  "hack/foreign-crds/metal3.io",
  "hack/foreign-crds/infrastructure.cluster.x-k8s.io",
  "deploy/crds/ironfence.io_baremetalremediations",
  "deploy/crds/ironfence.io_fencingtargets",
].map(crd);

const NODE_UUID = "4c4c4544-0044-4710-8053-b7c04f4d3233";

const BMC_LABELS = { "environment.metal3.io": "baremetal" };

class Fixture {
  readonly clock = new VirtualClock();
  readonly server: ApiServer;
  readonly runtime: KubeRuntime;
  readonly configs: DeviceConfig[] = [];
  readonly orders: string[] = [];
  identity: Omit<HostIdentity, "device"> = { systemUUID: NODE_UUID };
  power: PowerReading = { state: "On", raw: "On" };
  readonly #stop = new AbortController();

  constructor() {
    const { clock } = this;
    const random = seededRandom(1);
    this.server = createApiServer({ clock, random });
    for (const text of CRDS) this.server.load(text);
    for (const name of ["metal3", "ironfence"]) {
      this.server
        .collection({ group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false })
        .create({ metadata: { name } });
    }
    const created = createKubeRuntime({
      transport: this.server.transport({ client: "agent" }),
      clock,
      random,
      logger: createLogger("silent"),
      controllerName: "ironfence.io/agent",
      instance: "agent",
    });
    this.runtime = { ...created, events: { record: () => undefined } };
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  host(
    metadata: { name?: string; annotations?: Record<string, string> } = {},
    spec: Record<string, unknown> = {},
    status: Record<string, unknown> = {},
  ): void {
    const name = metadata.name ?? "h1";
    const bmc = { address: `redfish://${name}/redfish/v1/Systems/1`, credentialsName: "bmc" };
    const hosts = this.server.collection(BARE_METAL_HOSTS);
    const annotations = { [ALLOW_PROVIDER_ID]: "true", ...metadata.annotations };
    const made = { namespace: "metal3", ...metadata, name, annotations };
    hosts.create({ metadata: made, spec: { online: true, bmc, ...spec } });
    hosts.mergePatch({ namespace: "metal3", name }, { status: { ...PROVISIONED_STATUS, ...status } }, "status");
  }

  /** Creates a Secret that Metal3's operator has used for a BMC. */
  secret(data: Record<string, string> = { username: "admin", password: "geheim\n" }, namespace = "metal3"): void {
    const encoded = Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    );
    this.server.collection(SECRETS).create({ metadata: { namespace, name: "bmc", labels: BMC_LABELS }, data: encoded });
  }

  annotations(name = "h1"): Record<string, string> {
    const { metadata } = this.server.collection(BARE_METAL_HOSTS).get({ namespace: "metal3", name }) ?? assert.fail();
    const { [ALLOW_PROVIDER_ID]: _allowed, ...others } = metadata.annotations ?? {};
    return others;
  }

  edit(patch: Record<string, unknown>, subresource?: "status"): void {
    this.server.collection(BARE_METAL_HOSTS).mergePatch({ namespace: "metal3", name: "h1" }, patch, subresource);
  }

  readonly openDevice: OpenDevice = (config, deps) => {
    openDeviceOn(deps.clock)(config, deps);
    this.configs.push(config);
    const driver: PowerDriver = {
      address: config.address,
      identify: async () => ({ device: "bmc", ...this.identity }),
      readPower: async () => this.power,
      forceOff: async () => void this.orders.push("ForceOff"),
      on: async () => void this.orders.push("On"),
      setBootOverride: async () => undefined,
      readBootOverride: async () => "None",
      close: async () => undefined,
    };
    return driver;
  };

  async directory(node = { providerID: "metal3://metal3/h1/m1" }): Promise<BareMetalHostDirectory> {
    const metadata = { name: "n1", uid: "node-1", resourceVersion: "1" };
    const found = {
      apiVersion: "v1",
      kind: "Node",
      metadata,
      spec: node,
      status: { nodeInfo: { systemUUID: NODE_UUID } },
    };
    const nodes = { get: ({ name }: { name: string }) => (name === "n1" ? found : undefined) };
    const { runtime, openDevice } = this;
    const directory = createBareMetalHostDirectory({ runtime, nodes, openDevice }, this.signal);
    for (let turns = 0; turns < 20; turns += 1) await settle();
    return directory;
  }

  async found(): Promise<FencedHost> {
    const found = (await this.directory()).find(localNode("n1"));
    assert.ok(found.found, found.found ? "" : found.message);
    return found.host;
  }

  /** An owner whose remediation exists. */
  owner(name: string, status?: Record<string, unknown>): HostOwner {
    const remediations = this.server.collection(BARE_METAL_REMEDIATIONS);
    const { metadata } = remediations.create({ metadata: { namespace: "ironfence", name }, spec: { strategy: {} } });
    if (status !== undefined) remediations.mergePatch({ namespace: "ironfence", name }, { status }, "status");
    return { uid: metadata.uid, kind: "BareMetalRemediation", namespace: "ironfence", name };
  }

  stop(): void {
    this.#stop.abort();
    this.server.close();
  }
}

function test(name: string, body: (fixture: Fixture) => Promise<void>): void {
  void it(name, async () => {
    const fixture = new Fixture();
    try {
      await body(fixture);
    } finally {
      fixture.stop();
    }
  });
}

const node = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n1", uid: "1", resourceVersion: "1" },
  spec: {},
  status: { nodeInfo: { systemUUID: NODE_UUID } },
};
const refusedFor = (reason: string) => (error: unknown) =>
  (error instanceof HostRefusal || error instanceof TargetError) && error.reason === reason;

describe("the owner of a BareMetalHost", () => {
  test("the owner of a BareMetalHost is exactly one of the remediations that claim it at the same moment", async (fixture) => {
    fixture.host();
    const host = await fixture.found();
    const owners = ["a", "b", "c"].map((name) => fixture.owner(name));
    const claims = await Promise.all(owners.map((owner) => host.claim(owner, fixture.signal)));
    assert.equal(claims.filter(({ owned }) => owned).length, 1);
    const winner = owners[claims.findIndex(({ owned }) => owned)];
    for (const claim of claims) if (!claim.owned) assert.equal(claim.by.uid, winner?.uid);
    assert.ok(winner !== undefined && (await host.claim(winner, fixture.signal)).owned, "owning it already is fine");
  });

  test("the owner of a BareMetalHost is replaced when its remediation has its verdict or was deleted", async (fixture) => {
    fixture.host();
    const host = await fixture.found();
    const time = "2026-01-01T00:00:00Z";
    const condition = { type: "Succeeded", status: "False", reason: "X", message: "", lastTransitionTime: time };
    const ended = fixture.owner("ended", { conditions: [condition] });
    assert.ok((await host.claim(ended, fixture.signal)).owned);
    const second = fixture.owner("second");
    assert.ok((await host.claim(second, fixture.signal)).owned);
    fixture.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: "ironfence", name: "second" });
    assert.ok((await host.claim(fixture.owner("third"), fixture.signal)).owned);
  });

  test("the owner of a BareMetalHost that cannot be read counts as an owner that may be alive", async (fixture) => {
    fixture.host({ annotations: { [HOST_OWNER]: "not JSON" } });
    const claim = await (await fixture.found()).claim(fixture.owner("a"), fixture.signal);
    assert.ok(!claim.owned && /correct the annotation ironfence\.io\/owner/.test(claim.by.name));
    assert.equal(fixture.annotations()[HOST_OWNER], "not JSON");
  });

  test("only the owner of a BareMetalHost can release it, with its off request or as it is", async (fixture) => {
    fixture.host();
    fixture.secret();
    const host = await fixture.found();
    const [first, second] = [fixture.owner("first"), fixture.owner("second")];
    await host.claim(first, fixture.signal);
    const power = await host.open(first, fixture.signal);
    await power.verifyIdentity(node, fixture.signal);
    await power.forceOff(fixture.signal);
    await host.release(second, { asItIs: false, outcome: undefined }, fixture.signal);
    assert.ok(powerOffAnnotation(first) in fixture.annotations() && HOST_OWNER in fixture.annotations());
    await host.release(first, { asItIs: true, outcome: undefined }, fixture.signal);
    assert.ok(powerOffAnnotation(first) in fixture.annotations() && !(HOST_OWNER in fixture.annotations()));
    await host.release(first, { asItIs: false, outcome: undefined }, fixture.signal);
    assert.deepEqual(Object.keys(fixture.annotations()), []);
  });
});

describe("a request to the operator of a host", () => {
  const ready = async (fixture: Fixture, metadata = {}) => {
    fixture.host(metadata);
    fixture.secret();
    const host = await fixture.found();
    const owner = fixture.owner("a");
    await host.claim(owner, fixture.signal);
    const power = await host.open(owner, fixture.signal);
    return { host, owner, power };
  };

  test("a request to the operator of a host is a hard hold of our own next to other annotations, and the On removes no other one", async (fixture) => {
    const foreign = { "reboot.metal3.io/other": '{"mode":"soft"}', "example/x": "y" };
    const stale = { "reboot.metal3.io/ironfence-of-one-that-is-gone": '{"mode":"hard"}' };
    const { owner, power } = await ready(fixture, { annotations: { ...foreign, ...stale } });
    await power.verifyIdentity(node, fixture.signal);
    await power.forceOff(fixture.signal);
    const { [HOST_OWNER]: stored = "", [POWER_OFF_REQUEST]: request = "", ...rest } = fixture.annotations();
    assert.deepEqual(rest, { ...foreign, [`reboot.metal3.io/ironfence-${owner.uid}`]: '{"mode":"hard"}' });
    assert.equal(JSON.parse(stored).systemUUID, NODE_UUID);
    assert.equal(JSON.parse(request).poweredOn, "true");
    assert.deepEqual(fixture.orders, [], "nothing goes to the BMC");
    await power.on(fixture.signal);
    const { [HOST_OWNER]: _owner, ...left } = fixture.annotations();
    assert.deepEqual(left, foreign);
    assert.deepEqual(fixture.orders, []);
  });

  test("a request to the operator of a host is not sent before the identity of the host is accepted", async (fixture) => {
    const { owner, power } = await ready(fixture);
    fixture.identity = {};
    await assert.rejects(
      power.forceOff(fixture.signal),
      (error) => error instanceof BmcError && error.code === "Unsupported",
    );
    fixture.identity = { systemUUID: "11111111-1111-4111-8111-111111111112" };
    await power.verifyIdentity(node, fixture.signal);
    await assert.rejects(
      power.forceOff(fixture.signal),
      (error) => error instanceof BmcError && error.code === "SystemNotFound",
    );
    assert.ok(!(powerOffAnnotation(owner) in fixture.annotations()));
    fixture.power = { state: "Off", raw: "Off" };
    assert.equal((await power.readPower(fixture.signal)).state, "Unknown");
  });

  test("a request to the operator of a host depends on the live host, not on the watched one of the decision", async (fixture) => {
    const { owner, power } = await ready(fixture);
    await power.verifyIdentity(node, fixture.signal);
    fixture.edit({ spec: { disablePowerOff: true } });
    await assert.rejects(power.forceOff(fixture.signal), refusedFor("PowerOffDisabled"));
    fixture.edit({
      spec: { disablePowerOff: false },
      metadata: { annotations: { [HOST_OWNER]: JSON.stringify({ ...owner, uid: "another" }) } },
    });
    await assert.rejects(power.forceOff(fixture.signal), refusedFor("NotTheOwner"));
    await assert.rejects(power.on(fixture.signal), refusedFor("NotTheOwner"));
    assert.ok(!(powerOffAnnotation(owner) in fixture.annotations()));
  });

  test("a request to the operator of a host is not sent if the power-off is no longer allowed when the host has been read", async (fixture) => {
    const { owner, power } = await ready(fixture);
    await power.verifyIdentity(node, fixture.signal);
    let isRead = false;
    const stop = fixture.server.onRequest(({ method, path }) => {
      if (method === "GET" && path.includes("baremetalhosts/h1")) isRead = true;
    });
    const ensureDue = (): void => {
      if (isRead) throw new OrderNotDueError("paused", false);
    };
    const check = { leftMs: () => 5_000, ensureDue, obstacle: () => undefined };
    await assert.rejects(power.forceOff(fixture.signal, check), OrderNotDueError);
    stop();
    assert.ok(isRead && !(powerOffAnnotation(owner) in fixture.annotations()));
  });

  test("a request to the operator of a host succeeds although the operator writes to the host at the same time", async (fixture) => {
    const { owner, power } = await ready(fixture);
    await power.verifyIdentity(node, fixture.signal);
    let writes = 0;
    const stop = fixture.server.onRequest(({ method, path }) => {
      if (method !== "GET" || !path.includes("baremetalhosts/h1") || writes >= 3) return;
      writes += 1;
      fixture.edit({ status: { errorCount: writes } }, "status");
    });
    await power.forceOff(fixture.signal);
    stop();
    assert.equal(writes, 3);
    assert.ok(powerOffAnnotation(owner) in fixture.annotations());
  });

  test("a request to the operator of a host shows Off only while our hold is present", async (fixture) => {
    const { owner, power } = await ready(fixture);
    fixture.power = { state: "Off", raw: "Off" };
    await power.verifyIdentity(node, fixture.signal);
    assert.deepEqual((await power.readPower(fixture.signal)).state, "Changing", "off by another actor");
    await power.forceOff(fixture.signal);
    assert.equal((await power.readPower(fixture.signal)).state, "Off", "by our own write, before it is watched");
    fixture.edit({ metadata: { annotations: { [powerOffAnnotation(owner)]: null } } });
    for (let turns = 0; turns < 10; turns += 1) await settle();
    assert.equal((await power.readPower(fixture.signal)).state, "Changing");
    await power.forceOff(fixture.signal);
    fixture.edit({ metadata: { annotations: { [powerOffAnnotation(owner)]: '{"mode":"soft"}' } } });
    for (let turns = 0; turns < 10; turns += 1) await settle();
    assert.equal((await power.readPower(fixture.signal)).state, "Changing", "a soft reboot is not a hold");
  });

  test("a request to the operator of a host is never a network boot, because the operator installs its hosts", async (fixture) => {
    const { power } = await ready(fixture);
    await assert.rejects(
      power.setBootOverride("NetworkOnce", fixture.signal),
      (error) => error instanceof BmcError && error.code === "Unsupported",
    );
    await power.setBootOverride("None", fixture.signal);
    assert.equal(await power.readBootOverride(fixture.signal), "None");
  });

  test("a request to the operator of a host is refused without a remediation that owns the host", async (fixture) => {
    const { host } = await ready(fixture);
    const looking = await host.open(undefined, fixture.signal);
    assert.deepEqual(await looking.readPower(fixture.signal), {
      state: "Unknown",
      raw: (await looking.readPower(fixture.signal)).raw,
    });
    await looking.verifyIdentity(node, fixture.signal);
    assert.equal((await looking.readPower(fixture.signal)).state, "On");
    await assert.rejects(looking.forceOff(fixture.signal), refusedFor("NotTheOwner"));
    await assert.rejects(looking.on(fixture.signal), refusedFor("NotTheOwner"));
  });
});

describe("a host's BMC", () => {
  test("a host's BMC is opened with the Secret of the host's own namespace, and its certificate checked unless the spec says not to", async (fixture) => {
    fixture.host();
    fixture.secret({ username: "other", password: "other" }, "ironfence");
    const host = await fixture.found();
    await assert.rejects(host.open(undefined, fixture.signal), refusedFor("SecretNotFound"));
    fixture.secret();
    await host.open(undefined, fixture.signal);
    const [config] = fixture.configs;
    assert.equal(config?.username, "admin");
    assert.equal(config?.password.reveal(), "geheim");
    assert.deepEqual(config?.tls, { insecureSkipVerify: false });
    fixture.edit({ spec: { bmc: { disableCertificateVerification: true } } });
    for (let turns = 0; turns < 10; turns += 1) await settle();
    await (await fixture.found()).open(undefined, fixture.signal);
    assert.deepEqual(fixture.configs[1]?.tls, { insecureSkipVerify: true });
  });

  for (const [what, metadata, refused] of [
    [
      "the Secret of a host's BMC is used if its operator has labeled it as that of a BMC",
      { labels: BMC_LABELS },
      false,
    ],
    ["the Secret of a host's BMC is not used without the label of its operator", {}, true],
    [
      "the Secret of a host's BMC is used if it allows the host's address",
      { annotations: { [ALLOWED_ADDRESSES]: "redfish://h1" } },
      false,
    ],
    [
      "the Secret of a host's BMC is not used if it allows only other addresses",
      { labels: BMC_LABELS, annotations: { [ALLOWED_ADDRESSES]: "redfish://h2" } },
      true,
    ],
  ] as const) {
    test(what, async (fixture) => {
      fixture.host();
      fixture.secret();
      const metadataOfSecret = { labels: null, ...metadata };
      const secrets = fixture.server.collection(SECRETS);
      secrets.mergePatch({ namespace: "metal3", name: "bmc" }, { metadata: metadataOfSecret });
      const opened = (await fixture.found()).open(undefined, fixture.signal);
      if (refused) await assert.rejects(opened, refusedFor("AddressNotAllowed"));
      else await opened;
      assert.equal(fixture.configs.length, refused ? 0 : 1);
    });
  }

  for (const [what, spec, data, reason] of [
    ["libvirt", { bmc: { address: "libvirt://h1", credentialsName: "bmc" } }, undefined, "AddressInvalid"],
    ["no BMC", { bmc: { address: "", credentialsName: "" } }, undefined, "AddressInvalid"],
    ["no password", {}, { username: "admin" }, "SecretInvalid"],
    ["an empty user", {}, { username: "", password: "x" }, "SecretInvalid"],
    ["an authority that is not a certificate", {}, { username: "a", password: "b", "ca.crt": "none" }, "SecretInvalid"],
  ] as const) {
    test(`a host's BMC cannot be used with ${what}, and the reason is ${reason}`, async (fixture) => {
      fixture.host({}, spec);
      fixture.secret(data);
      await assert.rejects((await fixture.found()).open(undefined, fixture.signal), refusedFor(reason));
    });
  }

  test("the version of a host changes as soon as a field is edited on which an order depends", async (fixture) => {
    fixture.host();
    const directory = await fixture.directory();
    const version = (): string => {
      const found = directory.find(localNode("n1"));
      assert.ok(found.found);
      return found.host.version;
    };
    const seen = [version()];
    for (const patch of [
      { spec: { bmc: { address: "redfish://h9/1" } } },
      { spec: { bmc: { credentialsName: "new" } } },
      { spec: { bmc: { disableCertificateVerification: true } } },
      { metadata: { annotations: { "ironfence.io/trust-power-status": "true" } } },
    ]) {
      fixture.edit(patch);
      for (let turns = 0; turns < 10; turns += 1) await settle();
      seen.push(version());
    }
    assert.equal(new Set(seen).size, seen.length);
    fixture.edit({ status: { poweredOn: false } }, "status");
    for (let turns = 0; turns < 10; turns += 1) await settle();
    assert.equal(version(), seen.at(-1), "not by what its operator reports");
  });
});

describe("a FencingTarget next to a BareMetalHost", () => {
  const both = async (
    fixture: Fixture,
    target: { nodeName?: string; address?: string; identity?: object },
    onMade: (made: HostDirectory) => void = () => undefined,
  ) => {
    const targets = fixture.runtime.watch<FencingTarget>(
      { type: FENCING_TARGETS, trim: (raw) => raw as FencingTarget },
      fixture.signal,
    );
    fixture.server.collection(FENCING_TARGETS).create({
      metadata: { namespace: "ironfence", name: "t1" },
      spec: {
        nodeName: target.nodeName ?? "n1",
        identity: target.identity ?? {},
        devices: [{ address: target.address ?? "redfish://elsewhere/1", credentialsSecretRef: { name: "bmc" } }],
      },
    });
    const { runtime, openDevice, signal } = fixture;
    const byTarget = createFencingTargetDirectory({ runtime, targets, namespace: "ironfence", openDevice }, signal);
    const composite = createCompositeDirectory(runtime, byTarget, await fixture.directory());
    onMade(composite);
    const found = composite.find(localNode(target.nodeName ?? "n1"));
    return found.found ? found.host.ref.kind : `${found.reason}: ${found.message}`;
  };
  const says =
    /^Ambiguous: FencingTarget ironfence\/t1 and BareMetalHost metal3\/h1 describe the same host.*detach the BareMetalHost/;

  test("a FencingTarget next to a BareMetalHost for one node makes both unusable", async (fixture) => {
    fixture.host();
    assert.match(await both(fixture, {}), says);
  });

  test("a FencingTarget and a BareMetalHost of one node are both unusable, also if the node's providerID may not lead to the host", async (fixture) => {
    fixture.host({ annotations: { [ALLOW_PROVIDER_ID]: "false" } });
    assert.match(await both(fixture, {}), says);
  });

  test("a FencingTarget next to a BareMetalHost for one System makes both unusable, whatever node it names", async (fixture) => {
    fixture.host();
    assert.match(
      await both(fixture, { nodeName: "n2", address: "idrac-virtualmedia://h1/redfish/v1/Systems/1" }),
      says,
    );
  });

  test("a FencingTarget next to a BareMetalHost for one system UUID makes both unusable, whatever node it names", async (fixture) => {
    const owner = JSON.stringify({ uid: "1", kind: "X", namespace: "a", name: "b", systemUUID: NODE_UUID });
    fixture.host({ annotations: { [HOST_OWNER]: owner } });
    assert.match(await both(fixture, { nodeName: "n2", identity: { systemUUID: NODE_UUID } }), says);
  });

  test("a FencingTarget next to a BareMetalHost is used after the operator has released the host", async (fixture) => {
    fixture.host({ annotations: { "baremetalhost.metal3.io/detached": "" } }, {}, { operationalStatus: "detached" });
    assert.equal(await both(fixture, {}), "FencingTarget");
  });

  test("a FencingTarget next to a BareMetalHost is not used any more once a live read shows that the operator has taken the host back", async (fixture) => {
    fixture.host({ annotations: { "baremetalhost.metal3.io/detached": "" } }, {}, { operationalStatus: "detached" });
    let composite: HostDirectory | undefined;
    await both(fixture, {}, (made) => (composite = made));
    const uid =
      fixture.server.collection(FENCING_TARGETS).get({ namespace: "ironfence", name: "t1" })?.metadata.uid ?? "";
    const taken = composite?.byUid(uid) ?? assert.fail();
    assert.equal(taken.takenBack(localNode("n1")), undefined);
    await taken.ensureOurs(localNode("n1"), "ForceOff", fixture.signal);
    fixture.edit({ status: { operationalStatus: "OK" } }, "status");
    await assert.rejects(
      taken.ensureOurs(localNode("n1"), "ForceOff", fixture.signal),
      /HostRefusal: the operator of BareMetalHost metal3\/h1/,
    );
    for (let turns = 0; turns < 10; turns += 1) await settle();
    assert.match(
      composite?.byUid(uid)?.takenBack(localNode("n1")) ?? "",
      /^the operator of BareMetalHost metal3\/h1 now powers the host of/,
    );
  });

  test("a FencingTarget next to a BareMetalHost is not used if only the Machine leads to a host that its operator has taken back", async (fixture) => {
    const consumerRef = { apiVersion: "machine.openshift.io/v1beta1", kind: "Machine", namespace: "okd", name: "w1" };
    fixture.host({}, { consumerRef });
    let composite: HostDirectory | undefined;
    assert.equal(await both(fixture, { nodeName: "n2" }, (made) => (composite = made)), "FencingTarget");
    const target = fixture.server.collection(FENCING_TARGETS).get({ namespace: "ironfence", name: "t1" });
    const taken = composite?.byUid(target?.metadata.uid ?? "") ?? assert.fail();
    const machine = { apiVersion: consumerRef.apiVersion, kind: "Machine", namespace: "okd", name: "w1", uid: "w1" };
    const subject = { ...localNode("n2"), machine };
    assert.match(taken.takenBack(subject) ?? "", /^the operator of BareMetalHost metal3\/h1/);
    await assert.rejects(
      taken.ensureOurs(subject, "ForceOff", fixture.signal),
      /^HostRefusal: the operator of BareMetalHost/,
    );
  });

  test("a FencingTarget next to a BareMetalHost for another host leaves each to its own", async (fixture) => {
    fixture.host();
    assert.equal(await both(fixture, { nodeName: "n2" }), "FencingTarget");
  });
});
