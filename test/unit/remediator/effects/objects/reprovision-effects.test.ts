import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createApiServer } from "../../../../../hack/kube-mock/api-server.ts";
import type { ApiServer, RequestRecord } from "../../../../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../../../../hack/kube-mock/controllers/cluster-types.ts";
import { readCrds, readForeignCrds } from "../../../../../hack/lib/crds.ts";
import { PROVISIONED_STATUS } from "../../../../../hack/rack/bare-metal-host-status.ts";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../../../src/api/kubernetes/core.ts";
import type { Watched } from "../../../../../src/kube/watched.ts";
import { createKubeRuntime } from "../../../../../src/kube/connection/create-runtime.ts";
import type { KubeObject, OwnerReference, ResourceType } from "../../../../../src/kube/resource.ts";
import type { EffectContext } from "../../../../../src/remediator/effects/context/effect-context.ts";
import type { ReprovisionEffect } from "../../../../../src/remediator/effects/objects/reprovision.ts";
import { runReprovisionEffect } from "../../../../../src/remediator/effects/objects/reprovision.ts";
import { NodeClusters } from "../../../../../src/remediator/clusters/node-clusters.ts";
import { RemediationSession } from "../../../../../src/remediator/controller/session/session.ts";
import type { Observations } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { beyondRights, readRules } from "../../../../lib/rights.ts";
import { seededRandom } from "../../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../../lib/virtual-clock.ts";
import { NO_WORKLOAD_CLUSTERS } from "../../../../lib/workload-clusters.ts";

// Live reads and changes of Machines, their owners and their hosts, on an in-memory API server.

const SIGNAL = new AbortController().signal;
const RIGHTS = readRules("deploy/families/reprovision/role-reprovision.yaml");
const NAMESPACE = "metal3";
const INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io";

function kind(group: string, version: string, name: string): ResourceType {
  return { group, version, kind: name, plural: `${name.toLowerCase()}s`, namespaced: true };
}

const MACHINES = kind("cluster.x-k8s.io", "v1beta2", "Machine");
const MACHINE_SETS = kind("cluster.x-k8s.io", "v1beta2", "MachineSet");
const METAL3_MACHINES = kind(INFRASTRUCTURE, "v1beta2", "Metal3Machine");
const HOSTS = kind("metal3.io", "v1alpha1", "BareMetalHost");

class World {
  readonly clock = new VirtualClock(Date.UTC(2026, 0, 1));
  readonly server: ApiServer = createApiServer({ clock: this.clock, random: seededRandom(1) });
  session: RemediationSession | undefined;
  /** The remediation whose effects are run. It has begun. */
  readonly remediation: BareMetalRemediation;

