import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { startClusterControllers } from "../../../hack/kube-mock/controllers/cluster-controllers.ts";
import type { ClusterControllerOptions } from "../../../hack/kube-mock/controllers/cluster-controllers.ts";
import { CLAIMS, NAMESPACES, STATEFUL_SETS } from "../../../hack/kube-mock/controllers/cluster-types.ts";
import {
  CONFIG_MAPS,
  LEASES,
  NODES,
  PERSISTENT_VOLUMES,
  PODS,
  VOLUME_ATTACHMENTS,
} from "../../../src/api/kubernetes/core-types.ts";
import type { Lease, Node, Pod, VolumeAttachment } from "../../../src/api/kubernetes/core.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { OUT_OF_SERVICE } from "../../../src/api/kubernetes/taints.ts";
import { toMicroTime, toTime } from "../../../src/runtime/time.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const LEASE_NAMESPACE = "kube-node-lease";
const HEARTBEAT_MS = 10_000;

/** A cluster with minimal kubelets: they renew their leases, start bound pods, and end deleted ones. */
class World {
  readonly clock = new VirtualClock();
  readonly server = createApiServer({ clock: this.clock, random: seededRandom(1) });
  readonly nodes = this.server.collection<Node>(NODES);
  readonly pods = this.server.collection<Pod>(PODS);
  readonly leases = this.server.collection<Lease>(LEASES);
  readonly attachments = this.server.collection<VolumeAttachment>(VOLUME_ATTACHMENTS);
  readonly #alive = new Set<string>();
  readonly stop: () => void;

