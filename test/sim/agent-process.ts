import { Registry } from "prom-client";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { trimTarget } from "../../src/nodes/trim.ts";
import { shareCollections } from "../../src/cli/agent/share-collections.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { trimNode } from "../../src/api/kubernetes/trim.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { OpenDevice } from "../../src/bmc/interface/device-config.ts";
import { guardOrders } from "../../src/bmc/devices/open-device.ts";
import type { ClusterRef, WorkloadClusters } from "../../src/clusters/workload-clusters.ts";
import { CLUSTER_LEASE_NAMESPACE, clusterLeaseName } from "../../src/cli/agent/installation.ts";
import { COMPONENTS } from "../../src/config/parsers.ts";
import type { Family } from "../../src/config/parsers.ts";
import { runNodeHealthChecks } from "../../src/detector/nodes/run.ts";
import { CLUSTER_API_CHECKS } from "../../src/detector/machines/vendors/cluster-api.ts";
import { runOkdHealthChecks } from "../../src/detector/machines/run-okd.ts";
import { runMachineHealthChecks } from "../../src/detector/machines/run.ts";
import { ClusterLeases } from "../../src/kube/lease/cluster-leases.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import { KubeError } from "../../src/kube/errors.ts";
import { guardWrites } from "../../src/kube/connection/transport/guarded-transport.ts";
import type { EventNote } from "../../src/kube/events.ts";
import type { KubeRuntime } from "../../src/kube/runtime.ts";
import type { KubeTransport, TransportRequest } from "../../src/kube/transport.ts";
import { KubeletLeases } from "../../src/nodes/leases/kubelet-leases.ts";
import { readAsIfAlone } from "../../src/detector/shared/model/read-as-if-alone.ts";
import type { RemediationListener } from "../../src/detector/shared/model/started-remediation.ts";
import { sendNoWrites } from "../../src/kube/connection/transport/observing-transport.ts";
import { keepWrites } from "../../src/kube/unsent/keep-writes.ts";
import type { KdumpSource } from "../../src/remediator/kdump/kdump-messages.ts";
import { runRemediator } from "../../src/remediator/remediator.ts";
import { serveMetal3Remediations } from "../../src/remediator/requests/metal3-remediation.ts";
import { serveOkdMachines } from "../../src/remediator/requests/okd-machine.ts";
import { NO_WORKLOAD_CLUSTERS } from "../lib/workload-clusters.ts";
import type { Watched } from "../../src/kube/watched.ts";
import type { RemediatorOptions } from "../../src/remediator/remediator.ts";
import type { AdmissionLimits } from "../../src/remediator/machine/rules/admission/admission.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { AgentClock } from "./agent-clock.ts";
import type { ClockFault } from "./agent-clock.ts";
import type { Cluster } from "./cluster.ts";
import { limitConnections } from "./connections.ts";
import type { Connections } from "./connections.ts";
import { NAMESPACE, ZONE_LABEL } from "./cluster.ts";
import { CHANGING_CALLS } from "./rack-driver.ts";
import type { CallFault, DeviceUser, RackDevices } from "./rack-driver.ts";
import { DecisionRecorder } from "../../src/telemetry/decisions/recorder.ts";

/**
 * What happens to an agent at one effect. The places of a crash: before, the effect is not sent; between, it takes
 * effect and its answer is lost; after, its answer arrives.
 */
export type EffectFault =
  | { how: "crash"; place: "before" | "between" | "after" }
  | ({ how: "stop"; forMs: number } & Stop)
  /** The answer is lost, or the API server reports that it is busy. The process continues. */
  | { how: "lost" | "unavailable" };

/** Options of `AgentProcess.suspend`. */
export interface Stop {
  answersFirst?: boolean;
  machine?: boolean;
}

/**
 * A fault of one watch event: it is delayed and then shown, lost with its connection, or also dropped from the history
 * of the server.
 */
export interface EventFault {
  holdMs: number;
  how: "show" | "cut" | "compact";
}

/** Faults between an agent and the world. An absent method causes no faults. */
export interface Interference {
  /** Called for every effect: a write to the API, or a call that changes something at a BMC. */
  effect?(agent: string, what: string): EffectFault | undefined;
  /** Called for every call to a BMC. */
  call?(agent: string, what: string): CallFault | undefined;
  /** Called for every event of a watch. */
  event?(agent: string, what: string): EventFault | undefined;
  /** Time in transit of a request to the API, in each direction. */
  latencyMs?(): number;
  /**
   * By how many milliseconds the clock of the answering API server is ahead of the cluster's. One address may have
   * several servers.
   */
  serverAheadMs?(isStream: boolean): number;
}

