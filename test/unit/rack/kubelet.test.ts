import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../../hack/kube-mock/api-server.ts";
import { startKubelets } from "../../../hack/rack/kubelet.ts";
import { createRack } from "../../../hack/rack/rack.ts";
import type { Rack } from "../../../hack/rack/rack.ts";
import type { Lease, Node, Pod, Taint, VolumeAttachment } from "../../../src/api/kubernetes/core.ts";
import { LEASES, NODES, PODS, VOLUME_ATTACHMENTS } from "../../../src/api/kubernetes/core-types.ts";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import type { KubeClient } from "../../../src/kube/client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import type { KubeObject, ResourceType } from "../../../src/kube/resource.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const SIGNAL = new AbortController().signal;
const OUT_OF_SERVICE: Taint = { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" };

interface World {
  clock: VirtualClock;
  rack: Rack;
  api: ApiServer;
  client: KubeClient;
  kubelets: Promise<void>;
  stop: AbortController;
}

let world: World | undefined;

/** One host "a", whose kubelet renews its lease every 10 s and reads its pods every second. */
function setUp(): World {
  const clock = new VirtualClock();
  const random = seededRandom(1);
  const rack = createRack({
    clock,
    random,
    hosts: [{ name: "a", labels: { zone: "z1" }, taints: [{ key: "gpu", effect: "NoSchedule" }], bootMs: 5_000 }],
  });
  const api = createApiServer({ clock, random });
  const client = createKubeClient({ transport: api.transport({ client: "kubelet" }), clock, random });
  const stop = new AbortController();
  const deps = { rack, client, clock, logger: createLogger("silent") };
  const kubelets = startKubelets(deps, {}, stop.signal);
  world = { clock, rack, api, client, kubelets, stop };
  return world;
}

afterEach(async () => {
  const { stop, kubelets, clock, rack } = world ?? assert.fail("no world");
  stop.abort();
  await kubelets;
  rack.stop();
  assert.equal(clock.pending, 0, "nothing is left running");
});

async function read<T extends KubeObject>(
  type: ResourceType,
  name: string,
  namespace?: string,
): Promise<T | undefined> {
  const { client } = world ?? assert.fail("no world");
  try {
    return await client.get<T>(type, namespace === undefined ? { name } : { namespace, name }, SIGNAL);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

const readNode = (): Promise<Node | undefined> => read<Node>(NODES, "a");
const readLease = (): Promise<Lease | undefined> => read<Lease>(LEASES, "a", "kube-node-lease");
const readPod = (): Promise<Pod | undefined> => read<Pod>(PODS, "db", "default");

function ready(node: Node | undefined): string | undefined {
  return node?.status.conditions?.find(({ type }) => type === "Ready")?.status;
}

async function createPod(spec: Partial<Pod["spec"]> = {}): Promise<void> {
  const { client } = world ?? assert.fail("no world");
  const podSpec = {
    nodeName: "a",
    containers: [{ name: "db", image: "db" }],
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    ...spec,
  };
  await client.create<Pod>(
    PODS,
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "db", namespace: "default" },
      spec: podSpec,
    },
    {},
    SIGNAL,
  );
}

async function setTaints(taints: Taint[]): Promise<void> {
  const { client } = world ?? assert.fail("no world");
  const node = await readNode();
  assert.ok(node);
  const operations = [{ op: "add" as const, path: "/spec/taints", value: taints }];
  await client.patch(NODES, { name: "a" }, { uid: node.metadata.uid }, operations, {}, SIGNAL);
}

describe("a simulated kubelet", () => {
  it("a simulated kubelet registers its node with the configured labels and taints, and reports its system UUID and boot ID", async () => {
    const { clock, rack } = setUp();
    await clock.advance(1_000);
    const node = await readNode();
    assert.equal(node?.metadata.labels?.["zone"], "z1");
    assert.equal(node?.metadata.labels?.["kubernetes.io/hostname"], "a");
    assert.ok(node?.spec.taints?.some(({ key }) => key === "gpu"));
    assert.equal(ready(node), "True");
    assert.equal(node?.status.nodeInfo?.bootID, rack.host("a").bootID);
    assert.equal(node?.status.nodeInfo?.systemUUID, rack.host("a").spec.systemUUID);
    const lease = await readLease();
    assert.equal(lease?.spec.holderIdentity, "a");
    assert.equal(lease?.spec.leaseDurationSeconds, 40);
    assert.equal(lease?.metadata.ownerReferences?.[0]?.uid, node?.metadata.uid);
  });

  it("a simulated kubelet leaves what others wrote on an existing node as it is, and posts the new boot", async () => {
    const { clock, rack, client } = setUp();
    await clock.advance(1_000);
    const before = await readNode();
    assert.ok(before);
    const guard = { uid: before.metadata.uid };
    const operations = [
      { op: "add" as const, path: "/metadata/labels/mine", value: "yes" },
      { op: "add" as const, path: "/spec/unschedulable", value: true },
      { op: "remove" as const, path: "/metadata/labels/zone" },
    ];
    await client.patch(NODES, { name: "a" }, guard, operations, {}, SIGNAL);
    rack.host("a").order("PowerCycle");
    await clock.advance(20_000);
    const after = await readNode();
    assert.equal(after?.metadata.uid, before.metadata.uid);
    assert.equal(after?.metadata.labels?.["mine"], "yes");
    assert.equal(after?.metadata.labels?.["zone"], undefined);
    assert.equal(after?.spec.unschedulable, true);
    assert.notEqual(after?.status.nodeInfo?.bootID, before.status.nodeInfo?.bootID);
  });

  it("a simulated kubelet renews its lease, and is silent from the moment of a hang", async () => {
    const { clock, rack } = setUp();
    await clock.advance(1_000);
    const first = await readLease();
    await clock.advance(10_000);
    const second = await readLease();
    assert.notEqual(second?.spec.renewTime, first?.spec.renewTime);
    rack.host("a").hang();
    const { resourceVersion } = (await readNode())?.metadata ?? assert.fail();
    await createPod();
    await clock.advance(120_000);
    assert.equal((await readLease())?.spec.renewTime, second?.spec.renewTime);
    assert.equal((await readNode())?.metadata.resourceVersion, resourceVersion);
    assert.notEqual((await readPod())?.status?.phase, "Running");
  });

  it("a simulated kubelet writes on while its host powers off, until that is truly off", async () => {
    const { clock, rack } = setUp();
    await createPod();
    await clock.advance(3_000);
    assert.equal(rack.host("a").workloads.size, 1);
    rack.host("a").order("ForceOff");
    await clock.advance(1_999);
    assert.equal(rack.host("a").workloads.size, 1);
    await clock.advance(1);
    const lease = await readLease();
    await clock.advance(60_000);
    assert.deepEqual(await readLease(), lease);
  });

  it("a simulated kubelet continues after the API server could not be reached", async () => {
    const { clock, api } = setUp();
    await clock.advance(1_000);
    const before = await readLease();
    api.faults.inject({ match: {}, times: 1_000, action: { kind: "status", status: 503 } });
    await clock.advance(30_000);
    api.faults.clear();
    await clock.advance(60_000);
    assert.notEqual((await readLease())?.spec.renewTime, before?.spec.renewTime);
  });

  it("a simulated kubelet registers again only at its next boot when its node is deleted", async () => {
    const { clock, rack, client } = setUp();
    await clock.advance(1_000);
    const before = await readNode();
    assert.ok(before);
    await client.delete(NODES, { name: "a" }, { guard: { uid: before.metadata.uid } }, SIGNAL);
    await clock.advance(60_000);
    assert.equal(await readNode(), undefined);
    rack.host("a").hang();
    rack.host("a").resume();
    await clock.advance(60_000);
    assert.equal(await readNode(), undefined);
    rack.host("a").order("PowerCycle");
    await clock.advance(20_000);
    const after = await readNode();
    assert.notEqual(after?.metadata.uid, before.metadata.uid);
    assert.equal(after?.metadata.labels?.["zone"], "z1");
    assert.equal(ready(after), "True");
    assert.ok(await readLease());
  });

  it("a simulated kubelet makes its node Ready again after a user has marked it Unknown", async () => {
    const { clock, client } = setUp();
    await clock.advance(1_000);
    const { uid, resourceVersion } = (await readNode())?.metadata ?? assert.fail();
    const status = {
      conditions: [
        { type: "Ready", status: "Unknown" },
        { type: "Custom", status: "True" },
      ],
    };
    const options = { subresource: "status" };
    await client.mergePatch(NODES, { name: "a" }, { uid, resourceVersion }, { status }, options, SIGNAL);
    await clock.advance(10_000);
    const node = await readNode();
    assert.equal(ready(node), "True");
    assert.ok(node?.status.conditions?.some(({ type }) => type === "Custom"));
  });

  it("a simulated kubelet starts pods, says which volumes are in use, and ends terminating pods", async () => {
    const { clock, rack, client } = setUp();
    await createPod();
    await client.create<VolumeAttachment>(
      VOLUME_ATTACHMENTS,
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "VolumeAttachment",
        metadata: { name: "va" },
        spec: { nodeName: "a", attacher: "csi.example.com", source: { persistentVolumeName: "pv-1" } },
        status: { attached: true },
      },
      {},
      SIGNAL,
    );
    await clock.advance(1_000);
    const pod = await readPod();
    assert.equal(pod?.status?.phase, "Running");
    assert.ok(pod.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True"));
    assert.deepEqual([...rack.host("a").workloads.values()], [{ pod: "default/db", claims: ["default/data"] }]);
    await client.delete(PODS, { namespace: "default", name: "db" }, { guard: { uid: pod.metadata.uid } }, SIGNAL);
    await clock.advance(2_000);
    assert.equal(await readPod(), undefined);
    assert.equal(rack.host("a").workloads.size, 0);
  });

  it("a simulated kubelet kills a pod whose object is gone, unless it is frozen", async () => {
    const { clock, rack, client } = setUp();
    await createPod();
    await clock.advance(2_000);
    rack.host("a").hang();
    const pod = await readPod();
    const options = { guard: { uid: pod?.metadata.uid ?? "" }, gracePeriodSeconds: 0 };
    await client.delete(PODS, { namespace: "default", name: "db" }, options, SIGNAL);
    await clock.advance(10_000);
    assert.equal(rack.host("a").workloads.size, 1);
    rack.host("a").resume();
    await clock.advance(2_000);
    assert.equal(rack.host("a").workloads.size, 0);
  });

  it("a simulated kubelet rejects after a boot what does not tolerate a NoExecute taint, and takes what does", async () => {
    const { clock, rack } = setUp();
    await createPod();
    await clock.advance(2_000);
    await setTaints([OUT_OF_SERVICE]);
    rack.host("a").order("PowerCycle");
    await clock.advance(20_000);
    assert.equal((await readPod())?.status?.phase, "Failed");
    assert.equal(rack.host("a").workloads.size, 0);
  });

  it("a simulated kubelet takes a pod that tolerates the NoExecute taint", async () => {
    const { clock, rack } = setUp();
    await clock.advance(1_000);
    await setTaints([OUT_OF_SERVICE]);
    await createPod({ tolerations: [{ key: OUT_OF_SERVICE.key, operator: "Exists" }] });
    await clock.advance(2_000);
    assert.equal((await readPod())?.status?.phase, "Running");
    assert.equal(rack.host("a").workloads.size, 1);
  });
});
