import assert from "node:assert/strict";
import { PROVISIONED_STATUS } from "../../../hack/rack/bare-metal-host-status.ts";
import { FENCED_BY } from "../../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { CLUSTER_API_GROUP, readMachine } from "../../../src/api/cluster-api/cluster-api.ts";
import { LEASES, NODES, SECRETS } from "../../../src/api/kubernetes/core-types.ts";
import type { Node, Taint } from "../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../src/api/ironfence/fencing-target.ts";
import { FENCED, OUT_OF_SERVICE, sameTaint } from "../../../src/api/kubernetes/taints.ts";
import type { Condition } from "../../../src/api/schema/meta.ts";
import { trimNode } from "../../../src/api/kubernetes/trim.ts";
import { ownCluster, withOwnCluster } from "../../../src/clusters/own-cluster.ts";
import type { ClusterConnection, ClusterRef, WorkloadClusters } from "../../../src/clusters/workload-clusters.ts";
import { WORKLOAD_BUDGET } from "../../../src/clusters/link.ts";
import { UNTRUSTED_CONNECTIONS_MAX } from "../../../src/kube/connection/transport/lane-pools.ts";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import type { EventNote } from "../../../src/kube/events.ts";
import type { ResourceType } from "../../../src/kube/resource.ts";
import type { KubeTransport, TransportRequest } from "../../../src/kube/transport.ts";
import { markPatch } from "../../../src/remediator/machine/node-patches/marks.ts";
import type { AdmissionLimits } from "../../../src/remediator/machine/rules/admission/admission.ts";
import { BARE_METAL_HOSTS } from "../../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";
import { AgentProcess } from "../agent-process.ts";
import { Cluster, NAMESPACE } from "../cluster.ts";
import { limitConnections } from "../connections.ts";
import { METAL3_MACHINES } from "../metal3/bare-metal-hosts.ts";
import { bears } from "../world.ts";

// A management cluster, a workload cluster, and a foreign cluster to which the kubeconfig may lead. Nodes, pods and
// hosts have the same names in all of them.

/** The namespace of the Cluster and Machines of the workload cluster. */
export const CAPS = "caps";
export const WORKLOAD: ClusterRef = { namespace: CAPS, name: "w1" };

const clusterApi = (kind: string, plural: string): ResourceType => ({
  group: CLUSTER_API_GROUP,
  version: "v1beta2",
  kind,
  plural,
  namespaced: true,
});
export const MACHINES = clusterApi("Machine", "machines");
const CLUSTERS = clusterApi("Cluster", "clusters");
const NAMESPACES: ResourceType = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
};

const HOSTS = ["n1", "n2", "n3"];

type Place = "management" | "workload" | "stranger";
const PLACES: readonly Place[] = ["management", "workload", "stranger"];

export interface WorkloadOptions {
  /** The node of the management cluster that the agent runs on. */
  ownNode?: string;
  /** The hosts of the workload cluster: three by default. */
  hosts?: readonly string[];
  /** Whether controllers attach and detach volumes in the workload cluster: true by default. */
  volumes?: boolean;
  /** Labels of all nodes. */
  labels?: Record<string, string>;
  /** How long a call to an API server occupies its connection, in milliseconds; 0 by default. */
  callMs?: (place: Place) => number;
  /** Whether the hosts of the workload cluster have FencingTargets. */
  targets?: boolean;
  /** How many hosts may be remediated at once: any number by default. */
  limits?: Partial<AdmissionLimits>;
  /** Whether an option of the agent says that the Cluster is its own cluster, so that its kubeconfig is not read. */
  ownCluster?: boolean;
}

/** The providerID of a node. Nodes of the same name in several clusters have different ones. */
export function providerID(place: Place, node: string): string {
  return `metal3://${place}/${node}/${node}-machine`;
}