/** The access of an agent to the cluster in which it runs. */
export interface OwnCluster {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  /** Wraps the transport to another API server, so that faults of this agent also affect its requests there. */
  wire(inner: KubeTransport): KubeTransport;
  /** Whether it holds its lease. */
  mayWrite(): boolean;
}

type AgentClusters = WorkloadClusters & { settled?(): Promise<void> };

export interface AgentProcessOptions {
  name: string;
  clock?: ClockFault;
  /** Its installation: the name of the agent lease. By default there is no lease, and the agent leads at once. */
  installation?: string | undefined;
  /** Whether it only observes, as with `--observe`. Then it is a safety rule that it writes nothing. */
  observes?: boolean;
  /** Called for remediations that its detector starts. */
  listener?: RemediationListener;
  /** The families that it serves in addition to BareMetalRemediations and FencingTargets. */
  families?: readonly Family[];
  /** The clusters of Machines' nodes; there are none by default. */
  clusters?: (own: OwnCluster, signal: AbortSignal) => AgentClusters;
  /** Opens BMCs if there are others than those of its own cluster's rack. */
  openDeviceFor?: RackDevices["openDeviceFor"];
  seed: number;
  interference?: Interference;
  /** The connections to its own cluster. */
  connections?: Connections;
  /** How many hosts may be remediated at once: any number by default. */
  limits?: Partial<AdmissionLimits>;
  /** Keys of clusters with an external etcd. The empty string is the agent's own cluster. */
  externalEtcd?: ReadonlySet<string>;
  /** The node that it runs on. */
  ownNode?: string | undefined;
  ownCluster?: ClusterRef | undefined;
  /** Called when the agent wants to hand its lease over. */
  onHandOver?: (why: string) => unknown;
  /** Called once when the process has ended for any reason. */
  onEnd?(why: Error): void;
  onNote?(note: EventNote): void;
  /** Receives the lines of its log of decisions. By default nothing is recorded. */
  record?: (line: string) => void;
  /** The source of datagrams of crash kernels; none by default. */
  kdump?: KdumpSource;
}

/** How long a process may take to stop, and how often that is checked. */
const STOP_MAX_MS = 60_000;
const STOP_LOOK_MS = 20;

/**
 * One process of the agent: the real kube layer and remediator and, if enabled, detector and leader election. All its
 * calls go through this class, so that it can crash at any effect. After a crash it does nothing.
 */
export class AgentProcess {
  readonly name: string;
  readonly clock: AgentClock;
  /** Its metrics. */
  readonly registry = new Registry();
  readonly #cluster: Cluster;
  readonly #options: AgentProcessOptions;
  readonly #abort = new AbortController();
  #isDead = false;
  #isDoomed = false;
  #hasEnded = false;
  #resumed: { promise: Promise<void>; resolve: () => void } | undefined;
  #heldEvents = 0;

  constructor(cluster: Cluster, options: AgentProcessOptions) {
    this.name = options.name;
    this.clock = new AgentClock(cluster.clock, options.clock);
    this.#cluster = cluster;
    this.#options = options;
    cluster.observer.setRunning(options.name, true);
    if (options.installation !== undefined) cluster.observer.useLease(options.installation);
    void this.#run().then(
      () => this.#onEnd(new Error("it has ended by itself")),
      (error: unknown) => this.#onEnd(error instanceof Error ? error : new Error(String(error))),
    );
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Whether it is stopped or an event is still delayed, so that its reaction is still to come. */
  get isHampered(): boolean {
    return this.#resumed !== undefined || this.#heldEvents > 0;
  }