  constructor(options: Partial<ClusterControllerOptions> = {}) {
    this.stop = startClusterControllers({ server: this.server, clock: this.clock }, options);
    const beat = (): void => {
      for (const name of this.#alive) this.#beat(name);
      this.clock.schedule(HEARTBEAT_MS, beat);
    };
    beat();
    this.pods.subscribe(({ type, object }) => {
      if (type !== "DELETED")
        this.clock.schedule(0, () => this.#runPod(object.metadata.namespace, object.metadata.name));
    });
  }

  addNode(name: string): void {
    this.nodes.create({ metadata: { name }, status: { conditions: [{ type: "Ready", status: "False" }] } });
    this.#alive.add(name);
    this.#beat(name);
  }

  silence(name: string): void {
    this.#alive.delete(name);
  }

  revive(name: string): void {
    this.#alive.add(name);
    this.#beat(name);
  }

  ready(name: string): string | undefined {
    return this.nodes.get({ name })?.status.conditions?.find(({ type }) => type === "Ready")?.status;
  }

  taints(name: string): string[] {
    const taints = this.nodes.get({ name })?.spec.taints ?? [];
    return taints.map(({ key, effect }) => `${key.replace("node.kubernetes.io/", "")}:${effect}`).sort();
  }

  addTaint(name: string, taint: object): void {
    this.nodes.mergePatch({ name }, { spec: { taints: [...(this.nodes.get({ name })?.spec.taints ?? []), taint] } });
  }

  addPod(name: string, spec: object = {}): void {
    this.pods.create({
      metadata: { name, namespace: "default" },
      spec: { containers: [{ name: "a", image: "a" }], ...spec },
    });
  }

  pod(name: string): Pod | undefined {
    return this.pods.get({ namespace: "default", name });
  }

  /** `pod node phase` of each pod, with `-` for one that is terminating. */
  podList(): string[] {
    return [...this.pods.values()]
      .map(({ metadata, spec, status }) => {
        const mark = metadata.deletionTimestamp === undefined ? "" : "-";
        return `${mark}${metadata.name} ${spec.nodeName ?? ""} ${status?.phase ?? ""}`;
      })
      .sort();
  }

  #beat(name: string): void {
    const renewTime = toMicroTime(this.clock.nowMs());
    const key = { namespace: LEASE_NAMESPACE, name };
    if (this.leases.get(key) === undefined) this.leases.create({ metadata: key, spec: { renewTime } });
    else this.leases.mergePatch(key, { spec: { renewTime } });
    const kept = (this.nodes.get({ name })?.status.conditions ?? []).filter(({ type }) => type !== "Ready");
    const ready = { type: "Ready", status: "True", lastHeartbeatTime: toTime(this.clock.nowMs()) };
    this.nodes.mergePatch({ name }, { status: { conditions: [...kept, ready] } }, "status");
  }

  #runPod(namespace: string, name: string): void {
    const pod = this.pods.get({ namespace, name });
    if (pod?.spec.nodeName === undefined || !this.#alive.has(pod.spec.nodeName)) return;
    if (pod.metadata.deletionTimestamp !== undefined) this.pods.delete({ namespace, name }, { gracePeriodSeconds: 0 });
    else if (pod.status?.phase === "Pending") {
      this.pods.mergePatch({ namespace, name }, { status: { phase: "Running" } }, "status");
    }
  }
}

test("a node whose kubelet stops is Unknown after the grace period and tainted, and is untainted when it is back", async () => {
  const world = new World();
  world.addNode("a");
  await world.clock.advance(60_000);
  assert.deepEqual([world.ready("a"), world.taints("a")], ["True", []]);
  world.silence("a");
  await world.clock.advance(50_000);
  assert.equal(world.ready("a"), "True");
  await world.clock.advance(10_000);
  assert.deepEqual(
    [world.ready("a"), world.taints("a")],
    ["Unknown", ["unreachable:NoExecute", "unreachable:NoSchedule"]],
  );
  world.revive("a");
  await world.clock.advance(1);
  assert.deepEqual([world.ready("a"), world.taints("a")], ["True", []]);
});

test("condition taints follow conditions and cordons, and leave the taints of others alone", async () => {
  const world = new World();
  world.addNode("a");
  world.addTaint("a", { key: "example.com/mine", effect: "NoExecute" });
  world.nodes.mergePatch({ name: "a" }, { spec: { unschedulable: true } });
  const conditions = [
    { type: "Ready", status: "False" },
    { type: "DiskPressure", status: "True" },
  ];
  world.nodes.mergePatch({ name: "a" }, { status: { conditions } }, "status");
  await world.clock.advance(1);
  assert.deepEqual(world.taints("a"), [
    "disk-pressure:NoSchedule",
    "example.com/mine:NoExecute",
    "not-ready:NoExecute",
    "not-ready:NoSchedule",
    "unschedulable:NoSchedule",
  ]);
});

test("pods leave an unreachable node after their five minutes, and stay Terminating until a kubelet confirms", async () => {
  const world = new World();
  world.addNode("a");
  world.addPod("plain", { nodeName: "a" });
  world.addPod("stays", { nodeName: "a", tolerations: [{ operator: "Exists" }] });
  await world.clock.advance(1_000);
  world.silence("a");
  await world.clock.advance(350_000);
  assert.deepEqual(world.podList(), ["plain a Running", "stays a Running"]);
  await world.clock.advance(20_000);
  assert.deepEqual(world.podList(), ["-plain a Running", "stays a Running"]);
  assert.equal(world.pod("plain")?.status?.conditions?.[0]?.type, "DisruptionTarget");
  await world.clock.advance(600_000);
  assert.deepEqual(world.podList(), ["-plain a Running", "stays a Running"]);
});

test("the sweep after an out-of-service taint frees the pods of a dead node, and of no other", async () => {
  const world = new World({ scheduler: false });
  for (const name of ["dead", "alive"]) {
    world.addNode(name);
    world.addPod(`on-${name}`, { nodeName: name });
  }
  await world.clock.advance(1_000);
  world.silence("dead");
  await world.clock.advance(60_000);
  world.addTaint("dead", OUT_OF_SERVICE);
  await world.clock.advance(1_000);
  assert.deepEqual(world.podList(), ["-on-dead dead Running", "on-alive alive Running"]);
  await world.clock.advance(20_000);
  assert.deepEqual(world.podList(), ["on-alive alive Running"]);
});

test("the sweep leaves the pods of a node that is Ready alone, taint or not", async () => {
  const world = new World();
  world.addNode("a");
  world.addPod("p", { nodeName: "a" });
  await world.clock.advance(1_000);
  world.silence("a");
  world.addTaint("a", OUT_OF_SERVICE);
  await world.clock.advance(41_000);
  assert.deepEqual([world.ready("a"), world.podList()], ["True", ["-p a Running"]]);
  await world.clock.advance(40_000);
  assert.deepEqual([world.ready("a"), world.podList()], ["Unknown", []]);
});

test("pods of a node that was deleted are collected after the quarantine", async () => {
  const world = new World();
  world.addNode("a");
  world.addPod("orphan", { nodeName: "a" });
  await world.clock.advance(1_000);
  world.silence("a");
  world.nodes.delete({ name: "a" });
  await world.clock.advance(40_000);
  assert.deepEqual(world.podList(), ["orphan a Running"]);
  await world.clock.advance(40_000);
  assert.deepEqual(world.podList(), []);
});

function addDatabase(world: World, replicas: number): void {
  world.server.collection(STATEFUL_SETS).create({
    metadata: { name: "db", namespace: "default" },
    spec: {
      serviceName: "db",
      replicas,
      selector: { matchLabels: { app: "db" } },
      template: {
        metadata: { labels: { app: "db" } },
        spec: { containers: [{ name: "db", image: "db" }], tolerations: [{ key: "none", operator: "Exists" }] },
      },
      volumeClaimTemplates: [{ metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"] } }],
    },
  });
}

function attached(world: World): string[] {
  return [...world.attachments.values()].map(({ spec, status }) => `${spec.nodeName} ${status?.attached}`).sort();
}

test("a StatefulSet's pod gets its volume, and a successor elsewhere only when the old Pod object and attachment are gone", async () => {
  const world = new World();
  for (const name of ["a", "b"]) world.addNode(name);
  addDatabase(world, 1);
  await world.clock.advance(2_000);
  assert.deepEqual([world.podList(), attached(world)], [["db-0 a Running"], ["a true"]]);
  assert.equal([...world.server.collection(PERSISTENT_VOLUMES).values()].length, 1);

  world.silence("a");
  await world.clock.advance(400_000);
  // The old pod stays Terminating: at most one may exist, so there is no successor.
  assert.deepEqual([world.podList(), attached(world)], [["-db-0 a Running"], ["a true"]]);

  world.addTaint("a", OUT_OF_SERVICE);
  await world.clock.advance(25_000);
  assert.deepEqual([world.podList(), attached(world)], [["db-0 b Running"], ["b true"]]);
});

test("a volume in use is detached from a silent node only after six minutes", async () => {
  const world = new World({ podGc: false, nodeLifecycle: { monitorPeriodMs: 5_000, monitorGracePeriodMs: 50_000 } });
  for (const name of ["a", "b"]) world.addNode(name);
  addDatabase(world, 1);
  await world.clock.advance(2_000);
  const volume = [...world.attachments.values()][0]?.spec.source.persistentVolumeName ?? "";
  world.nodes.mergePatch({ name: "a" }, { status: { volumesInUse: [`kubernetes.io/csi/driver^${volume}`] } }, "status");
  world.silence("a");
  await world.clock.advance(60_000);
  world.pods.delete({ namespace: "default", name: "db-0" }, { gracePeriodSeconds: 0 });
  await world.clock.advance(300_000);
  assert.deepEqual(attached(world), ["a true"]);
  await world.clock.advance(70_000);
  assert.deepEqual(attached(world), ["b true"]);
});

test("pods of an ordered set come up one after another", async () => {
  const world = new World();
  world.addNode("a");
  world.silence("a");
  addDatabase(world, 2);
  await world.clock.advance(2_000);
  assert.deepEqual(world.podList(), ["db-0 a Pending"]);
  world.revive("a");
  world.pods.mergePatch({ namespace: "default", name: "db-0" }, { status: { phase: "Running" } }, "status");
  await world.clock.advance(2_000);
  assert.deepEqual(world.podList(), ["db-0 a Running", "db-1 a Running"]);
});

test("the scheduler avoids cordoned, tainted and silent nodes, spreads pods, and follows selectors and tolerations", async () => {
  const world = new World();
  for (const name of ["cordoned", "silent", "tainted", "x", "y"]) world.addNode(name);
  world.nodes.mergePatch({ name: "cordoned" }, { spec: { unschedulable: true } });
  world.nodes.mergePatch({ name: "y" }, { metadata: { labels: { disk: "ssd" } } });
  world.addTaint("tainted", { key: "example.com/mine", effect: "NoSchedule" });
  world.silence("silent");
  await world.clock.advance(60_000);
  for (const name of ["p-1", "p-2"]) world.addPod(name);
  world.addPod("picky", { nodeSelector: { disk: "ssd" } });
  world.addPod("stuck", { nodeSelector: { disk: "tape" } });
  await world.clock.advance(1_000);
  assert.deepEqual(world.podList(), ["p-1 x Running", "p-2 y Running", "picky y Running", "stuck  Pending"]);
  world.addPod("tolerant", { tolerations: [{ key: "example.com/mine", operator: "Exists" }] });
  world.nodes.mergePatch({ name: "x" }, { metadata: { labels: { disk: "tape" } } });
  await world.clock.advance(1_000);
  assert.deepEqual(world.podList().slice(3), ["stuck x Running", "tolerant tainted Running"]);
});

test("the scheduler avoids a cordoned node also if it has no taint for that", async () => {
  const world = new World({ nodeLifecycle: false });
  world.addNode("a");
  world.nodes.mergePatch({ name: "a" }, { spec: { unschedulable: true, taints: null } });
  world.addPod("p");
  await world.clock.advance(1_000);
  assert.deepEqual(world.podList(), ["p  Pending"]);
  world.nodes.mergePatch({ name: "a" }, { spec: { unschedulable: null } });
  await world.clock.advance(1_000);
  assert.deepEqual(world.podList(), ["p a Running"]);
});

function addOwned(world: World, name: string, owner: KubeObject, change: object = {}): void {
  const { apiVersion, kind } = owner;
  const reference = { apiVersion, kind, name: owner.metadata.name, uid: owner.metadata.uid, ...change };
  world.server
    .collection(CONFIG_MAPS)
    .create({ metadata: { name, namespace: "default", ownerReferences: [reference] } });
}

function configMaps(world: World): string[] {
  return [...world.server.collection(CONFIG_MAPS).values()].map(({ metadata }) => metadata.name).sort();
}

test("objects are collected when their owner is gone, was another, or lives in another namespace", async () => {
  const world = new World();
  const node = world.nodes.create({ metadata: { name: "owner" } });
  const elsewhere = world.server
    .collection(CONFIG_MAPS)
    .create({ metadata: { name: "far", namespace: "kube-public" } });
  addOwned(world, "owned", node);
  addOwned(world, "of-another", node, { uid: "another" });
  addOwned(world, "across", elsewhere);
  addOwned(world, "unknown-kind", node, { kind: "Gadget" });
  await world.clock.advance(1_000);
  assert.deepEqual(configMaps(world), ["far", "owned", "unknown-kind"]);
  world.nodes.delete({ name: "owner" });
  await world.clock.advance(1_000);
  assert.deepEqual(configMaps(world), ["far", "unknown-kind"]);
});

test("foreground deletion waits for dependents that block it; orphaning lets them live", async () => {
  const world = new World();
  const first = world.nodes.create({ metadata: { name: "first" } });
  const second = world.nodes.create({ metadata: { name: "second" } });
  addOwned(world, "blocking", first, { blockOwnerDeletion: true });
  addOwned(world, "orphan", second);
  world.server
    .collection(CONFIG_MAPS)
    .mergePatch({ namespace: "default", name: "blocking" }, { metadata: { finalizers: ["example.com/hold"] } });
  world.nodes.delete({ name: "first" }, { propagationPolicy: "Foreground" });
  world.nodes.delete({ name: "second" }, { propagationPolicy: "Orphan" });
  await world.clock.advance(1_000);
  assert.ok(world.nodes.get({ name: "first" }) !== undefined);
  assert.equal(world.nodes.get({ name: "second" }), undefined);
  world.server
    .collection(CONFIG_MAPS)
    .mergePatch({ namespace: "default", name: "blocking" }, { metadata: { finalizers: null } });
  await world.clock.advance(1_000);
  assert.equal(world.nodes.get({ name: "first" }), undefined);
  assert.deepEqual(configMaps(world), ["orphan"]);
});

test("a deleted namespace is emptied, then gone", async () => {
  const world = new World();
  const namespaces = world.server.collection(NAMESPACES);
  namespaces.create({ metadata: { name: "team" } });
  const key = { namespace: "team", name: "a" };
  const maps = world.server.collection(CONFIG_MAPS);
  maps.create({ metadata: { ...key, finalizers: ["example.com/hold"] } });
  namespaces.delete({ name: "team" });
  await world.clock.advance(5_000);
  assert.ok(namespaces.get({ name: "team" }) !== undefined);
  maps.mergePatch(key, { metadata: { finalizers: null } });
  await world.clock.advance(5_000);
  assert.equal(namespaces.get({ name: "team" }), undefined);
});

test("a deleted claim is released when no pod uses it any more", async () => {
  const world = new World({ statefulSets: false });
  world.addNode("a");
  const claims = world.server.collection(CLAIMS);
  const key = { namespace: "default", name: "data" };
  claims.create({ metadata: key, spec: {} });
  world.addPod("user", { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] });
  await world.clock.advance(2_000);
  claims.delete(key);
  await world.clock.advance(5_000);
  assert.ok(claims.get(key) !== undefined);
  world.pods.delete({ namespace: "default", name: "user" });
  await world.clock.advance(5_000);
  assert.equal(claims.get(key), undefined);
});

test("stopped controllers leave nothing on the clock", async () => {
  const clock = new VirtualClock();
  const server = createApiServer({ clock, random: seededRandom(1) });
  const stop = startClusterControllers({ server, clock });
  server.collection(NODES).create({ metadata: { name: "a" } });
  await clock.advance(1_000);
  stop();
  assert.equal(clock.pending, 0);
});

test("two runs of one seed end in the same state", async () => {
  const run = async (): Promise<string> => {
    const world = new World();
    for (const name of ["a", "b", "c"]) world.addNode(name);
    addDatabase(world, 2);
    await world.clock.advance(5_000);
    world.silence("a");
    await world.clock.advance(500_000);
    return JSON.stringify([...world.pods.values(), ...world.nodes.values(), ...world.attachments.values()]);
  };
  assert.equal(await run(), await run());
});