  private constructor(crds: readonly string[]) {
    for (const text of crds) this.server.load(text);
    this.server.onRequest((record) => void this.records.push(record));
    this.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    this.remediation = this.server
      .collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS)
      .create({ metadata: { namespace: NAMESPACE, name: "r", finalizers: ["ironfence.io/remediation"] }, spec: {} });
  }

  static async create(): Promise<World> {
    const ours = (await readCrds()).filter((text) => text.includes("kind: BareMetalRemediation\n"));
    const theirs = (await readForeignCrds()).filter((text) => !text.includes("openshift.io"));
    return new World([...ours, ...theirs]);
  }

  make(
    type: ResourceType,
    name: string,
    fields: Record<string, unknown>,
    metadata: Record<string, unknown> = {},
  ): KubeObject {
    return this.server.collection(type).create({ metadata: { namespace: NAMESPACE, name, ...metadata }, ...fields });
  }

  get(
    type: ResourceType,
    name: string,
  ): (KubeObject & { spec?: Record<string, unknown>; status?: Record<string, unknown> }) | undefined {
    return this.server.collection(type).get({ namespace: NAMESPACE, name });
  }

  machineSet(spec: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}): OwnerReference {
    const made = this.make(
      MACHINE_SETS,
      "set",
      { spec: { clusterName: "c", replicas: 2, selector: {}, template: {}, ...spec } },
      metadata,
    );
    return { apiVersion: made.apiVersion, kind: "MachineSet", name: "set", uid: made.metadata.uid, controller: true };
  }

  machine(
    name: string,
    owner: OwnerReference | undefined,
    metadata: Record<string, unknown> = {},
    nodeName?: string,
  ): KubeObject {
    const made = this.make(
      MACHINES,
      name,
      {
        spec: {
          clusterName: "c",
          bootstrap: { dataSecretName: "b" },
          infrastructureRef: { apiGroup: INFRASTRUCTURE, kind: "Metal3Machine", name },
        },
      },
      { ...(owner !== undefined && { ownerReferences: [owner] }), ...metadata },
    );
    if (nodeName !== undefined) {
      const status = { nodeRef: { name: nodeName } };
      this.server.collection(MACHINES).mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
    }
    return made;
  }

  host(spec: Record<string, unknown>, state = "provisioned", metadata: Record<string, unknown> = {}): KubeObject {
    const bound = { "metal3.io/BareMetalHost": `${NAMESPACE}/host` };
    this.make(METAL3_MACHINES, "m", { spec: {} }, { annotations: bound });
    const made = this.make(HOSTS, "host", { spec: { online: true, ...spec } }, metadata);
    this.provisioning(state);
    return made;
  }

  provisioning(state: string): void {
    const status = { ...PROVISIONED_STATUS, provisioning: { ID: "1", state } };
    this.server.collection(HOSTS).mergePatch({ namespace: NAMESPACE, name: "host" }, { status }, "status");
  }

  node(name: string, ready: "True" | "False"): KubeObject {
    const made = this.server.collection(NODES).create({ metadata: { name }, spec: {} });
    const status = { conditions: [{ type: "Ready", status: ready }] };
    this.server.collection(NODES).mergePatch({ name }, { status }, "status");
    return made;
  }

  /** The requests to the API server. */
  readonly records: RequestRecord[] = [];

  /** Runs one effect of a remediation with this status, and returns the observations. */
  async run(effect: ReprovisionEffect, status: BareMetalRemediationStatus): Promise<Observations> {
    const runtime = createKubeRuntime({
      transport: this.server.transport({ client: "agent" }),
      clock: this.clock,
      random: seededRandom(2),
      logger: createLogger("silent"),
      controllerName: "ironfence.io/agent",
      instance: "test",
    });
    const nodes = { subscribe: () => () => undefined } as unknown as Watched<Node>;
    const clusters = new NodeClusters({ runtime, nodes, clusters: NO_WORKLOAD_CLUSTERS });
    const session = new RemediationSession({ runtime, clusters }, { ...this.remediation, status }, () => undefined);
    this.session = session;
    const context: EffectContext = {
      runtime,
      nodeRuntime: runtime,
      session,
      host: undefined,
      node: undefined,
      siblings: [],
      admissions: {
        ask: () => undefined,
        withdraw: () => undefined,
        askToReplace: () => ({ granted: false, by: "ns/other" }),
      },
      handOver: () => undefined,
      etcdNodes: () => [],
      hasExternalEtcd: false,
      identifyOwnCluster: () => Promise.resolve(),
      orderFacts: () => ({
        isSameHost: true,
        watchedHold: undefined,
        readHold: { found: undefined, failed: false, atMs: 0 },
      }),
      readStopSwitch: () => Promise.resolve(undefined),
    };
    await runReprovisionEffect(context, effect, SIGNAL);
    const ofNodes = this.records.filter(({ path }) => !path.includes("/nodes/"));
    assert.deepEqual(beyondRights(ofNodes, RIGHTS), [], "the shipped permissions are enough");
    return session.observations;
  }
}

function refOf({ apiVersion, kind, metadata }: KubeObject): NonNullable<BareMetalRemediationStatus["machine"]> {
  return { apiVersion, kind, namespace: NAMESPACE, name: metadata.name, uid: metadata.uid };
}

function targetOf({ metadata }: KubeObject): NonNullable<BareMetalRemediationStatus["target"]> {
  return { kind: "BareMetalHost", namespace: NAMESPACE, name: metadata.name, uid: metadata.uid };
}

