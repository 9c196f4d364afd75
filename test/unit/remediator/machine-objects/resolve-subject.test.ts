import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createApiServer } from "../../../../hack/kube-mock/api-server.ts";
import { readForeignCrds } from "../../../../hack/lib/crds.ts";
import type { Metal3Machine } from "../../../../src/api/metal3/metal3.ts";
import { readBareMetalHost, readMetal3Machine } from "../../../../src/api/metal3/metal3.ts";
import { createKubeRuntime } from "../../../../src/kube/connection/create-runtime.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import type { KubeRuntime } from "../../../../src/kube/runtime.ts";
import type { ObjectMeta, OwnerReference, ResourceType } from "../../../../src/kube/resource.ts";
import { readOwnerMachine } from "../../../../src/remediator/machine-objects/read-machine.ts";
import type { Subject } from "../../../../src/nodes/subject.ts";
import { localNode } from "../../../../src/nodes/subject.ts";
import { disputeWithConsumer } from "../../../../src/remediator/hosts/bare-metal-host/lookup/consumer-node.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import type { MachineReading } from "../../../../src/remediator/machine/model/facts/observations.ts";

const SIGNAL = new AbortController().signal;
const MACHINES: ResourceType = {
  group: "cluster.x-k8s.io",
  version: "v1beta1",
  kind: "Machine",
  plural: "machines",
  namespaced: true,
};

/** A management cluster with Machine m1, which is node n1 of cluster w1. */
async function world(
  versions?: readonly string[],
): Promise<{ runtime: KubeRuntime; uid: string; deleting: () => void }> {
  const [clock, random] = [new VirtualClock(), seededRandom(1)];
  const server = createApiServer({ clock, random });
  for (const text of await readForeignCrds(versions)) server.load(text);
  const namespaces = { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false };
  server.collection(namespaces).create({ metadata: { name: "caps" } });
  const type = { ...MACHINES, version: versions?.at(-1) ?? "v1beta1" };
  const machines = server.collection(type);
  const group = type.version === "v1beta1" ? { apiVersion: "i/v1" } : { apiGroup: "i" };
  const made = machines.create({
    metadata: { namespace: "caps", name: "m1", finalizers: ["cluster.x-k8s.io/machine"] },
    spec: {
      clusterName: "w1",
      bootstrap: { dataSecretName: "none" },
      infrastructureRef: { ...group, kind: "Metal3Machine", name: "m1" },
    },
  });
  const key = { namespace: "caps", name: "m1" };
  machines.mergePatch(key, { status: { nodeRef: { name: "n1" } } }, "status");
  const runtime = createKubeRuntime({
    transport: server.transport({ client: "agent" }),
    clock,
    random,
    logger: createLogger("silent"),
    controllerName: "ironfence.io/agent",
    instance: "test",
  });
  return { runtime, uid: made.metadata.uid, deleting: () => machines.delete(key) };
}

function read(runtime: Pick<KubeRuntime, "client">, ...owners: Partial<OwnerReference>[]): Promise<MachineReading> {
  const whole = owners.map((owner) => ({
    apiVersion: "cluster.x-k8s.io/v1beta1",
    kind: "Machine",
    name: "m1",
    uid: "?",
    ...owner,
  }));
  const metadata: ObjectMeta = {
    namespace: "caps",
    name: "m1",
    uid: "uid",
    resourceVersion: "1",
    ownerReferences: whole,
  };
  return readOwnerMachine(runtime, metadata, SIGNAL);
}

const reasonOf = (observations: MachineReading): string => (observations.found ? "found" : observations.reason);

