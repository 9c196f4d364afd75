import { parseAllDocuments } from "yaml";
import { readFileSync } from "node:fs";
import { createApiServer } from "../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { CUSTOM_RESOURCE_DEFINITIONS } from "../../hack/kube-mock/custom-resources.ts";
import type { Backup } from "../../hack/kube-mock/store.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import type { ClusterControllerOptions } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import { startClusterControllers } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import type { PowerOrderType } from "../../hack/rack/events.ts";
import type { HostSpec } from "../../hack/rack/host.ts";
import type { KubeletOptions } from "../../hack/rack/kubelet.ts";
import { startKubelets } from "../../hack/rack/kubelet.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { CONFIG_MAPS, NODES, PODS, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { Node, Pod } from "../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { VirtualClock } from "../lib/virtual-clock.ts";
import type { KubeletNetwork } from "./kubelet-client.ts";
import { kubeletClient, networked } from "./kubelet-client.ts";
import type { BmcFaults, RackDevices } from "./rack-driver.ts";
import { rackDevices } from "./rack-driver.ts";
import type { Invariant } from "./invariants/facts.ts";
import { Observer } from "./invariants/observer.ts";

export const NAMESPACE = "ironfence";
/** Label of nodes that names their failure zone. */
export const ZONE_LABEL = "topology.kubernetes.io/zone";

const CRDS: Record<string, unknown>[] = [
  "crds/ironfence.io_baremetalremediations",
  "crds/ironfence.io_baremetalremediationtemplates",
  "crds/ironfence.io_fencingtargets",
  "node-health-check/remediation.medik8s.io_nodehealthchecks",
].flatMap((file) => definitionsIn(`deploy/${file}.yaml`));

/** A cache of CRD files, so that a file is read once for all worlds. */
const foreign = new Map<string, readonly Record<string, unknown>[]>();

function definitionsIn(path: string): Record<string, unknown>[] {
  const text = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  return parseAllDocuments(text).map((document) => document.toJS() as Record<string, unknown>);
}

export interface ClusterOptions {
  hosts?: readonly (string | HostSpec)[];
  /** Labels with which each kubelet registers its node. */
  labels?: Record<string, string>;
  /** Whether each host has a FencingTarget: true by default. */
  targets?: boolean;
  /** Hosts that a driver server powers instead of a BMC. */
  driven?: readonly string[];
  controllers?: Partial<ClusterControllerOptions>;
  kubelets?: KubeletOptions;
  seed?: number;
  /** Turns of the event loop between two timers. */
  turns?: number;
  /** The clock of a world with several clusters; a new one by default. */
  clock?: VirtualClock;
  /** The rules that are checked after every step. */
  invariants: readonly Invariant[];
}

/**
 * A simulated cluster without an agent: rack, kubelets, and an in-memory API server with its controllers, all on one
 * virtual clock. The safety rules are checked at every step.
 */
export class Cluster {
  readonly clock: VirtualClock;
  readonly server: ApiServer;
  readonly rack: Rack;
  readonly faults: BmcFaults = {
    password: "correct",
    losesAnswer: new Set(),
    refuses: new Set(),
    denies: new Set(),
    alone: new Set(),
    undated: new Set(),
    cycles: new Map(),
    meanwhile: new Map(),
  };
  /** The network between kubelets and the API server. At first it has no faults. */
  readonly network: KubeletNetwork = { cut: new Set(), latencyMs: () => 0, serverAheadMs: 0 };
  readonly devices: RackDevices;
  readonly observer: Observer;
  readonly #driven: ReadonlySet<string>;
  readonly #stop = new AbortController();
  readonly #stopControllers: () => void;
  readonly #kubelets: Promise<void>;

