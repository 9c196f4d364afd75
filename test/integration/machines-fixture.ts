import { createApiServer } from "../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { readForeignCrds } from "../../hack/lib/crds.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { trimNode } from "../../src/api/kubernetes/trim.ts";
import type { ClusterConnection, WorkloadClusters } from "../../src/clusters/workload-clusters.ts";
import { CLUSTER_API_CHECKS } from "../../src/detector/machines/vendors/cluster-api.ts";
import type { MachineHealthCheckKind } from "../../src/detector/machines/decide/kind.ts";
import { runMachineHealthChecks } from "../../src/detector/machines/run.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import type { EventNote } from "../../src/kube/events.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import type { RunnableKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import { toTime } from "../../src/runtime/time.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { ReplayedLog } from "../lib/replayed-log.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";
import { vendorCrd, vendorType } from "./detector-fixture.ts";

// MachineHealthChecks on two in-memory API servers in virtual time: one has the machines, the other their nodes.

export const NAMESPACE = "tenant";
export const CLUSTER = "prod";

export type Version = "v1beta1" | "v1beta2";

/** The fields of objects that tests read. */
export interface Loose extends KubeObject {
  spec?: Record<string, unknown>;
  status?: {
    conditions?: LooseCondition[];
    v1beta2?: { conditions?: LooseCondition[] };
    deprecated?: { v1beta1?: { conditions?: LooseCondition[] } };
    [field: string]: unknown;
  };
}

export interface LooseCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  severity?: string;
}

export class MachineWorld {
  readonly clock = new VirtualClock(Date.UTC(2026, 0, 1));
  readonly management: ApiServer = createApiServer({ clock: this.clock, random: seededRandom(1) });
  readonly workload: ApiServer = createApiServer({ clock: this.clock, random: seededRandom(2) });
  readonly version: Version;
  readonly notes: EventNote[] = [];
  readonly kind: MachineHealthCheckKind;
  /** The problem of the workload cluster that its connection reports. */
  #away: string | undefined;
  #connection: ClusterConnection = { state: "connecting" };
  readonly #holders = new Set<() => void>();
  /** Replays every decision of every test from the log. The results must be the same. */
  readonly #log = new ReplayedLog();
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  private constructor(version: Version, kind: MachineHealthCheckKind) {
    this.version = version;
    this.kind = kind;
  }

  /** A cluster whose control plane and infrastructure have been ready for a day. */
  static async create(version: Version = "v1beta2", kind = CLUSTER_API_CHECKS): Promise<MachineWorld> {
    const world = new MachineWorld(version, kind);
    for (const text of await crdsOf(version, kind)) world.management.load(text);
    for (const name of ["Fence", "FenceTemplate", "Other", "OtherTemplate"]) world.management.load(vendorCrd(name));
    world.management.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    world.cluster();
    return world;
  }

  type(kind: string): ResourceType {
    const { group } = this.kind.checks;
    const plural = `${kind.toLowerCase()}s`;
    return { group, version: this.version, kind, plural, namespaced: true };
  }

