import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../../hack/kube-mock/api-server.ts";
import { createCertificateAuthority } from "../../../hack/lib/pki.ts";
import { NAMESPACES, NODES, SECRETS } from "../../../src/api/kubernetes/core-types.ts";
import type { SecretObject } from "../../../src/kube/objects/secret-reader.ts";
import { createWorkloadClusters } from "../../../src/clusters/workload-clusters.ts";
import type { ClusterConnection, HeldCluster } from "../../../src/clusters/workload-clusters.ts";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import type { KubeTransport } from "../../../src/kube/transport.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";
import { recordingLogger } from "../kube/support.ts";
import { base64, kubeconfigText } from "./kubeconfig-text.ts";

const NAMESPACE = "default";
const NAMES = { controllerName: "ironfence.io/test", instance: "test" };
const REF = { namespace: NAMESPACE, name: "alpha" };

/** A management cluster, and workload clusters by the host name of their server. */
class Clusters {
  readonly clock = new VirtualClock();
  readonly random = seededRandom(7);
  readonly management = createApiServer(this);
  readonly registry = new Registry();
  readonly log = recordingLogger();
  readonly stop = new AbortController();
  /** Servers that answer. All others do not answer. */
  readonly servers = new Map<string, ApiServer>();
  /** The opened transports, and the number of those that are open now. */
  readonly opened: string[] = [];
  open = 0;
  mayWrite = true;
  /** How long the process was suspended. Timers did not run during that time. */
  sleptMs = 0;
  readonly clusters;

  constructor(t: TestContext) {
    const { clock, random, registry } = this;
    const { logger } = this.log;
    const transport = this.management.transport({ client: "agent" });
    const sleeper: Clock = {
      nowMs: () => clock.nowMs() + this.sleptMs,
      monotonicMs: () => clock.monotonicMs() + this.sleptMs,
      schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
    };
    const runtime = createKubeRuntime({ transport, clock: sleeper, random, logger, ...NAMES });
    this.clusters = createWorkloadClusters(
      {
        runtime,
        registry,
        ...NAMES,
        openTransport: ({ server }) => this.#wire(new URL(server).hostname),
        mayWrite: () => this.mayWrite,
      },
      this.stop.signal,
    );
    t.after(async () => {
      this.stop.abort(new Error("the test is over"));
      const settled = this.clusters.settled();
      await this.clock.advance(1_000);
      await settled;
      this.management.close();
      for (const server of this.servers.values()) server.close();
    });
  }

  /** Starts a workload cluster with one node. */
  start(host: string, node = "n1"): ApiServer {
    const server = createApiServer(this);
    this.servers.set(host, server);
    server.collection(NODES).create({ metadata: { name: node }, spec: {} });
    return server;
  }

  hold(onChange: () => void = () => undefined): HeldCluster {
    return this.clusters.hold(REF, onChange);
  }

  get secrets() {
    return this.management.collection<SecretObject>(SECRETS);
  }

  writeSecret(text: string, name = "alpha-kubeconfig"): void {
    const data = { value: base64(text) };
    const current = this.secrets.get({ namespace: NAMESPACE, name });
    if (current === undefined) this.secrets.create({ metadata: { namespace: NAMESPACE, name }, data });
    else this.secrets.mergePatch({ namespace: NAMESPACE, name }, { data });
  }

  #wire(host: string): KubeTransport {
    this.opened.push(host);
    this.open += 1;
    const inner = (): KubeTransport => {
      const server = this.servers.get(host);
      if (server === undefined) throw new KubeError("Network", `connect ECONNREFUSED ${host}`);
      return server.transport({ client: "agent" });
    };
    return {
      send: async (request, signal) => inner().send(request, signal),
      stream: async (request, signal) => inner().stream(request, signal),
      close: async () => {
        this.open -= 1;
      },
    };
  }
}

const kubeconfigFor = (host: string, token = "t"): string =>
  kubeconfigText({ cluster: { server: `https://${host}:6443` }, user: { token } });

type Connected = Extract<ClusterConnection, { state: "connected" }>;
type Disconnected = Extract<ClusterConnection, { state: "disconnected" }>;

function connected({ connection }: HeldCluster): Connected {
  assert.ok(connection.state === "connected", JSON.stringify(connection));
  return connection;
}

function disconnected({ connection }: HeldCluster, reason: Disconnected["reason"]): Disconnected {
  assert.ok(connection.state === "disconnected", connection.state);
  assert.equal(connection.reason, reason, connection.message);
  return connection;
}

function nodesOf(held: HeldCluster): string[] {
  return [...connected(held).nodes.values()].map(({ metadata }) => metadata.name);
}