export class WorkloadWorld {
  readonly clock = new VirtualClock(undefined, 1);
  readonly management: Cluster;
  readonly workload: Cluster;
  readonly stranger: Cluster;
  readonly notes: EventNote[] = [];
  /** Power orders that took effect, as `place host order`. */
  readonly powerLog: string[] = [];
  readonly phases: string[] = [];
  /** Called when a call to the workload cluster gets its connection. */
  onSent: (request: TransportRequest, waitedMs: number) => void = () => undefined;
  readonly #options: WorkloadOptions;
  readonly #violations = new Set<string>();
  readonly #holders = new Set<() => void>();
  #connection: ClusterConnection = { state: "connecting" };
  #isCut = false;
  #leadsTo: Place = "workload";
  #claims: Place | undefined;
  #agent: AgentProcess | undefined;
  #agents = 0;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    const clusterOf = (place: Place, seed: number): Cluster =>
      new Cluster({
        clock: this.clock,
        seed,
        controllers: {
          statefulSets: false,
          scheduler: false,
          ...(place === "workload" && options.volumes === false && { volumes: false }),
        },
        invariants: [],
        hosts: (place === "workload" ? (options.hosts ?? HOSTS) : HOSTS).map((name) => ({
          name,
          providerID: providerID(place, name),
        })),
        ...(options.labels !== undefined && { labels: options.labels }),
      });
    this.management = clusterOf("management", 1);
    this.workload = clusterOf("workload", 2);
    this.stranger = clusterOf("stranger", 3);
    const { management } = this;
    for (const group of ["cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "metal3.io"]) management.serve(group);
    management.create(NAMESPACES, { name: CAPS }, {});
    management.create(CLUSTERS, { namespace: CAPS, name: WORKLOAD.name }, { spec: {} });
    if (options.targets !== false)
      for (const { name, spec } of this.workload.rack.hosts) this.#aim(name, spec.systemUUID);
    for (const place of PLACES) {
      // A taint may be added and removed within one step.
      this[place].server.onChange(({ object }) => {
        if (object.kind === "Node") this.#check();
      });
      this[place].rack.subscribe((event) => {
        if (event.type !== "ordered" || event.outcome !== "Started") return;
        this.powerLog.push(`${place} ${event.host} ${event.order}`);
      });
    }
    management.server.onChange(({ object }) => {
      const { phase } = (object as BareMetalRemediation).status ?? {};
      if (object.kind !== "BareMetalRemediation" || phase === undefined || this.phases.at(-1) === phase) return;
      this.phases.push(phase);
    });
    this.clock.afterStep = () => this.#check();
  }

  /** Runs `test` on a new world. Afterwards, no rule may be broken and nothing may still run. */
  static async run(options: WorkloadOptions, test: (world: WorkloadWorld) => Promise<void>): Promise<void> {
    const world = new WorkloadWorld(options);
    world.startAgent();
    await world.clock.advance(15_000);
    try {
      await test(world);
      assert.deepEqual([...world.#violations], [], "safety rules");
    } finally {
      await world.stop();
    }
    for (const { devices } of [world.management, world.workload, world.stranger]) {
      assert.equal(devices.open(), 0, "every device session is closed");
    }
    assert.equal(world.clock.pending, 0, "nothing is left running");
  }

  startAgent(): void {
    this.#agents += 1;
    this.#agent = new AgentProcess(this.management, {
      name: "agent",
      seed: 200 + this.#agents,
      families: ["bare-metal-host"],
      clusters: ({ runtime, nodes }, signal) =>
        this.#ownCluster === undefined
          ? this.#clusters(signal)
          : withOwnCluster(this.#ownCluster, ownCluster(runtime, nodes, signal), this.#clusters(signal)),
      openDeviceFor: (user) => (config, deps) => {
        const address = config.address.replace("redfish://w1-", "redfish://");
        const { devices } = address === config.address ? this.management : this.workload;
        return devices.openDeviceFor(user)({ ...config, address }, deps);
      },
      ownNode: this.#options.ownNode,
      ...(this.#options.limits !== undefined && { limits: this.#options.limits }),
      ownCluster: this.#ownCluster,
      connections: { callMs: () => this.#options.callMs?.("management") ?? 0 },
      onNote: (note) => this.notes.push(note),
      onEnd: (why) => this.#violations.add(`the agent ended: ${why.message}`),
    });
  }

  get #ownCluster(): ClusterRef | undefined {
    return this.#options.ownCluster === true ? WORKLOAD : undefined;
  }

  async killAgent(): Promise<void> {
    await this.#agent?.stop();
    this.#agent = undefined;
  }

  async stop(): Promise<void> {
    await this.killAgent();
    await this.workload.stopCluster();
    await this.stranger.stopCluster();
    await this.management.stopCluster();
  }

  /** Breaks the connection to the workload cluster. The agent notices this after a while. */
  cut(): void {
    this.#isCut = true;
    this.clock.schedule(3_000, () => {
      if (!this.#isCut) return;
      const message = "no answer from its API server";
      this.#connect({ state: "disconnected", reason: "Unreachable", message, sinceMs: this.clock.nowMs() });
    });
  }

  get isAway(): boolean {
    return this.#isCut;
  }

  mend(): void {
    this.#isCut = false;
    this.#reconnect();
  }

  /** Gives a node of the management cluster a single target, which names it by the Cluster that leads there. */
  aimAtOwn(host: string): void {
    const targets = this.management.server.collection<FencingTarget>(FENCING_TARGETS);
    const plain = targets.get({ namespace: NAMESPACE, name: host }) ?? assert.fail();
    targets.delete({ namespace: NAMESPACE, name: host });
    const clusterRef = { namespace: WORKLOAD.namespace, name: WORKLOAD.name };
    const { systemUUID } = this.management.rack.host(host).spec;
    this.management.create(
      FENCING_TARGETS,
      { namespace: NAMESPACE, name: `own-${host}` },
      { spec: { ...plain.spec, clusterRef, identity: { systemUUID } } },
    );
    // The target of the workload cluster names a node of the same name.
    targets.delete({ namespace: NAMESPACE, name: `w1-${host}` });
  }

  /** Deletes the Cluster in the management cluster, and so the connection to it. */
  deleteCluster(): void {
    this.management.server.collection(CLUSTERS).delete(WORKLOAD);
    this.cut();
  }

  /** Deletes the Cluster, and creates another one of the same name. */
  replaceCluster(): void {
    this.management.server.collection(CLUSTERS).delete(WORKLOAD);
    this.management.create(CLUSTERS, { namespace: CAPS, name: WORKLOAD.name }, { spec: {} });
    this.leadTo("stranger");
  }

  /** Changes the kubeconfig of the workload cluster to lead to `place`. */
  leadTo(place: Place): void {
    this.#leadsTo = place;
    this.#reconnect();
  }

  /** Lets the API server of the kubeconfig claim to be the cluster `place`. */
  claimToBe(place: Place): void {
    this.#claims = place;
    this.#reconnect();
  }

  clusterUid(place: Place): string {
    return this[place].server.collection(NAMESPACES).get({ name: "kube-system" })?.metadata.uid ?? assert.fail();
  }

  /**
   * Creates a Machine of the workload cluster, with its node unless that is undefined.
   *
   * @param named its providerID; that of its node by default; empty for none.
   * @returns its UID.
   */
  machine(
    name: string,
    nodeName: string | undefined,
    { labels = {}, named }: { labels?: Record<string, string>; named?: string } = {},
  ): string {
    const machines = this.management.server.collection(MACHINES);
    const infrastructureRef = { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "Metal3Machine", name };
    const made = machines.create({
      metadata: { namespace: CAPS, name, labels },
      spec: { clusterName: WORKLOAD.name, bootstrap: { dataSecretName: "none" }, infrastructureRef },
    });
    if (nodeName !== undefined) this.nameNode(name, nodeName, named);
    return made.metadata.uid;
  }

  nameNode(machine: string, nodeName: string, named = providerID(this.#leadsTo, nodeName)): void {
    const key = { namespace: CAPS, name: machine };
    if (named !== "") this.management.server.collection(MACHINES).mergePatch(key, { spec: { providerID: named } });
    this.management.server.collection(MACHINES).mergePatch(key, { status: { nodeRef: { name: nodeName } } }, "status");
  }

  machineConditions(name: string): readonly Condition[] {
    const found = this.management.server.collection(MACHINES).get({ namespace: CAPS, name });
    return found === undefined ? [] : readMachine(found).conditions;
  }

  /** Creates a detached BareMetalHost for a host of the workload cluster, which the Machine uses. */
  takeHost(host: string, machine: string, machineUid: string): void {
    const { management, workload } = this;
    const owner = { apiVersion: `${CLUSTER_API_GROUP}/v1beta2`, kind: "Machine", name: machine, uid: machineUid };
    const annotations = { "metal3.io/BareMetalHost": `${CAPS}/${host}` };
    management.create(
      METAL3_MACHINES,
      { namespace: CAPS, name: machine, annotations, ownerReferences: [owner] },
      { spec: {} },
    );
    const { username, password } = { username: "admin", password: workload.faults.password };
    const data = { username: btoa(username), password: btoa(password) };
    management.create(
      SECRETS,
      { namespace: CAPS, name: `${host}-bmc`, labels: { "environment.metal3.io": "baremetal" } },
      { data },
    );
    management.create(
      BARE_METAL_HOSTS,
      { namespace: CAPS, name: host, annotations: { "baremetalhost.metal3.io/detached": "" } },
      {
        spec: {
          online: true,
          bmc: { address: `redfish://w1-${host}`, credentialsName: `${host}-bmc` },
          image: { url: "http://image" },
          consumerRef: { apiVersion: CLUSTER_API_GROUP, kind: "Metal3Machine", namespace: CAPS, name: machine },
        },
      },
    );
    const status = {
      ...PROVISIONED_STATUS,
      operationalStatus: "detached",
      hardware: { systemVendor: { serialNumber: workload.rack.host(host).spec.serialNumber } },
    };
    management.server.collection(BARE_METAL_HOSTS).mergePatch({ namespace: CAPS, name: host }, { status }, "status");
  }

  /** Hangs the installation of a host, so that it does not become a node. */
  async neverJoined(host: string): Promise<void> {
    this.workload.rack.host(host).hang();
    this.workload.server.collection(NODES).delete({ name: host });
    this.workload.server.collection(LEASES).delete({ namespace: "kube-node-lease", name: host });
    await this.clock.advance(1_000);
  }

  /** Requests the remediation of a Machine, as a MachineHealthCheck does. */
  remediateMachine(name: string, uid: string, strategy: Record<string, unknown> = {}): void {
    const owner = { apiVersion: `${CLUSTER_API_GROUP}/v1beta2`, kind: "Machine", name, uid };
    this.management.create(
      BARE_METAL_REMEDIATIONS,
      { namespace: CAPS, name, ownerReferences: [owner] },
      { spec: { strategy } },
    );
  }

  remediation(name: string): BareMetalRemediation | undefined {
    const remediations = this.management.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS);
    return remediations.get({ namespace: CAPS, name });
  }

  condition(type: string, name: string): string {
    const found = this.remediation(name)?.status?.conditions?.find((known) => known.type === type);
    return found === undefined ? "none" : `${found.status} ${found.reason}`;
  }

  delete(name: string): void {
    this.management.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: CAPS, name });
  }

  /** Removes a remediation as an impatient user does: first its finalizer by force, then the object. */
  forget(name: string): void {
    const remediations = this.management.server.collection(BARE_METAL_REMEDIATIONS);
    const key = { namespace: CAPS, name };
    remediations.mergePatch(key, { metadata: { finalizers: null } });
    if (remediations.get(key) !== undefined) remediations.delete(key);
  }

  /** Adds the annotation of a fence to a node, without the out-of-service taint. */
  sign(place: Place, name: string, signature: string): void {
    const node = this[place].node(name) ?? assert.fail();
    const fence = markPatch(node, { outOfService: "on" }, signature).find(({ path }) => path === "/spec/taints");
    const taints = fence?.op === "add" ? (fence.value as Taint[]).filter((taint) => sameTaint(taint, FENCED)) : [];
    this[place].server.collection(NODES).mergePatch({ name }, { spec: { taints } });
  }

  /** Adds the annotation of a fence as a kubelet could, which may annotate its own Node but not taint it. */
  mark(place: Place, name: string, signature: string): void {
    const nodes = this[place].server.collection(NODES);
    nodes.mergePatch({ name }, { metadata: { annotations: { [FENCED_BY]: signature } } });
  }

  /** Hangs a node of the workload cluster that was registered without a providerID. */
  anonymous(name: string): void {
    this.workload.rack.host(name).hang();
    const nodes = this.workload.server.collection<Node>(NODES);
    const { status } = nodes.get({ name }) ?? assert.fail();
    nodes.delete({ name });
    nodes.create({ metadata: { name }, spec: {} });
    const conditions = [{ type: "Ready", status: "Unknown" }];
    nodes.mergePatch({ name }, { status: { ...status, conditions } }, "status");
  }

  /** Hangs a host, and waits until its cluster notices. */
  async hang(place: Place, name: string): Promise<void> {
    const cluster = this[place];
    cluster.rack.host(name).hang();
    await this.until(`${place} ${name} is not Ready`, () => !cluster.isReady(name));
  }

  async phase(phase: string, name: string): Promise<void> {
    await this.until(`${name} is ${phase}`, () => this.remediation(name)?.status?.phase === phase);
  }

  async until(what: string, holds: () => boolean, withinMs = 900_000): Promise<void> {
    const endMs = this.clock.nowMs() + withinMs;
    while (!holds()) {
      if (this.clock.nowMs() >= endMs) assert.fail(`not within ${withinMs} ms: ${what}\n${this.story()}`);
      await this.clock.advance(50);
    }
  }

  /** Asserts that the agent has left no mark on any node of that cluster and has sent no order to its hosts. */
  assertUntouched(place: Place): void {
    const cluster = this[place];
    assert.deepEqual(
      this.powerLog.filter((entry) => entry.startsWith(place)),
      [],
    );
    for (const { name } of cluster.rack.hosts) {
      const { annotations = {}, deletionTimestamp } =
        cluster.node(name)?.metadata ?? assert.fail(`node ${name} is gone`);
      assert.equal(deletionTimestamp, undefined);
      assert.deepEqual(
        Object.keys(annotations).filter((key) => key.startsWith("ironfence.io/")),
        [],
      );
    }
  }

  story(): string {
    const all = [...this.management.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values()];
    const steps = all.flatMap(({ metadata, status }) =>
      (status?.timeline ?? []).map(({ step, time, message }) => `  ${metadata.name} ${time} ${step}: ${message}`),
    );
    return [...steps, `power: ${this.powerLog.join(", ")}`].join("\n");
  }

  #aim(host: string, systemUUID: string): void {
    const credentialsSecretRef = { name: "bmc" };
    this.management.create(
      FENCING_TARGETS,
      { namespace: NAMESPACE, name: `w1-${host}` },
      {
        spec: {
          nodeName: host,
          clusterRef: WORKLOAD,
          identity: { systemUUID },
          devices: [{ address: `redfish://w1-${host}`, credentialsSecretRef, timeouts: { call: "2s" } }],
        },
      },
    );
  }

  /** Checks that a node has the out-of-service taint only while its own host, in its own cluster, is off. */
  #check(): void {
    for (const place of PLACES) {
      const { rack } = this[place];
      for (const host of rack.hosts) {
        const node = this[place].node(host.name);
        if (node === undefined || !bears(node, OUT_OF_SERVICE) || host.power !== "On") continue;
        this.#violations.add(`node ${host.name} of the ${place} cluster is out of service while its host is on`);
      }
    }
  }