  /** Starts the detector, also after `stop`. */
  start(): void {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const runtime = this.#runtime(this.management, 3);
    const clusters: WorkloadClusters = {
      hold: (ref, onChange) => {
        this.#holders.add(onChange);
        const connectionOf = (): ClusterConnection => this.#connection;
        return {
          ref,
          get connection() {
            return connectionOf();
          },
          release: () => void this.#holders.delete(onChange),
        };
      },
    };
    const events = { record: (note: EventNote) => void this.notes.push(note) };
    this.#running = Promise.all([
      runMachineHealthChecks(
        {
          runtime: { ...runtime, events },
          clusters,
          kind: this.kind,
          namespace: "fencing",
          zoneLabel: "topology.kubernetes.io/zone",
          recorder: this.#log.recorder(),
        },
        signal,
      ),
      this.#connect(signal),
    ]);
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const runtime = this.#runtime(this.workload, 4);
    const nodes = runtime.watch({ type: NODES, trim: trimNode }, signal);
    await nodes.whenSynced(signal);
    this.#connected = { state: "connected", runtime, nodes };
    if (this.#away === undefined) this.#become(this.#connected);
  }
  #connected: ClusterConnection = { state: "connecting" };

  #become(connection: ClusterConnection): void {
    this.#connection = connection;
    for (const holder of this.#holders) holder();
  }

  /** Disconnects the workload cluster for `reason`; undefined connects it again. */
  away(reason: string | undefined): void {
    this.#away = reason;
    this.#become(
      reason === undefined
        ? this.#connected
        : { state: "disconnected", reason: "Unreachable", message: reason, sinceMs: this.clock.nowMs() },
    );
  }

  #runtime(server: ApiServer, seed: number): RunnableKubeRuntime {
    return createKubeRuntime({
      transport: server.transport({ client: "detector" }),
      clock: this.clock,
      random: seededRandom(seed),
      logger: createLogger(process.env["DETECTOR_LOG"] === undefined ? "silent" : "debug"),
      controllerName: "ironfence.io/agent",
      instance: "test",
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the test has ended"));
    await this.clock.advance(1_000);
    await this.#running;
    this.#log.assertSame();
  }

  /** Advances time in small steps until `done` returns true. @throws Error after `withinMs`. */
  async until(what: string, done: () => boolean, withinMs = 60_000): Promise<number> {
    const startMs = this.clock.nowMs();
    while (!done()) {
      if (this.clock.nowMs() - startMs > withinMs) {
        const seen = { status: this.check().status, machines: this.machines().map(({ status }) => status) };
        throw new Error(
          `not within ${withinMs} ms: ${what}; ${JSON.stringify({ ...seen, notes: this.told() }, undefined, 1)}`,
        );
      }
      await this.clock.advance(100);
    }
    return this.clock.nowMs() - startMs;
  }

  cluster(options: { initialized?: boolean; infrastructure?: boolean; paused?: boolean } = {}): void {
    const { initialized = true, infrastructure = true, paused = false } = options;
    const sinceText = toTime(this.clock.nowMs() - 86_400_000);
    const conditions = [
      conditionOf("ControlPlaneInitialized", initialized, sinceText, this.version),
      conditionOf("InfrastructureReady", infrastructure, sinceText, this.version),
    ];
    const clusters = this.management.collection<Loose>(this.type("Cluster"));
    if (clusters.get({ namespace: NAMESPACE, name: CLUSTER }) === undefined) {
      clusters.create({ metadata: { namespace: NAMESPACE, name: CLUSTER }, spec: { paused } });
    }
    const key = { namespace: NAMESPACE, name: CLUSTER };
    clusters.mergePatch(key, { spec: { paused } });
    clusters.mergePatch(key, { status: { conditions } }, "status");
  }

  /** Creates a machine, and a Ready node of the same name. */
  machine(
    name: string,
    options: {
      node?: boolean;
      controlPlane?: boolean;
      labels?: Record<string, string>;
      annotations?: Record<string, string>;
      ownerReferences?: KubeObject["metadata"]["ownerReferences"];
    } = {},
  ): void {
    const { node = true, controlPlane = false, labels = {}, annotations = {}, ownerReferences } = options;
    this.management.collection(this.type("Machine")).create({
      metadata: {
        namespace: NAMESPACE,
        name,
        labels: {
          "cluster.x-k8s.io/cluster-name": CLUSTER,
          pool: "a",
          ...(controlPlane && { "cluster.x-k8s.io/control-plane": "" }),
          ...labels,
        },
        annotations,
        ...(ownerReferences !== undefined && { ownerReferences }),
      },
      spec: {
        clusterName: CLUSTER,
        bootstrap: { dataSecretName: name },
        infrastructureRef: infrastructureRef(name, this.version),
      },
    });
    if (!node) return;
    this.workload.collection<Node>(NODES).create({ metadata: { name }, spec: {} });
    this.ready(name, "True");
    this.joins(name);
  }

  /** Sets the node of the machine. */
  joins(name: string): void {
    this.status("Machine", name, { nodeRef: { name } });
  }

  machinesOf(prefix: string, count: number): string[] {
    const names = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
    for (const name of names) this.machine(name);
    return names;
  }

  status(kind: string, name: string, status: Record<string, unknown>): void {
    this.management.collection(this.type(kind)).mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
  }

  annotate(kind: string, name: string, annotations: Record<string, string | null>): void {
    this.management
      .collection(this.type(kind))
      .mergePatch({ namespace: NAMESPACE, name }, { metadata: { annotations } });
  }

  /** Sets the condition Ready of the node with the present time. */
  ready(name: string, status: "True" | "False" | "Unknown"): void {
    const conditions = [{ type: "Ready", status, lastTransitionTime: toTime(this.clock.nowMs()) }];
    this.workload.collection<Node>(NODES).mergePatch({ name }, { status: { conditions } }, "status");
  }

  deleteNode(name: string): void {
    this.workload.collection(NODES).delete({ name });
  }

  template(kind = "Fence", spec: unknown = { template: { spec: { mode: "off" } } }): void {
    this.management.collection(vendorType(`${kind}Template`)).create({
      metadata: { namespace: NAMESPACE, name: `${kind.toLowerCase()}-template` },
      spec,
    });
  }

  /**
   * Creates a health check over pool a that finds a node unhealthy after 10 s, in the served version.
   *
   * @param options `template: null` for none.
   */
  healthCheck(
    options: {
      name?: string;
      template?: string | null;
      max?: number | string;
      range?: string;
      startupSeconds?: number;
      machineConditions?: { type: string; status: string; seconds: number }[];
      selector?: Record<string, string>;
      annotations?: Record<string, string>;
    } = {},
  ): void {
    const { name = "check", template = "Fence", max, range, startupSeconds, machineConditions = [] } = options;
    const { selector = { pool: "a" }, annotations = {} } = options;
    const reference = template !== null && {
      apiVersion: "fence.example/v1",
      kind: `${template}Template`,
      name: `${template.toLowerCase()}-template`,
    };
    const rules = ["False", "Unknown"].map((status) => ({ type: "Ready", status, seconds: 10 }));
    const remediation = {
      ...((max !== undefined || range !== undefined) && {
        triggerIf: {
          ...(max !== undefined && { unhealthyLessThanOrEqualTo: max }),
          ...(range !== undefined && { unhealthyInRange: range }),
        },
      }),
      ...(reference !== false && { templateRef: reference }),
    };
    const common = { clusterName: CLUSTER, selector: { matchLabels: selector } };
    const spec =
      this.version === "v1beta1"
        ? {
            ...common,
            ...(startupSeconds !== undefined && { nodeStartupTimeout: `${startupSeconds}s` }),
            unhealthyConditions: rules.map(({ seconds, ...rule }) => ({ ...rule, timeout: `${seconds}s` })),
            ...(max !== undefined && { maxUnhealthy: max }),
            ...(range !== undefined && { unhealthyRange: range }),
            ...(reference !== false && { remediationTemplate: reference }),
          }
        : {
            ...common,
            checks: {
              ...(startupSeconds !== undefined && { nodeStartupTimeoutSeconds: startupSeconds }),
              unhealthyNodeConditions: rules.map(({ seconds, ...rule }) => ({ ...rule, timeoutSeconds: seconds })),
              ...(machineConditions.length > 0 && {
                unhealthyMachineConditions: machineConditions.map(({ seconds, ...rule }) => ({
                  ...rule,
                  timeoutSeconds: seconds,
                })),
              }),
            },
            ...(Object.keys(remediation).length > 0 && { remediation }),
          };
    this.management.collection(this.type("MachineHealthCheck")).create({
      metadata: { namespace: NAMESPACE, name, annotations },
      spec,
    });
  }

  check(name = "check"): Loose {
    const found = this.management
      .collection<Loose>(this.type("MachineHealthCheck"))
      .get({ namespace: NAMESPACE, name });
    if (found === undefined) throw new Error(`there is no health check ${name}`);
    return found;
  }

  machines(): Loose[] {
    return [...this.management.collection<Loose>(this.type("Machine")).values()];
  }

  machineOf(name: string): Loose {
    const found = this.machines().find(({ metadata }) => metadata.name === name);
    if (found === undefined) throw new Error(`there is no machine ${name}`);
    return found;
  }

  condition(object: Loose, type: string): LooseCondition | undefined {
    return object.status?.conditions?.find((condition) => condition.type === type);
  }

  fences(kind = "Fence"): Loose[] {
    return [...this.management.collection<Loose>(vendorType(kind)).values()];
  }

  fenceNames(kind = "Fence"): string[] {
    return this.fences(kind)
      .map(({ metadata }) => metadata.name)
      .sort();
  }

  /** Messages of the Kubernetes Events with one reason, or of all. */
  told(reason?: string): string[] {
    return this.notes.filter((note) => reason === undefined || note.reason === reason).map(({ note }) => note);
  }
}

const crds = new Map<string, string[]>();

/** The CRDs of a kind's group, cached because reading them is slow and every test needs them. */
async function crdsOf(version: Version, { checks }: MachineHealthCheckKind): Promise<string[]> {
  const key = `${checks.group}/${version}`;
  const known =
    crds.get(key) ?? (await readForeignCrds([version])).filter((text) => text.includes(`.${checks.group}\n`));
  crds.set(key, known);
  return known;
}

function infrastructureRef(name: string, version: Version): Record<string, string> {
  const group = "infrastructure.cluster.x-k8s.io";
  return {
    kind: "Metal3Machine",
    name,
    ...(version === "v1beta1" ? { apiVersion: `${group}/v1beta1` } : { apiGroup: group }),
  };
}

function conditionOf(type: string, is: boolean, lastTransitionTime: string, version: Version): Record<string, string> {
  const texts = version === "v1beta1" ? {} : { reason: is ? type : `Not${type}`, message: "" };
  return { type, status: is ? "True" : "False", lastTransitionTime, ...texts };
}