describe("a read of a Machine", () => {
  async function look(
    world: World,
    owner: OwnerReference | undefined,
    metadata: Record<string, unknown> = {},
  ): Promise<NonNullable<Observations["machine"]>> {
    const { machine } = await world.run(
      { do: "examineMachine" },
      { machine: refOf(world.machine("m", owner, metadata)) },
    );
    assert.ok(machine);
    return machine;
  }

  it("a read of a Machine reports its MachineSet, which replaces the Machine", async () => {
    const world = await World.create();
    const owner = world.machineSet();
    const found = await look(world, owner);
    assert.equal(found.state, "Present");
    assert.equal(found.owner?.uid, owner.uid);
    assert.deepEqual([found.isReplaced, found.isControlPlane, found.externallyProvisioned], [true, false, false]);
  });

  for (const [why, spec, metadata] of [
    ["has no replicas", { replicas: 0 }, {}],
    ["is paused", {}, { annotations: { "cluster.x-k8s.io/paused": "" } }],
    ["is being deleted", {}, { finalizers: ["test/held"] }],
  ] as const) {
    it(`a read of a Machine reports that no controller replaces it if its MachineSet ${why}`, async () => {
      const world = await World.create();
      const owner = world.machineSet(spec, metadata);
      if (why === "is being deleted")
        world.server.collection(MACHINE_SETS).delete({ namespace: NAMESPACE, name: "set" });
      assert.equal((await look(world, owner)).isReplaced, false);
    });
  }

  it("a read of a Machine finds its MachineSet by a reference of a version that is no longer served", async () => {
    const world = await World.create();
    const owner = { ...world.machineSet(), apiVersion: "cluster.x-k8s.io/v1alpha4" };
    assert.equal((await look(world, owner)).isReplaced, true);
  });

  it("a read of a Machine does not take a MachineSet that was created again under the same name for the owner", async () => {
    const world = await World.create();
    const owner = world.machineSet();
    assert.equal((await look(world, { ...owner, uid: "an-older-one" })).isReplaced, false);
  });

  it("a read of a Machine does not take another kind of owner for one that replaces Machines", async () => {
    const world = await World.create();
    const owner = {
      ...world.machineSet(),
      kind: "KubeadmControlPlane",
      apiVersion: "controlplane.cluster.x-k8s.io/v1beta2",
    };
    const found = await look(world, owner);
    assert.equal(found.isReplaced, false);
    assert.equal(found.owner?.kind, "KubeadmControlPlane");
  });

  it("a read of a Machine reports that it is of the control plane", async () => {
    const world = await World.create();
    const labels = { "cluster.x-k8s.io/control-plane": "" };
    assert.equal((await look(world, world.machineSet(), { labels })).isControlPlane, true);
  });

  it("a read of a Machine reports that its host is externally provisioned", async () => {
    const world = await World.create();
    world.host({ externallyProvisioned: true });
    assert.equal((await look(world, world.machineSet())).externallyProvisioned, true);
  });

  it("a read of a Machine reports that the host that is fenced is externally provisioned, by whatever way it was found", async () => {
    const world = await World.create();
    const target = targetOf(world.make(HOSTS, "fenced", { spec: { online: true, externallyProvisioned: true } }));
    const machine = refOf(world.machine("m", world.machineSet()));
    assert.equal((await world.run({ do: "examineMachine" }, { machine, target })).machine?.externallyProvisioned, true);
  });

  it("a read of a Machine treats another Machine with its name as missing", async () => {
    const world = await World.create();
    const machine = { ...refOf(world.machine("m", undefined)), uid: "an-older-one" };
    assert.equal((await world.run({ do: "examineMachine" }, { machine })).machine?.state, "Gone");
  });
});

describe("the deletion of a Machine", () => {
  it("the deletion of a Machine deletes it, and has it read again", async () => {
    const world = await World.create();
    const machine = refOf(world.machine("m", world.machineSet(), { finalizers: ["machine.cluster.x-k8s.io"] }));
    const observations = await world.run({ do: "deleteMachine" }, { machine });
    assert.equal(observations.machine, undefined);
    const { machine: after } = await world.run({ do: "examineMachine" }, { machine });
    assert.equal(after?.state, "Deleting");
    assert.equal(after?.deletedAt, "2026-01-01T00:00:00Z");
  });

  it("the deletion of a Machine deletes no other one of its name", async () => {
    const world = await World.create();
    const machine = refOf(world.machine("m", undefined));
    const older = { machine: { ...machine, uid: "an-older-one" } };
    await assert.rejects(world.run({ do: "deleteMachine" }, older), { code: "Conflict" });
    assert.notEqual(world.get(MACHINES, "m"), undefined);
  });
});

