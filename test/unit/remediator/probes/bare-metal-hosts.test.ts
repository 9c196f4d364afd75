import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createApiServer } from "../../../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../../../hack/kube-mock/controllers/cluster-types.ts";
import { PROVISIONED_STATUS } from "../../../../hack/rack/bare-metal-host-status.ts";
import { HOST_OWNER } from "../../../../src/api/names/annotations.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { SECRETS } from "../../../../src/api/kubernetes/core-types.ts";
import type { HostIdentity } from "../../../../src/bmc/identity/host-identity.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../../../src/bmc/interface/errors.ts";
import { createKubeRuntime } from "../../../../src/kube/connection/create-runtime.ts";
import { createBareMetalHostDirectory } from "../../../../src/remediator/hosts/bare-metal-host/directory.ts";
import { BARE_METAL_HOSTS } from "../../../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { probeHosts } from "../../../../src/remediator/probes/probe-hosts.ts";
import { DEFAULT_PROBE_INTERVALS } from "../../../../src/remediator/probes/schedule/probe-intervals.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { settle, VirtualClock } from "../../../lib/virtual-clock.ts";

// Probes of BareMetalHosts on an in-memory API server, with a virtual clock.

const CRD = readFileSync(new URL("../../../../hack/foreign-crds/metal3.io.yaml", import.meta.url), "utf8");
const UUID = "4c4c4544-0044-4710-8053-b7c04f4d3233";
const NAMESPACE = "metal3";
const { quietMs, authRetryMs, retryMaxMs } = DEFAULT_PROBE_INTERVALS;
/** A quiet interval with its jitter. */
const ROUND_MS = 1.2 * quietMs;

class World {
  readonly clock = new VirtualClock();
  readonly server = createApiServer({ clock: this.clock, random: seededRandom(1) });
  readonly events: { reason: string; note: string; type: string }[] = [];
  /** The times at which the identity of a BMC was read. */
  readonly looks: number[] = [];
  readonly orders: string[] = [];
  counts: Readonly<Record<string, number>> = {};
  fault: BmcErrorCode | undefined;
  identity: Omit<HostIdentity, "device"> = { systemUUID: UUID, serialNumber: "S1" };
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>[] = [];

  constructor() {
    this.server.load(CRD);
    this.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
  }

  host(name: string, spec: object = {}, metadata: object = {}): void {
    const hosts = this.server.collection(BARE_METAL_HOSTS);
    const bmc = { address: `redfish://${name}/redfish/v1/Systems/1`, credentialsName: "bmc" };
    hosts.create({ metadata: { namespace: NAMESPACE, name, ...metadata }, spec: { online: true, bmc, ...spec } });
    const status = { ...PROVISIONED_STATUS, hardware: { systemVendor: { serialNumber: "S1" } } };
    hosts.mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
  }

  secret(): void {
    const data = { username: "YWRtaW4=", password: "Z2VoZWlt" };
    this.server.collection(SECRETS).create({
      metadata: { namespace: NAMESPACE, name: "bmc", labels: { "environment.metal3.io": "baremetal" } },
      data,
    });
  }

  edit(name: string, patch: Record<string, unknown>): void {
    this.server.collection(BARE_METAL_HOSTS).mergePatch({ namespace: NAMESPACE, name }, patch);
  }

  async start(nodes: readonly Node[] = []): Promise<void> {
    const { clock } = this;
    const signal = this.#stop.signal;
    const created = createKubeRuntime({
      transport: this.server.transport({ client: "agent" }),
      clock,
      random: seededRandom(2),
      logger: createLogger("silent"),
      controllerName: "ironfence.io/agent",
      instance: "agent",
    });
    const runtime = { ...created, events: { record: (note: World["events"][number]) => void this.events.push(note) } };
    const directory = createBareMetalHostDirectory(
      {
        runtime,
        nodes: { get: ({ name }) => nodes.find(({ metadata }) => metadata.name === name) },
        openDevice: ({ address }) => ({
          address,
          identify: async () => {
            this.looks.push(clock.monotonicMs());
            if (this.fault !== undefined) throw new BmcError(this.fault, "the BMC says no");
            return { device: "bmc", ...this.identity };
          },
          readPower: async () => ({ state: "On", raw: "On" }),
          forceOff: async () => void this.orders.push("ForceOff"),
          on: async () => void this.orders.push("On"),
          setBootOverride: async () => void this.orders.push("boot"),
          readBootOverride: async () => "None",
          close: async () => undefined,
        }),
      },
      signal,
    );
    const metrics = { probedHosts: (counts: World["counts"]) => void (this.counts = counts) };
    const values = (): IterableIterator<Node> => nodes.values();
    this.#running.push(probeHosts({ runtime, directory, nodes: { values }, metrics }, signal));
    for (let turns = 0; turns < 20; turns += 1) await settle();
  }