  /** Ends the process in order: it may still do its work after its signal has aborted. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error("stopped"));
    this.resume();
    await this.#cluster.clock.advance(0);
    // The remaining work, such as the release of its lease, takes time.
    for (let waitedMs = 0; !this.#hasEnded && waitedMs < STOP_MAX_MS; waitedMs += STOP_LOOK_MS) {
      await this.#cluster.clock.advance(STOP_LOOK_MS);
    }
    if (!this.#hasEnded) throw new Error(`${this.name} did not end within ${STOP_MAX_MS} ms`);
  }

  /** Kills the process: from now on it has no effect. */
  crash(): void {
    if (this.#isDead) return;
    this.#isDead = true;
    this.#abort.abort(new Error("crashed"));
    this.resume();
    this.#cluster.observer.setRunning(this.name, false);
    this.#cluster.observer.noteDeath(this.name);
  }

  /**
   * Stops the process as SIGSTOP does, or with its machine. In the second case its monotonic clock stops as well. With
   * `answersFirst`, answers that came in the meantime are received before due timers run.
   */
  suspend(forMs: number, { answersFirst = false, machine = false }: Stop = {}): void {
    if (this.#isDead || this.#resumed !== undefined) return;
    if (machine) this.clock.suspendMachine();
    else this.clock.stop();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resumed = { promise, resolve };
    this.#cluster.observer.setStopped(this.name, true);
    this.#cluster.clock.schedule(forMs, () => this.resume(answersFirst));
  }

  /**
   * Resumes the process. Depending on where its event loop was stopped, due timers run before or after the answers that
   * came in the meantime.
   */
  resume(answersFirst = false): void {
    if (this.#resumed === undefined) return;
    this.#cluster.observer.setStopped(this.name, false);
    if (!answersFirst) this.clock.resume();
    this.#resumed.resolve();
    this.#resumed = undefined;
    if (answersFirst) this.#cluster.clock.schedule(0, () => this.clock.resume());
  }

  async #run(): Promise<void> {
    const { name, seed, installation, observes = false } = this.#options;
    const openDeviceFor = this.#options.openDeviceFor ?? this.#cluster.devices.openDeviceFor;
    const random = seededRandom(seed);
    const { clock } = this;
    const logger = createLogger(process.env["SIM_LOG"] === undefined ? "silent" : "debug");
    // As in the agent, this is checked at the last moment, since a process that was stopped continues before its timers
    // run.
    let mayAct = (): boolean => true;
    const created = createKubeRuntime({
      transport: guardWrites(this.#wire(), () => mayAct()),
      clock,
      random,
      logger,
      controllerName: "ironfence.io/agent",
      instance: name,
    });
    const { signal } = this.#abort;
    const record = (note: EventNote): void => {
      this.#onNote(note);
      // Kubernetes Events are written like every other object, so the same faults affect them, and their answers come
      // from the same server.
      if (!this.#isDead) created.events.record(note);
    };
    const acting = { ...created, events: { record } };
    const runtime = observes ? keepWrites(acting, readAsIfAlone) : acting;
    void created.run(signal).catch(() => undefined);
    const nodes = runtime.watch<Node>({ type: NODES, trim: trimNode }, signal);
    const openDevice = guardOrders(openDeviceFor(this.#deviceUser()), () => !observes && mayAct());
    const own = {
      runtime,
      nodes,
      wire: (inner: KubeTransport) => this.#transport(inner),
      mayWrite: () => !observes && mayAct(),
    };
    const lead = (leading: AbortSignal): Promise<void> => this.#lead(own, openDevice, leading);
    if (installation === undefined) return lead(signal);
    const options = {
      namespace: NAMESPACE,
      name: installation,
      identity: name,
      lead: (leading: AbortSignal, isHeld: () => boolean) => {
        mayAct = isHeld;
        return lead(leading);
      },
    };
    const leases = new ClusterLeases(
      { clock, random, logger, client: created.leaseClient },
      {
        namespace: CLUSTER_LEASE_NAMESPACE,
        names: observes ? [] : COMPONENTS.map(clusterLeaseName),
        installation: `${NAMESPACE}/${installation}`,
        onChange: () => undefined,
      },
    );
    return leases.run(options, signal);
  }

  /** Runs the parts of a leading agent. */
  async #lead(own: OwnCluster, open: OpenDevice, signal: AbortSignal): Promise<void> {
    const { nodes } = own;
    const runtime = shareCollections(own.runtime, NAMESPACE);
    const families = new Set(this.#options.families);
    const { registry } = this;
    const clusters: AgentClusters = this.#options.clusters?.(own, signal) ?? NO_WORKLOAD_CLUSTERS;
    const targets = runtime.watch<FencingTarget>(
      { type: FENCING_TARGETS, namespace: NAMESPACE, trim: trimTarget },
      signal,
    );
    const { observes, listener } = this.#options;
    const bareMetalHosts = families.has("bare-metal-host");
    const leases = new KubeletLeases(runtime);
    const recorder = this.#recorder();
    const { kdump } = this.#options;
    const deps = { runtime, nodes, leases, clusters, targets, registry, bareMetalHosts, recorder, kdump };
    const options = this.#remediatorOptions();
    const acts = observes !== true;
    const parts = acts ? [runRemediator({ ...deps, namespace: NAMESPACE, openDevice: open, options }, signal)] : [];
    if (acts && families.has("okd-machine")) parts.push(serveOkdMachines(runtime, ZONE_LABEL, signal));
    if (acts && families.has("metal3-remediation")) parts.push(serveMetal3Remediations(runtime, signal));
    const detector = { runtime, namespace: NAMESPACE, zoneLabel: ZONE_LABEL, listener, recorder };
    if (families.has("okd-machine-health-check"))
      parts.push(runOkdHealthChecks({ ...detector, nodes, registry }, signal));
    if (families.has("machine-health-check")) {
      const kind = CLUSTER_API_CHECKS;
      parts.push(runMachineHealthChecks({ ...detector, clusters, kind }, signal));
    }
    if (families.has("node-health-check")) {
      const options = { leaseNamespace: "medik8s-leases", namespace: NAMESPACE };
      parts.push(runNodeHealthChecks({ ...detector, nodes, registry, leases, options }, signal));
    }
    await Promise.all(parts);
    await clusters.settled?.();
  }

  #recorder(): DecisionRecorder | undefined {
    const { record } = this.#options;
    if (record === undefined) return undefined;
    const write = (line: string): true => {
      record(line);
      return true;
    };
    return new DecisionRecorder({ process: this.name, write });
  }

  #remediatorOptions(): RemediatorOptions {
    const { ownNode, ownCluster, externalEtcd = new Set() } = this.#options;
    const limits = { hosts: Infinity, perCluster: Infinity, perZone: Infinity, ...this.#options.limits };
    const { onHandOver: handOver = () => undefined } = this.#options;
    return { concurrency: 50, limits, zoneLabel: ZONE_LABEL, ownNode, ownCluster, externalEtcd, handOver };
  }

  #onNote(note: EventNote): void {
    if (this.#isDead) return;
    this.#cluster.observer.noted(note);
    this.#options.onNote?.(note);
  }

  #onEnd(why: Error): void {
    this.#hasEnded = true;
    const wasKilled = this.#abort.signal.aborted && !this.#isDead;
    if (!this.#isDead) this.#cluster.observer.setRunning(this.name, false);
    this.#isDead = true;
    if (wasKilled) return;
    // An agent that could not renew its lease in time has not released it.
    this.#cluster.observer.noteDeath(this.name);
    this.#options.onEnd?.(why);
  }

  #transport(inner: KubeTransport): KubeTransport {
    const { observer } = this.#cluster;
    return {
      send: async (request, signal) =>
        this.#dated(
          false,
          await this.#pass(effectOf(request), signal, dead, () =>
            observer.as(this.name, () => inner.send(request, signal)),
          ),
        ),
      stream: async (request, signal) => {
        if (this.#isDead) throw dead();
        const stream = this.#dated(true, await inner.stream(request, signal));
        if (this.#options.interference?.event === undefined) return stream;
        return { ...stream, body: this.#show(request.path, stream.body, signal) };
      },
      close: () => inner.close(),
    };
  }

  /** The transport to the API server. An agent that observes must not even try to write. */
  #wire(): KubeTransport {
    const { name, observes, installation = "ironfence" } = this.#options;
    const wire = limitConnections(
      this.#transport(this.#cluster.server.transport({ client: name })),
      this.#cluster.clock,
      this.#options.connections,
    );
    if (observes !== true) return wire;
    const guarded = sendNoWrites(wire, { namespace: NAMESPACE, name: installation });
    return {
      ...guarded,
      send: async (request, signal) => {
        try {
          return await guarded.send(request, signal);
        } catch (error) {
          if (String(error).includes("only observes")) this.#breaksObservation(`${request.method} ${request.path}`);
          throw error;
        }
      },
    };
  }

  #breaksObservation(what: string): void {
    this.#cluster.observer.report("an agent that observes changes nothing", `${this.name}: ${what}`);
  }

  /** Sets the date of an answer to the clock of the API server that has handled the request. */
  #dated<T extends { headers: Readonly<Record<string, string>> }>(isStream: boolean, answer: T): T {
    const aheadMs = this.#options.interference?.serverAheadMs?.(isStream) ?? 0;
    const { date } = answer.headers;
    if (aheadMs === 0 || date === undefined) return answer;
    return { ...answer, headers: { ...answer.headers, date: new Date(Date.parse(date) + aheadMs).toUTCString() } };
  }

  /**
   * Passes one call on, unless the process ends at it. @param what the effect; undefined for a call that changes
   * nothing.
   */
  async #pass<T>(what: string | undefined, signal: AbortSignal, dead: () => Error, send: () => Promise<T>): Promise<T> {
    const { interference } = this.#options;
    if (this.#isDoomed) this.crash();
    if (this.#isDead) throw dead();
    if (what !== undefined && this.#options.observes === true) this.#breaksObservation(what);
    if (interference === undefined) return send();
    const fault = what === undefined ? undefined : interference.effect?.(this.name, what);
    await this.#travel(signal);
    if (fault?.how === "unavailable") {
      this.#cluster.observer.disturb();
      throw new KubeError("Unavailable", "the API server is busy");
    }
    if (fault?.how === "crash" && fault.place === "before") this.crash();
    if (this.#isDead) throw dead();
    const answer = await send();
    if (fault?.how === "crash" && fault.place === "between") this.crash();
    if (fault?.how === "stop") this.suspend(fault.forMs, fault);
    await this.#travel(signal);
    await this.#resumed?.promise;
    if (this.#isDead) throw dead();
    if (fault?.how === "lost") {
      this.#cluster.observer.disturb();
      throw new KubeError("Network", "the connection broke before the answer");
    }
    if (fault?.how === "crash") {
      // The process receives the answer and ends at its next call.
      this.#isDoomed = true;
      this.#cluster.clock.schedule(0, () => this.crash());
    }
    return answer;
  }

  async #travel(signal: AbortSignal): Promise<void> {
    const latencyMs = this.#options.interference?.latencyMs?.() ?? 0;
    if (latencyMs > 0) await sleep(this.#cluster.clock, latencyMs, signal);
  }

  #deviceUser(): DeviceUser {
    const gone = (): Error => new BmcError("Unreachable", "the process has ended");
    const { interference = {} } = this.#options;
    return {
      name: this.name,
      pass: (host, call, signal, send) =>
        this.#pass(CHANGING_CALLS.includes(call) ? `${call} ${host}` : undefined, signal, gone, send),
      fault: (host, call) => interference.call?.(this.name, `${call} ${host}`),
    };
  }

  async *#show(path: string, body: AsyncIterable<string>, signal: AbortSignal): AsyncGenerator<string> {
    const { interference = {} } = this.#options;
    for await (const chunk of body) {
      for (const line of chunk.split("\n")) {
        if (line === "") continue;
        const fault = line.startsWith('{"type":"BOOKMARK"')
          ? undefined
          : interference.event?.(this.name, eventOf(path, line));
        if (fault !== undefined) {
          await this.#hold(resourceOf(path), fault.holdMs, signal);
          if (fault.how === "compact") this.#cluster.server.compact();
          if (fault.how !== "show") throw new KubeError("Network", "the watch was cut");
        }
        await this.#resumed?.promise;
        yield `${line}\n`;
      }
    }
  }

  async #hold(plural: string, forMs: number, signal: AbortSignal): Promise<void> {
    const { observer, clock } = this.#cluster;
    observer.disturb();
    this.#heldEvents += 1;
    if (plural === "nodes") observer.holdNodes(true);
    try {
      await sleep(clock, forMs, signal);
    } finally {
      this.#heldEvents -= 1;
      if (plural === "nodes") observer.holdNodes(false);
      observer.disturb();
    }
  }
}

function dead(): Error {
  return new KubeError("Network", "the process has ended");
}

/**
 * The name of a write, for example `PATCH baremetalremediations/status`; undefined for reads, writes of the lease, and
 * Kubernetes Events, on which nothing depends.
 */
function effectOf({ method, path, lane }: TransportRequest): string | undefined {
  const resource = resourceOf(path);
  return method === "GET" || lane === "lease" || resource === "events" ? undefined : `${method} ${resource}`;
}

function resourceOf(path: string): string {
  const parts = (path.split("?")[0] ?? "").split("/").slice(path.startsWith("/apis/") ? 4 : 3);
  const [plural, , subresource] = parts[0] === "namespaces" && parts[2] !== undefined ? parts.slice(2) : parts;
  return subresource === undefined ? (plural ?? "") : `${plural}/${subresource}`;
}

function eventOf(path: string, line: string): string {
  return `${/^\{"type":"(\w+)"/.exec(line)?.[1] ?? ""} ${resourceOf(path)}`;
}