function reasonOf({ connection }: HeldCluster): string {
  return connection.state === "disconnected" ? connection.reason : connection.state;
}

/** Twice as many images as a kubelet reports by default, with all their managed fields. */
const IMAGES = Array.from({ length: 100 }, (_, index) => ({
  names: [`registry.example/app-${index}@sha256:${"0".repeat(64)}`, `registry.example/app-${index}:v1`],
  sizeBytes: 100_000_000 + index,
}));
const MANAGED = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`f:field-${index}`, { ".": {} }]));
const LABELS = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`example.com/label-${index}`, "x"]));
const STATUS = { images: IMAGES, managed: MANAGED };

describe("a workload cluster", () => {
  it("a workload cluster is connected through its Secret, and shows its nodes", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    let changes = 0;
    const held = world.hold(() => (changes += 1));
    assert.deepEqual(held.connection, { state: "connecting" });
    await world.clock.advance(5_000);
    assert.deepEqual(nodesOf(held), ["n1"]);
    assert.equal(changes, 1);
  });

  it("a workload cluster cannot be reached at once, and says why, if its API server has more nodes than may be kept", async (t) => {
    const world = new Clusters(t);
    const server = world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const held = world.hold();
    await world.clock.advance(5_000);
    assert.equal(held.connection.state, "connected");
    const labels = Object.fromEntries(Array.from({ length: 1_000 }, (_, key) => [`k${key}`, "x".repeat(60)]));
    for (let index = 0; index < 80; index++) {
      server.collection(NODES).create({ metadata: { name: `g${index}`, labels }, spec: {} });
    }
    await world.clock.advance(5_000);
    assert.match(disconnected(held, "OverBudget").message, /^watch nodes: more than 4194304 characters to be kept/);
    for (let index = 0; index < 80; index++) server.collection(NODES).delete({ name: `g${index}` });
    await world.clock.advance(90_000);
    assert.deepEqual(nodesOf(held), ["n1"]);
  });

  it("a workload cluster cannot be reached if an object has more fields than a Node, and connected with Nodes of 50 images", async (t) => {
    const world = new Clusters(t);
    const server = world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    for (let index = 0; index < 60; index++) {
      server.collection(NODES).create({ metadata: { name: `g${index}`, labels: LABELS }, spec: {}, status: STATUS });
    }
    const held = world.hold();
    await world.clock.advance(5_000);
    assert.equal(nodesOf(held).length, 61);
    const fields = Object.fromEntries(Array.from({ length: 100_000 }, (_, key) => [`k${key}`, 0]));
    server.collection(NODES).create({ metadata: { name: "many" }, spec: {}, status: fields });
    await world.clock.advance(5_000);
    assert.match(disconnected(held, "OverBudget").message, /^watch nodes: more than 20000 values/);
    await world.clock.advance(90_000);
    assert.match(disconnected(held, "OverBudget").message, /\/api\/v1\/nodes: more than 60000 values/);
  });

  it("a workload cluster is waited for until its Secret is there", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    const held = world.hold();
    await world.clock.advance(5_000);
    assert.match(disconnected(held, "KubeconfigMissing").message, /there is no Secret default\/alpha-kubeconfig/);
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    await world.clock.advance(15_000);
    assert.equal(held.connection.state, "connected");
  });

  it("a workload cluster has one connection for all its users, which is closed some time after the last one releases it", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const first = world.hold();
    await world.clock.advance(5_000);
    const second = world.hold();
    assert.equal(second.connection, first.connection);
    assert.deepEqual(world.opened, ["10.0.0.1"]);
    first.release();
    first.release();
    await world.clock.advance(120_000);
    assert.equal(world.open, 1, "one holder still has it");
    second.release();
    await world.clock.advance(30_000);
    const third = world.hold();
    assert.equal(third.connection.state, "connected", "it has not been closed at once");
    await world.clock.advance(120_000);
    assert.equal(world.open, 1);
    third.release();
    await world.clock.advance(120_000);
    assert.equal(world.open, 0);
  });

  it("a workload cluster stays connected if a listener for changes fails", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    const fails = world.hold(() => {
      throw new Error("a fault of the listener");
    });
    let changes = 0;
    world.hold(() => (changes += 1));
    await world.clock.advance(5_000);
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    await world.clock.advance(20_000);
    assert.equal(fails.connection.state, "connected");
    assert.equal(changes, 3, "missing, found, connected");
  });

  it("a workload cluster leaves nothing running or open when its signal aborts", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    world.hold().release();
    world.hold();
    await world.clock.advance(5_000);
    world.stop.abort(new Error("enough"));
    const settled = world.clusters.settled();
    await world.clock.advance(0);
    await settled;
    assert.equal(world.open, 0);
    assert.equal(await world.registry.metrics(), "\n");
  });

  it("a workload cluster is disconnected while it does not answer, and keeps its view when it answers again", async (t) => {
    const world = new Clusters(t);
    const server = world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const held = world.hold();
    await world.clock.advance(5_000);
    const before = connected(held);
    world.servers.delete("10.0.0.1");
    server.faults.cutWatches({});
    await world.clock.advance(10_000);
    assert.equal(held.connection, before, "a restart is not a reason for alarm");
    await world.clock.advance(10_000);
    const { message, sinceMs } = disconnected(held, "Unreachable");
    assert.match(message, /ECONNREFUSED/);
    await world.clock.advance(60_000);
    assert.equal(disconnected(held, "Unreachable").sinceMs, sinceMs, "still since then");
    server.collection(NODES).create({ metadata: { name: "n2" }, spec: {} });
    world.servers.set("10.0.0.1", server);
    await world.clock.advance(30_000);
    assert.equal(connected(held).runtime, before.runtime);
    assert.deepEqual(nodesOf(held), ["n1", "n2"]);
    assert.deepEqual(world.opened, ["10.0.0.1"]);
  });

  it("a workload cluster does not count as connected by a view that has received nothing for minutes, though no error shows it", async (t) => {
    const world = new Clusters(t);
    const server = world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const held = world.hold();
    await world.clock.advance(5_000);
    // New watches open but send nothing, and lists hang.
    t.mock.method(server, "transport", deaf);
    server.faults.cutWatches({});
    await world.clock.advance(170_000);
    await world.clock.advance(60_000);
    disconnected(held, "Unreachable");
  });

  it("a workload cluster is not connected for a process that was suspended for minutes, before any of its timers runs", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const held = world.hold();
    await world.clock.advance(5_000);
    connected(held);
    world.sleptMs = 200_000;
    disconnected(held, "Unreachable");
  });

  it("a workload cluster follows a kubeconfig to another API server without a gap", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1", "old");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const states: string[] = [];
    const held = world.hold(() => states.push(held.connection.state));
    await world.clock.advance(5_000);
    world.writeSecret(kubeconfigFor("10.0.0.2"));
    await world.clock.advance(60_000);
    assert.deepEqual(nodesOf(held), ["old"], "the new one does not answer yet");
    world.start("10.0.0.2", "new");
    await world.clock.advance(30_000);
    assert.deepEqual(nodesOf(held), ["new"]);
    assert.deepEqual(states, ["connected", "connected"]);
    assert.equal(world.open, 1, "the old connection is closed");
  });

  it("a workload cluster takes the same address under another certificate authority for another API server", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    const signedBy = async (commonName: string): Promise<string> => {
      const { certPem } = await createCertificateAuthority(world.clock, commonName);
      const cluster = { server: "https://10.0.0.1:6443", "certificate-authority-data": base64(certPem) };
      return kubeconfigText({ cluster });
    };
    world.writeSecret(await signedBy("before"));
    const held = world.hold();
    await world.clock.advance(5_000);
    const { runtime } = connected(held);
    world.writeSecret(await signedBy("after"));
    await world.clock.advance(60_000);
    assert.notEqual(connected(held).runtime, runtime);
    assert.deepEqual(world.opened, ["10.0.0.1", "10.0.0.1"]);
    assert.equal(world.open, 1);
  });

  it("a workload cluster keeps its connection while its kubeconfig is replaced, and gives it up if none comes", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const states: string[] = [];
    const held = world.hold(() => states.push(reasonOf(held)));
    await world.clock.advance(5_000);
    world.secrets.delete({ namespace: NAMESPACE, name: "alpha-kubeconfig" });
    await world.clock.advance(40_000);
    world.writeSecret(kubeconfigFor("10.0.0.1", "rotated"));
    await world.clock.advance(120_000);
    assert.deepEqual(states, ["connected"]);
    assert.deepEqual(world.opened, ["10.0.0.1"], "other credentials for the same server need no other connection");
    world.writeSecret(kubeconfigText({ user: { exec: { command: "/bin/true" } } }));
    await world.clock.advance(180_000);
    assert.deepEqual(states, ["connected", "KubeconfigInvalid"]);
    assert.equal(world.open, 0);
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    await world.clock.advance(20_000);
    assert.equal(held.connection.state, "connected");
  });

  it("a workload cluster is not connected by a kubeconfig that names a program, and the content of its Secret is never printed", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    const server = "https://10.0.0.1:6443";
    world.writeSecret(kubeconfigText({ cluster: { server }, user: { token: "h1dden", exec: { command: "/bin/sh" } } }));
    const held = world.hold();
    await world.clock.advance(30_000);
    const { message } = disconnected(held, "KubeconfigInvalid");
    assert.match(message, /Secret default\/alpha-kubeconfig: key "value": user\.exec names a program/);
    assert.deepEqual(world.opened, []);
    assert.doesNotMatch(JSON.stringify(world.log.lines) + message, /h1dden|\/bin\/sh/);
  });

  it("a workload cluster is not written to without the lease, and is still read", async (t) => {
    const world = new Clusters(t);
    const server = world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const held = world.hold();
    await world.clock.advance(5_000);
    const { client } = connected(held).runtime;
    const { signal } = world.stop;
    const node = await client.get(NODES, { name: "n1" }, signal);
    world.mayWrite = false;
    const patch = [{ op: "add", path: "/metadata/labels", value: { a: "b" } }] as const;
    await assert.rejects(
      client.patch(NODES, { name: "n1" }, { uid: node.metadata.uid }, patch, {}, signal),
      /this agent no longer holds the lease/,
    );
    assert.equal(server.collection(NODES).get({ name: "n1" })?.metadata.labels, undefined);
    assert.equal((await client.get(NODES, { name: "n1" }, signal)).metadata.name, "n1");
  });

  it("a workload cluster says which cluster answers, by its namespace kube-system, also when that changes at the same address", async (t) => {
    const world = new Clusters(t);
    const uidOf = (server: ApiServer) => server.collection(NAMESPACES).get({ name: "kube-system" })?.metadata.uid;
    const first = world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    let changes = 0;
    const held = world.hold(() => (changes += 1));
    await world.clock.advance(5_000);
    assert.notEqual(uidOf(first), undefined);
    assert.equal(connected(held).uid, uidOf(first));
    const second = world.start("10.0.0.1");
    first.close();
    await world.clock.advance(70_000);
    assert.notEqual(uidOf(second), uidOf(first));
    assert.equal(connected(held).uid, uidOf(second));
    assert.equal(changes, 2);
  });

  it("a workload cluster cannot be reached while reading its identity is forbidden, and no longer", async (t) => {
    const world = new Clusters(t);
    const { faults } = world.start("10.0.0.1");
    const match = { pathPrefix: "/api/v1/namespaces/kube-system" };
    faults.inject({ match, times: 5, action: { kind: "status", status: 403 } });
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const held = world.hold();
    await world.clock.advance(12_000);
    assert.match(disconnected(held, "Unauthorized").message, /grant permission to get namespace kube-system/);
    await world.clock.advance(60_000);
    assert.equal(held.connection.state, "connected");
  });

  it("a workload cluster stays connected while the management cluster is unreachable, by what was read last", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const held = world.hold();
    await world.clock.advance(5_000);
    world.management.faults.inject({ match: {}, times: Infinity, action: { kind: "status", status: 503 } });
    await world.clock.advance(120_000);
    assert.equal(held.connection.state, "connected");
  });

  it("a workload cluster that cannot be reached does not slow the others down", async (t) => {
    const world = new Clusters(t);
    world.start("10.0.0.1");
    world.writeSecret(kubeconfigFor("10.0.0.1"));
    const unreachable = Array.from({ length: 20 }, (_, index) => {
      world.writeSecret(kubeconfigFor(`10.9.0.${index}`), `unreachable-${index}-kubeconfig`);
      return world.clusters.hold({ namespace: NAMESPACE, name: `unreachable-${index}` }, () => undefined);
    });
    const states: string[] = [];
    const held = world.hold(() => states.push(held.connection.state));
    await world.clock.advance(120_000);
    assert.deepEqual(states, ["connected"]);
    assert.ok(unreachable.every((cluster) => reasonOf(cluster) === "Unreachable"));
    assert.match(await world.registry.metrics(), /ironfence_workload_clusters\{state="disconnected"\} 20/);
    assert.match(await world.registry.metrics(), /ironfence_workload_clusters\{state="connected"\} 1/);
  });
});

/** A transport that never answers. */
function deaf(): KubeTransport {
  const never = (signal: AbortSignal): Promise<never> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new KubeError("Aborted", "aborted")), { once: true });
    });
  return {
    send: (_request, signal) => never(signal),
    stream: async (_request, signal) => ({
      status: 200,
      headers: {},
      body: {
        async *[Symbol.asyncIterator](): AsyncGenerator<string> {
          yield await never(signal);
        },
      },
    }),
    close: async () => undefined,
  };
}
