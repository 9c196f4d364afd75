import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { createApiServer } from "../../../../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../../../../hack/kube-mock/api-server.ts";
import { PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS } from "../../../../../src/api/kubernetes/core-types.ts";
import type { Pod } from "../../../../../src/api/kubernetes/core.ts";
import { WORKLOAD_BUDGET } from "../../../../../src/clusters/link.ts";
import { createKubeClient } from "../../../../../src/kube/api-client/api-client.ts";
import type { KubeClient } from "../../../../../src/kube/client.ts";
import { isKubeError } from "../../../../../src/kube/errors.ts";
import type { KubeTransport } from "../../../../../src/kube/transport.ts";
import { countBound, releasePods } from "../../../../../src/remediator/effects/objects/release-pods.ts";
import { seededRandom } from "../../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../../lib/virtual-clock.ts";

const NODE = "n1";
const TOLERATES_ALL = [{ operator: "Exists" }];
const never = new AbortController().signal;

let clock: VirtualClock;
let server: ApiServer;
let client: KubeClient;

beforeEach(() => {
  clock = new VirtualClock();
  server = createApiServer({ clock, random: seededRandom(1) });
  client = createKubeClient({ transport: server.transport({ client: "agent" }), clock, random: seededRandom(2) });
});

/** A pod on the node unless `spec` names another one, with the claim `claim-NAME`. */
function createPod(name: string, spec: object = {}): void {
  server.collection(PODS).create({
    metadata: { namespace: "default", name },
    spec: {
      nodeName: NODE,
      containers: [{ name: "c", image: "i" }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: `claim-${name}` } }],
      ...spec,
    },
  });
}

/** Creates a volume that is bound to a claim and attached to a node. */
function attach(name: string, claim: string, nodeName = NODE): void {
  server.collection(PERSISTENT_VOLUMES).create({
    metadata: { name },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      csi: { driver: "csi.example", volumeHandle: name },
      claimRef: { namespace: "default", name: claim },
    },
  });
  server.collection(VOLUME_ATTACHMENTS).create({
    metadata: { name: `attach-${name}` },
    spec: { attacher: "csi.example", nodeName, source: { persistentVolumeName: name } },
  });
}

const podNames = (): string[] => [...server.collection<Pod>(PODS).values()].map(({ metadata }) => metadata.name);

describe("what still binds a node", () => {
  it("a node is bound by its pods, and by its volumes once no pod binds it", async () => {
    createPod("db");
    attach("v1", "claim-db");
    attach("v2", "claim-other", "n2");
    assert.deepEqual(await countBound(client, NODE, never), { pods: 1, attachments: 0 });
    await releasePods({ client, clock }, NODE, 5_000, never);
    assert.deepEqual(podNames(), []);
    assert.deepEqual(await countBound(client, NODE, never), { pods: 0, attachments: 1 });
    server.collection(VOLUME_ATTACHMENTS).delete({ name: "attach-v1" });
    assert.deepEqual(await countBound(client, NODE, never), { pods: 0, attachments: 0 });
  });

  it("a node is bound by a volume that was attached while another node listed the volumes", async () => {
    for (let index = 0; index < 300; index += 1) attach(`v${index}`, `claim-${index}`, "n2");
    server.faults.inject({
      match: { resource: "volumeattachments" },
      times: 2,
      action: { kind: "delay", delayMs: 100 },
    });
    const listing = countBound(client, "n2", never);
    await clock.advance(150);
    attach("new", "claim-db");
    const bound = countBound(client, NODE, never);
    await clock.advance(100);
    assert.deepEqual((await listing).attachments, 300);
    assert.deepEqual(await bound, { pods: 0, attachments: 1 });
  });

  it("a node is bound by volumes that are listed once for all nodes that ask at the same time, in large pages", async () => {
    for (let index = 0; index < 300; index += 1) attach(`v${index}`, `claim-${index}`, `node-${index % 15}`);
    let pages = 0;
    server.onRequest(({ path }) => {
      if (path.includes("volumeattachments")) pages += 1;
    });
    const bounded = createKubeClient({
      transport: server.transport({ client: "agent" }),
      clock,
      random: seededRandom(2),
      budget: WORKLOAD_BUDGET,
    });
    const names = Array.from({ length: 15 }, (_, index) => `node-${index}`);
    const bound = await Promise.all(names.map((name) => countBound(bounded, name, never)));
    assert.deepEqual(
      bound.map(({ attachments }) => attachments),
      names.map(() => 20),
    );
    assert.equal(pages, 2);
  });

  it("a node is not bound by the volume of a pod that stays, but by any other one, also by an unknown one", async () => {
    createPod("agent", { tolerations: TOLERATES_ALL });
    attach("v1", "claim-agent");
    assert.deepEqual(await countBound(client, NODE, never), { pods: 0, attachments: 0 });
    attach("v2", "claim-db");
    server.collection(VOLUME_ATTACHMENTS).create({
      metadata: { name: "attach-gone" },
      spec: { attacher: "csi.example", nodeName: NODE, source: { persistentVolumeName: "gone" } },
    });
    assert.deepEqual(await countBound(client, NODE, never), { pods: 0, attachments: 2 });
  });

  it("a read of what still binds a node throws if the server does not answer", async () => {
    createPod("agent", { tolerations: TOLERATES_ALL });
    attach("v1", "claim-agent");
    const match = { pathPrefix: "/api/v1/persistentvolumes" };
    server.faults.inject({ match, times: 1, action: { kind: "status", status: 403 } });
    await assert.rejects(countBound(client, NODE, never), (error) => isKubeError(error, "Forbidden"));
  });
});