  constructor(options: ClusterOptions) {
    const clock = options.clock ?? new VirtualClock(undefined, options.turns);
    const random = seededRandom(options.seed ?? 1);
    this.clock = clock;
    this.#driven = new Set(options.driven);
    this.server = createApiServer({ clock, random });
    const definitions = this.server.collection(CUSTOM_RESOURCE_DEFINITIONS);
    for (const definition of CRDS) definitions.create(definition);
    const hosts = (options.hosts ?? ["n1", "n2"]).map((host) => ({
      ...(options.labels !== undefined && { labels: options.labels }),
      ...(typeof host === "string" ? { name: host } : host),
    }));
    this.rack = createRack({ clock, random, hosts });
    this.devices = rackDevices(this.rack, clock, this.faults);
    const { server, rack, devices } = this;
    this.observer = new Observer({ clock, server, rack, devices }, options.invariants);
    for (const name of [NAMESPACE, "kube-node-lease"]) {
      if (server.collection(NAMESPACES).get({ name }) === undefined) this.create(NAMESPACES, { name }, {});
    }
    this.create(
      SECRETS,
      { namespace: NAMESPACE, name: "bmc", annotations: { [ALLOWED_ADDRESSES]: "redfish://*, snmp://*, driver://*" } },
      { data: { username: base64("admin"), password: base64(this.faults.password) } },
    );
    for (const { name, spec } of options.targets === false ? [] : rack.hosts) this.createTarget(name, spec.systemUUID);
    this.#stopControllers = startClusterControllers({ server, clock }, options.controllers);
    const logger = createLogger("silent");
    const client = kubeletClient(server, clock);
    this.#kubelets = startKubelets(
      {
        rack,
        client,
        clientOf: (host) => networked(client, clock, { host, network: this.network, server }),
        clock,
        logger,
      },
      options.kubelets ?? {},
      this.#stop.signal,
    );
  }

  /** Ends the cluster. Agents must have ended before. */
  async stopCluster(): Promise<void> {
    this.#stop.abort();
    let haveEnded = false;
    void this.#kubelets.then(() => (haveEnded = true));
    await this.clock.advance(0);
    // Without this check, a promise that never settles would end the process silently.
    if (!haveEnded) throw new Error("a kubelet did not end with its signal");
    this.#stopControllers();
    this.server.close();
    this.rack.stop();
    await this.clock.advance(0);
  }

  /** Moves the wall clock of the API server. */
  jumpServerClock(byMs: number): void {
    this.observer.doubtServerClock();
    this.server.jumpClock(byMs);
  }

  /** Restores etcd, and restarts the API server. */
  restore(backup: Backup): void {
    this.observer.atOnce(() => this.server.restore(backup));
  }

  /** Serves kinds of another project, from a file of `hack/foreign-crds`. */
  serve(group: string): void {
    const definitions = foreign.get(group) ?? definitionsIn(`hack/foreign-crds/${group}.yaml`);
    foreign.set(group, definitions);
    for (const definition of definitions) this.server.collection(CUSTOM_RESOURCE_DEFINITIONS).create(definition);
  }

  create(type: ResourceType, metadata: Record<string, unknown>, body: object): void {
    this.server.collection(type).create({ metadata, ...body });
  }

  #addressOf(host: string): string {
    return this.#driven.has(host) ? `driver://sim/hosts/${host}` : `redfish://${host}`;
  }

  createTarget(host: string, systemUUID: string, nodeName = host): void {
    this.create(
      FENCING_TARGETS,
      { namespace: NAMESPACE, name: host },
      {
        spec: {
          nodeName,
          identity: { systemUUID },
          devices: [
            { address: this.#addressOf(host), credentialsSecretRef: { name: "bmc" }, timeouts: { call: "2s" } },
          ],
        },
      },
    );
  }

  /** Creates a remediation of `node`, by default with the same name. */
  remediate(node: string, strategy: Record<string, unknown> = {}, name = node): void {
    this.create(
      BARE_METAL_REMEDIATIONS,
      { namespace: NAMESPACE, name, annotations: { "remediation.medik8s.io/node-name": node } },
      { spec: { strategy } },
    );
  }

  createPod(node: string, name: string, spec: Partial<Pod["spec"]> = {}): void {
    this.create(
      PODS,
      { namespace: "default", name },
      { spec: { nodeName: node, containers: [{ name: "main", image: "none" }], ...spec } },
    );
  }

  remediation(name: string): BareMetalRemediation | undefined {
    return this.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).get({ namespace: NAMESPACE, name });
  }

  node(name: string): Node | undefined {
    return this.server.collection<Node>(NODES).get({ name });
  }

  target(name: string): FencingTarget | undefined {
    return this.server.collection<FencingTarget>(FENCING_TARGETS).get({ namespace: NAMESPACE, name });
  }

  pods(node: string): Pod[] {
    return [...this.server.collection<Pod>(PODS).values()].filter((pod) => pod.spec.nodeName === node);
  }

  isReady(name: string): boolean {
    return (
      this.node(name)?.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true
    );
  }

  /** Sends a power order that does not come from the agent. */
  otherClientOrders(host: string, order: PowerOrderType): void {
    this.rack.host(host).order(order);
  }

  /** @param until when the pause ends by itself, RFC 3339. */
  pause(paused: boolean, until?: string): void {
    const maps = this.server.collection(CONFIG_MAPS);
    const key = { namespace: NAMESPACE, name: "ironfence-pause" };
    const data = { paused: String(paused), reason: "a test", ...(until !== undefined && { until }) };
    if (maps.get(key) === undefined) maps.create({ metadata: key, data });
    else maps.mergePatch(key, { data });
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