describe("a Machine that is left to its owner", () => {
  it("a Machine that is left to its owner says so in both forms of conditions", async () => {
    const world = await World.create();
    const machine = refOf(world.machine("m", world.machineSet()));
    const old = [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }];
    world.server
      .collection(MACHINES)
      .mergePatch(
        { namespace: NAMESPACE, name: "m" },
        { status: { deprecated: { v1beta1: { conditions: old } } } },
        "status",
      );
    const observations = await world.run({ do: "handToOwner", message: "it runs the control plane" }, { machine });
    assert.equal(observations.handedToOwner, true);
    const status = JSON.stringify(world.get(MACHINES, "m")?.status);
    assert.equal(status.match(/"OwnerRemediated"/gu)?.length, 2, status);
    assert.match(status, /it runs the control plane/u);
  });
});

describe("a search for a replacement", () => {
  const since = "2026-01-01T00:00:00Z";

  async function look(
    world: World,
    owner: OwnerReference,
    more: BareMetalRemediationStatus = {},
  ): Promise<NonNullable<Observations["replacement"]>> {
    const { apiVersion, kind, name, uid } = owner;
    const machine = {
      apiVersion: "cluster.x-k8s.io/v1beta2",
      kind: "Machine",
      namespace: NAMESPACE,
      name: "m",
      uid: "old",
    };
    const status = { machine, replacement: { owner: { apiVersion, kind, name, uid }, deletedAt: since }, ...more };
    const { replacement } = await world.run({ do: "checkReplacement" }, status);
    assert.ok(replacement);
    return replacement;
  }

  it("a search for a replacement finds the Ready node of a Machine that the same owner has made since", async () => {
    const world = await World.create();
    const owner = world.machineSet();
    world.machine("new", owner, {}, "n2");
    world.node("n2", "True");
    assert.equal((await look(world, owner)).nodeName, "n2");
  });

  it("a search for a replacement does not take a node that is not Ready, nor one of another owner", async () => {
    const world = await World.create();
    const owner = world.machineSet();
    world.machine("new", owner, {}, "n2");
    world.node("n2", "False");
    world.machine("other", { ...owner, uid: "other-set" }, {}, "n3");
    world.node("n3", "True");
    assert.equal((await look(world, owner)).nodeName, undefined);
  });

  it("a search for a replacement does not take a Machine that was there before", async () => {
    const world = await World.create();
    const owner = world.machineSet();
    world.machine("earlier", owner, {}, "n2");
    world.node("n2", "True");
    const { apiVersion, kind, name, uid } = owner;
    const replacement = { owner: { apiVersion, kind, name, uid }, deletedAt: "2026-01-01T00:00:01Z" };
    assert.equal((await look(world, owner, { replacement })).nodeName, undefined);
  });

  it("a search for a replacement does not take the old Node for the new one", async () => {
    const world = await World.create();
    const owner = world.machineSet();
    world.machine("new", owner, {}, "n1");
    const { uid } = world.node("n1", "True").metadata;
    assert.equal((await look(world, owner, { node: { name: "n1", uid } })).nodeName, undefined);
  });

  it("a search for a replacement lets the host go once it is being deprovisioned, or the Machine is gone", async () => {
    const world = await World.create();
    const owner = world.machineSet();
    const machine = refOf(world.machine("m", owner, { finalizers: ["machine.cluster.x-k8s.io"] }));
    const target = targetOf(world.host({}));
    assert.equal((await look(world, owner, { machine, target })).mayLetGo, false);
    world.provisioning("deprovisioning");
    assert.equal((await look(world, owner, { machine, target })).mayLetGo, true);
    world.provisioning("provisioned");
    world.server
      .collection(MACHINES)
      .mergePatch({ namespace: NAMESPACE, name: "m" }, { metadata: { finalizers: null } });
    world.server.collection(MACHINES).delete({ namespace: NAMESPACE, name: "m" });
    assert.equal((await look(world, owner, { machine, target })).mayLetGo, true);
  });
});