describe("releasing pods", () => {
  it("the release deletes the pods of this node that must leave and no others", async () => {
    createPod("db");
    createPod("agent", { tolerations: TOLERATES_ALL });
    createPod("elsewhere", { nodeName: "n2" });
    await releasePods({ client, clock }, NODE, 5_000, never);
    assert.deepEqual(podNames().sort(), ["agent", "elsewhere"]);
  });

  it("releasing pods deletes no pod again that is already deleted without grace and held by another client's finalizer", async () => {
    createPod("held");
    const key = { namespace: "default", name: "held" };
    server.collection(PODS).mergePatch(key, { metadata: { finalizers: ["example.com/held"] } });
    await releasePods({ client, clock }, NODE, 5_000, never);
    assert.equal(server.collection(PODS).get(key)?.metadata.deletionGracePeriodSeconds, 0);
    const asked: string[] = [];
    server.onRequest(({ method }) => asked.push(method));
    await releasePods({ client, clock }, NODE, 5_000, never);
    assert.deepEqual(asked, ["GET"]);
  });

  it("releasing pods goes on with the others if one is gone or has changed meanwhile", async () => {
    for (const name of ["a", "b", "c"]) createPod(name);
    const status = "/api/v1/namespaces/default/pods/a/status";
    server.faults.inject({ match: { pathPrefix: status }, times: 1, action: { kind: "status", status: 409 } });
    const pod = "/api/v1/namespaces/default/pods/b";
    server.faults.inject({
      match: { method: "DELETE", pathPrefix: pod },
      times: 1,
      action: { kind: "status", status: 404 },
    });
    await releasePods({ client, clock }, NODE, 5_000, never);
    assert.deepEqual(podNames().sort(), ["a", "b"]);
    assert.equal((await countBound(client, NODE, never)).pods, 2, "and the count shows that they are left");
  });

  it("releasing pods stops at its time, since by then the host must be proven off again", async () => {
    createPod("db");
    server.faults.inject({ match: { method: "PATCH" }, times: 1, action: { kind: "hang" } });
    const released = releasePods({ client, clock }, NODE, 5_000, never);
    await clock.advance(5_000);
    await released;
    assert.deepEqual(podNames(), ["db"]);
  });

  it("releasing pods touches nothing more after its time, though what it waited for comes late", async () => {
    createPod("db");
    server.faults.inject({ match: { method: "PATCH" }, times: 1, action: { kind: "delay", delayMs: 6_000 } });
    const released = releasePods({ client, clock }, NODE, 5_000, never);
    await clock.advance(5_000);
    await released;
    await clock.advance(5_000);
    assert.deepEqual(podNames(), ["db"]);
  });

  it("releasing pods leaves no pod half deleted: the deletion of a pod that has failed is waited for, though the host is on", async () => {
    createPod("db");
    const match = { method: "DELETE" };
    server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 1_500 } });
    const stop = new AbortController();
    const released = releasePods({ client, clock }, NODE, 1_000, stop.signal);
    const rejected = assert.rejects(released, /the host is on/);
    await clock.advance(500);
    stop.abort(new Error("the host is on"));
    await clock.advance(1_000);
    await rejected;
    assert.deepEqual(podNames(), []);
  });

  it("releasing pods gives a deletion up that has no answer within 2 s, and begins no other one after its time", async () => {
    for (let index = 0; index < 40; index += 1) createPod(`p${index}`);
    server.faults.inject({ match: { method: "DELETE" }, times: Infinity, action: { kind: "hang" } });
    let isOver = false;
    const release = async (): Promise<void> => {
      await releasePods({ client, clock }, NODE, 1_000, never);
      isOver = true;
    };
    const released = release();
    await clock.advance(1_999);
    assert.equal(isOver, false);
    await clock.advance(1);
    await released;
    const failed = [...server.collection<Pod>(PODS).values()].filter(({ status }) => status?.phase === "Failed");
    assert.equal(failed.length, 16);
  });

  it("releasing pods ends no other pod any more once it has failed with one", async () => {
    for (let index = 0; index < 40; index += 1) createPod(`p${index}`);
    const match = { method: "PATCH" };
    server.faults.inject({ match, times: 1, action: { kind: "status", status: 403 } });
    server.faults.inject({ match, times: Infinity, action: { kind: "delay", delayMs: 100 } });
    const released = releasePods({ client, clock }, NODE, 5_000, never);
    const rejected = assert.rejects(released, (error) => isKubeError(error, "Forbidden"));
    await clock.advance(100);
    await rejected;
    const left = podNames();
    await clock.advance(5_000);
    assert.deepEqual(podNames(), left);
    assert.equal(left.length, 25);
  });

  it("releasing pods of several nodes at once has no more than 16 pods of their cluster under way, and completes each", async () => {
    const names = Array.from({ length: 25 }, (_, index) => `node-${index}`);
    for (const nodeName of names) for (const pod of ["a", "b"]) createPod(`${nodeName}-${pod}`, { nodeName });
    let underWay = 0;
    let most = 0;
    server.onRequest(({ method }) => {
      if (method === "PATCH") underWay += 1;
      if (method === "DELETE") underWay -= 1;
      most = Math.max(most, underWay);
    });
    const releases = Promise.all(names.map((nodeName) => releasePods({ client, clock }, nodeName, 5_000, never)));
    await clock.advance(1_000);
    await releases;
    assert.deepEqual([most, podNames()], [16, []]);
  });

  it("releasing pods and counting what is left uses other connections than the live reads before a power order", async () => {
    const lanes = new Set<string>();
    const inner = server.transport({ client: "agent" });
    const transport: KubeTransport = {
      ...inner,
      send: (request, signal) => {
        lanes.add(request.lane);
        return inner.send(request, signal);
      },
    };
    const observed = createKubeClient({ transport, clock, random: seededRandom(2) });
    createPod("db");
    await releasePods({ client: observed, clock }, NODE, 5_000, never);
    await countBound(observed, NODE, never);
    assert.deepEqual([...lanes, podNames()], ["bulk", []]);
  });

  it("releasing pods ends no pod that it could begin with only after its time", async () => {
    for (let index = 0; index < 16; index += 1) createPod(`slow-${index}`, { nodeName: "n2" });
    for (const name of ["a", "b"]) createPod(name);
    server.faults.inject({ match: { method: "PATCH" }, times: 16, action: { kind: "delay", delayMs: 3_000 } });
    const slow = releasePods({ client, clock }, "n2", 5_000, never);
    await clock.advance(0);
    const late = releasePods({ client, clock }, NODE, 2_000, never);
    await clock.advance(2_000);
    await late;
    await clock.advance(1_000);
    await slow;
    assert.deepEqual(podNames(), ["a", "b"]);
  });

  it("releasing pods does not make a pod have failed that has finished meanwhile", async () => {
    createPod("job");
    server.faults.inject({ match: { method: "PATCH" }, times: 1, action: { kind: "delay", delayMs: 1_000 } });
    const released = releasePods({ client, clock }, NODE, 5_000, never);
    await clock.advance(500);
    const key = { namespace: "default", name: "job" };
    server.collection<Pod>(PODS).mergePatch(key, { status: { phase: "Succeeded" } }, "status");
    await clock.advance(1_000);
    await released;
    assert.equal(server.collection<Pod>(PODS).get(key)?.status?.phase, "Succeeded");
  });

  it("releasing pods passes on what it may not do", async () => {
    createPod("db");
    server.faults.inject({ match: { method: "DELETE" }, times: 1, action: { kind: "status", status: 403 } });
    await assert.rejects(releasePods({ client, clock }, NODE, 5_000, never), (error) =>
      isKubeError(error, "Forbidden"),
    );
  });
});