  #runtime(transport: KubeTransport): ReturnType<typeof createKubeRuntime> {
    return createKubeRuntime({
      transport,
      clock: this.clock,
      random: seededRandom(200 + this.#agents),
      logger: createLogger(process.env["SIM_LOG"] === undefined ? "silent" : "debug"),
      controllerName: "ironfence.io/agent",
      instance: "agent",
      budget: WORKLOAD_BUDGET,
    });
  }

  #clusters(signal: AbortSignal): WorkloadClusters {
    this.#connection = { state: "connecting" };
    const broken = (): KubeError => new KubeError("Network", "no connection");
    const open = (place: Place): (() => void) => {
      const inner = limitConnections(this[place].server.transport({ client: "agent" }), this.clock, {
        max: UNTRUSTED_CONNECTIONS_MAX,
        callMs: () => this.#options.callMs?.(place) ?? 0,
        onSent: (request, waitedMs) => this.onSent(request, waitedMs),
      });
      const transport: KubeTransport = {
        send: (request, signal) => (this.#isCut ? Promise.reject(broken()) : inner.send(request, signal)),
        stream: (request, signal) => (this.#isCut ? Promise.reject(broken()) : inner.stream(request, signal)),
        close: () => inner.close(),
      };
      const runtime = this.#runtime(transport);
      const nodes = runtime.watch<Node>({ type: NODES, trim: trimNode }, signal);
      const connect = (): void =>
        this.#connect({ state: "connected", runtime, nodes, uid: this.clusterUid(this.#claims ?? place) });
      return () => void nodes.whenSynced(signal).then(connect, () => undefined);
    };
    const ways: Partial<Record<Place, () => void>> = {};
    this.#reconnect = () => {
      ways[this.#leadsTo] ??= open(this.#leadsTo);
      ways[this.#leadsTo]?.();
    };
    if (!this.#isCut) this.#reconnect();
    return {
      hold: (ref, onChange) => {
        assert.deepEqual(ref, WORKLOAD);
        const listener = (): void => onChange();
        this.#holders.add(listener);
        const present = (): ClusterConnection => this.#connection;
        return {
          ref,
          get connection() {
            return present();
          },
          release: () => void this.#holders.delete(listener),
        };
      },
    };
  }

  #reconnect: () => void = () => undefined;

  #connect(connection: ClusterConnection): void {
    this.#connection = connection;
    // Copies the list, because a listener may unsubscribe while it is called.
    const listeners = [...this.#holders];
    for (const tell of listeners) tell();
  }
}