  get reasons(): string[] {
    return this.events.map(({ reason }) => reason);
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the test is over"));
    await Promise.all(this.#running);
    this.server.close();
  }
}

function test(name: string, body: (world: World) => Promise<void>): void {
  void it(name, async () => {
    const world = new World();
    try {
      await body(world);
    } finally {
      await world.stop();
    }
    assert.deepEqual(world.orders, [], "a probe orders nothing");
    assert.deepEqual(world.counts, { usable: 0, failing: 0, unprobed: 0 }, "another agent counts from now on");
  });
}

describe("probed BareMetalHosts", () => {
  test("BareMetalHosts are each probed once per interval and counted, without an Event for a host in order", async (world) => {
    world.secret();
    for (const name of ["h1", "h2", "h3"]) world.host(name);
    await world.start();
    assert.deepEqual(world.counts, { usable: 0, failing: 0, unprobed: 3 });
    await world.clock.advance(ROUND_MS);
    assert.deepEqual(world.counts, { usable: 3, failing: 0, unprobed: 0 });
    const first = world.looks.length;
    await world.clock.advance(ROUND_MS);
    assert.ok(world.looks.length >= first + 3);
    assert.deepEqual(world.reasons, []);
  });

  test("BareMetalHosts whose login is refused are reported once, and not probed again before the pause after a refused login", async (world) => {
    world.secret();
    world.host("h1");
    world.fault = "AuthFailed";
    await world.start();
    await world.clock.advance(ROUND_MS);
    await world.clock.advance(3 * ROUND_MS);
    assert.deepEqual(world.reasons, ["AuthenticationFailed"]);
    assert.match(world.events[0]?.note ?? "", /^BareMetalHost metal3\/h1: the BMC says no$/);
    assert.deepEqual(world.counts, { usable: 0, failing: 1, unprobed: 0 });
    const pauses = world.looks.slice(1).map((atMs, index) => atMs - (world.looks[index] ?? 0));
    assert.ok(pauses.length > 0 && pauses.every((pauseMs) => pauseMs >= authRetryMs), String(pauses));
    world.fault = undefined;
    await world.clock.advance(1.2 * authRetryMs);
    assert.deepEqual(world.reasons, ["AuthenticationFailed", "Usable"]);
  });

  test("BareMetalHosts without a Secret are reported, and probed soon after the Secret is created", async (world) => {
    world.host("h1");
    await world.start();
    await world.clock.advance(ROUND_MS);
    assert.deepEqual(world.reasons, ["SecretNotFound"]);
    world.secret();
    await world.clock.advance(2 * retryMaxMs);
    assert.deepEqual(world.reasons, ["SecretNotFound", "Usable"]);
  });

  test("BareMetalHosts whose BMC controls another machine are reported, by the inspection or by the node that runs on the host", async (world) => {
    world.secret();
    world.host("by-serial", { consumerRef: { kind: "Metal3Machine", name: "m1", namespace: NAMESPACE } });
    world.host("by-node", { consumerRef: { kind: "Metal3Machine", name: "m2", namespace: NAMESPACE } });
    world.identity = { systemUUID: UUID.replace("4c4c", "0000"), serialNumber: "S2" };
    const node = {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "n1", uid: "1", resourceVersion: "1" },
      spec: { providerID: "metal3://metal3/by-node/m2" },
      status: { nodeInfo: { systemUUID: UUID } },
    };
    await world.start([node]);
    await world.clock.advance(ROUND_MS);
    assert.deepEqual(world.reasons, ["IdentityMismatch", "IdentityMismatch"]);
    const notes = world.events.map(({ note }) => note).sort();
    assert.match(notes[0] ?? "", /has serial number S2, but BareMetalHost metal3\/by-serial was inspected with S1/);
    assert.match(notes[1] ?? "", /but the node runs on 4c4c4544/);
  });

  test("BareMetalHosts are not probed while a remediation owns them, or while their state allows no fence", async (world) => {
    world.secret();
    const owner = JSON.stringify({ uid: "u", kind: "BareMetalRemediation", namespace: "x", name: "x" });
    world.host("owned", {}, { annotations: { [HOST_OWNER]: owner } });
    world.host("offline", { online: false });
    await world.start();
    await world.clock.advance(2 * ROUND_MS);
    assert.deepEqual(world.looks, []);
    assert.equal(world.counts["unprobed"], 2);
    world.edit("owned", { metadata: { annotations: { [HOST_OWNER]: null } } });
    await world.clock.advance(1_000);
    assert.equal(world.looks.length, 1, "it is looked at once it is free, since it was due");
  });

  test("BareMetalHosts are probed again as soon as their BMC settings change, and forgotten when they are deleted", async (world) => {
    world.secret();
    world.host("h1");
    world.fault = "Timeout";
    await world.start();
    await world.clock.advance(ROUND_MS);
    assert.deepEqual(world.reasons, ["Timeout"]);
    world.fault = undefined;
    const before = world.looks.length;
    world.edit("h1", { spec: { bmc: { address: "redfish://other/redfish/v1/Systems/1" } } });
    await world.clock.advance(DEFAULT_PROBE_INTERVALS.changeMs + 1_000);
    assert.equal(world.looks.length, before + 1);
    assert.deepEqual(world.reasons, ["Timeout", "Usable"]);
    world.server.collection(BARE_METAL_HOSTS).delete({ namespace: NAMESPACE, name: "h1" });
    await world.clock.advance(1_000);
    assert.deepEqual(world.counts, { usable: 0, failing: 0, unprobed: 0 });
  });
});