describe("the Machine that owns a remediation", () => {
  for (const versions of [undefined, ["v1beta1"], ["v1beta2"]] as const) {
    it(`the Machine that owns a remediation reports node and cluster, served as ${versions?.join() ?? "both versions"}, whichever one the reference names`, async () => {
      const { runtime, uid } = await world(versions);
      for (const version of ["v1beta1", "v1beta2"]) {
        const observations = await read(runtime, { uid, apiVersion: `cluster.x-k8s.io/${version}` });
        assert.ok(observations.found);
        assert.deepEqual([observations.machine.nodeName, observations.machine.clusterName], ["n1", "w1"]);
      }
    });
  }

  it("the Machine that owns a remediation is not another one that has its name now", async () => {
    const { runtime } = await world();
    assert.equal(reasonOf(await read(runtime, { uid: "of-the-one-before" })), "MachineNotFound");
  });

  it("the Machine that owns a remediation is gone once it is being deleted", async () => {
    const { runtime, uid, deleting } = await world();
    assert.equal(reasonOf(await read(runtime, { uid, name: "m2" })), "MachineNotFound");
    deleting();
    assert.equal(reasonOf(await read(runtime, { uid })), "MachineNotFound");
  });

  it("the Machine that owns a remediation is the only one", async () => {
    const { runtime, uid } = await world();
    assert.equal(reasonOf(await read(runtime, { uid }, { uid: "another", name: "m2" })), "SubjectMismatch");
  });

  it("the Machine that owns a remediation is waited for if it may not be read, or if its kind is not served", async () => {
    const { runtime, uid } = await world(["v1beta1"]);
    const client: KubeRuntime["client"] = {
      ...runtime.client,
      get: () => Promise.reject(new KubeError("Forbidden", "get machines: forbidden")),
    };
    assert.equal(reasonOf(await read({ client }, { uid })), "MachineUnreadable");
    const none = { ...runtime.client, discover: () => Promise.resolve(undefined) };
    assert.equal(reasonOf(await read({ client: none }, { uid })), "MachineUnreadable");
  });
});

describe("a node that leads by itself to a host that a Machine has taken", () => {
  const taker = (uid: string): Metal3Machine =>
    readMetal3Machine({
      apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1",
      kind: "Metal3Machine",
      metadata: {
        namespace: "caps",
        name: "m1",
        uid: "m3-uid",
        resourceVersion: "1",
        ownerReferences: [{ apiVersion: "cluster.x-k8s.io/v1beta1", kind: "Machine", name: "m1", uid }],
      },
    });
  const host = readBareMetalHost({
    apiVersion: "metal3.io/v1alpha1",
    kind: "BareMetalHost",
    metadata: { namespace: "caps", name: "h1", uid: "h-uid", resourceVersion: "1" },
  });
  const dispute = (runtime: KubeRuntime, uid: string, subject: Subject): Promise<string | undefined> =>
    disputeWithConsumer(runtime, host, taker(uid), subject, SIGNAL);

  it("a node that leads to a host that a Machine has taken must be the node of that Machine", async () => {
    const { runtime, uid } = await world();
    assert.equal(await dispute(runtime, uid, localNode("n1")), undefined);
    assert.match(
      (await dispute(runtime, uid, localNode("n9"))) ?? "",
      /^node n9 refers to BareMetalHost caps\/h1, but Machine caps\/m1, .* is node n1/,
    );
  });

  it("a node that leads by itself to a host that a Machine has taken is not believed if the Machine is gone", async () => {
    const { runtime } = await world();
    assert.match((await dispute(runtime, "of-the-one-before", localNode("n1"))) ?? "", /cannot determine which node/);
  });

  it("a node is not compared with the Machine of a host if the Machine led to the host, or if no Machine has taken it", async () => {
    const { runtime, uid } = await world();
    const machine = { apiVersion: "cluster.x-k8s.io/v1beta1", kind: "Machine", namespace: "caps", name: "m1", uid };
    assert.equal(await dispute(runtime, uid, { ...localNode("n9"), machine }), undefined);
    assert.equal(await disputeWithConsumer(runtime, host, undefined, localNode("n9"), SIGNAL), undefined);
  });
});