describe("what is installed on a BareMetalHost", () => {
  const IMAGE = { url: "http://image", checksum: "c" };
  const SAVED = JSON.stringify({ image: IMAGE });

  it("one write removes the image of a BareMetalHost, notes it on the host and keeps the host off", async () => {
    const world = await World.create();
    const key = `reboot.metal3.io/ironfence-${world.remediation.metadata.uid}`;
    const annotations = { [key]: '{"mode":"hard"}', "example.com/note": "x" };
    const target = targetOf(world.host({ image: IMAGE }, "provisioned", { annotations }));
    const status = { target, installation: { step: "Deprovisioning" as const, image: SAVED } };
    const writes: string[] = [];
    world.server.onRequest(({ method, path }) => {
      if (method === "PATCH" && path.includes("baremetalhosts")) writes.push(method);
    });
    await world.run({ do: "takeImageOff" }, status);
    assert.equal(world.get(HOSTS, "host")?.spec?.["image"], undefined);
    const { uid } = world.remediation.metadata;
    assert.deepEqual(world.get(HOSTS, "host")?.metadata.annotations, {
      "example.com/note": "x",
      "ironfence.io/removed-image": JSON.stringify({ uid, image: SAVED }),
    });
    assert.equal(writes.length, 1);
  });

  it("the image of a BareMetalHost is put back as it was", async () => {
    const world = await World.create();
    const target = targetOf(world.host({ image: IMAGE, customDeploy: { method: "x" } }));
    const { installed } = await world.run({ do: "examineHost" }, { target });
    const image = installed?.image ?? "";
    await world.run({ do: "takeImageOff" }, { target, installation: { step: "Deprovisioning", image } });
    assert.equal((await world.run({ do: "examineHost" }, { target })).installed?.image, undefined);
    await world.run({ do: "putImageBack" }, { target, installation: { step: "Provisioning", image } });
    assert.deepEqual(world.get(HOSTS, "host")?.spec?.["image"], IMAGE);
    assert.deepEqual(world.get(HOSTS, "host")?.spec?.["customDeploy"], { method: "x" });
  });

  it("the image of a BareMetalHost is not touched if a user uses the host", async () => {
    const world = await World.create();
    const target = targetOf(world.host({ image: IMAGE, consumerRef: { kind: "Metal3Machine", name: "theirs" } }));
    const { installed } = await world.run({ do: "examineHost" }, { target });
    assert.equal(installed?.consumer, "Metal3Machine theirs");
    await world.run({ do: "takeImageOff" }, { target, installation: { step: "Deprovisioning", image: SAVED } });
    const installation = { step: "Provisioning" as const, image: '{"image":{"url":"http://ours"}}' };
    await world.run({ do: "putImageBack" }, { target, installation });
    assert.deepEqual(world.get(HOSTS, "host")?.spec?.["image"], IMAGE);
  });

  it("the image of a BareMetalHost stays if a user has changed it since it was saved, and is not put back over a later choice", async () => {
    const world = await World.create();
    const target = targetOf(world.host({ image: IMAGE }));
    const image = '{"image":{"url":"http://before"}}';
    await world.run({ do: "takeImageOff" }, { target, installation: { step: "Deprovisioning", image } });
    assert.deepEqual(world.get(HOSTS, "host")?.spec?.["image"], IMAGE);
    await world.run({ do: "putImageBack" }, { target, installation: { step: "Provisioning", image } });
    assert.deepEqual(world.get(HOSTS, "host")?.spec?.["image"], IMAGE);
  });

  it("the image of a BareMetalHost belongs to no remediation if the host was created again", async () => {
    const world = await World.create();
    const target = { ...targetOf(world.host({ image: IMAGE })), uid: "an-older-one" };
    assert.equal((await world.run({ do: "examineHost" }, { target })).installed?.isGone, true);
    await world.run({ do: "takeImageOff" }, { target, installation: { step: "Deprovisioning", image: SAVED } });
    assert.deepEqual(world.get(HOSTS, "host")?.spec?.["image"], IMAGE);
  });
});

describe("a remediation that deletes itself", () => {
  it("a remediation that deletes itself knows that it is being deleted", async () => {
    const world = await World.create();
    await world.run({ do: "deleteSelf" }, {});
    assert.notEqual(world.session?.remediation.metadata.deletionTimestamp, undefined);
  });
});
