import { Registry } from "prom-client";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
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
import { NAMESPACE } from "./cluster.ts";
import { CHANGING_CALLS } from "./rack-driver.ts";
import type { CallFault, DeviceUser, RackDevices } from "./rack-driver.ts";
import { DecisionRecorder } from "../../src/telemetry/decisions/recorder.ts";

/**
 * What happens to an agent at one effect. before: it is not sent. between: it takes effect, its answer is lost. after:
 * it is answered.
 */
export type EffectFault =
  | { how: "crash"; place: "before" | "between" | "after" }
  | ({ how: "stop"; forMs: number } & Stop)
  /** The answer is lost, or the API server says that it is busy; the process goes on. */
  | { how: "lost" | "unavailable" };

/** How a process is stopped: see `AgentProcess.suspend`. */
export interface Stop {
  answersFirst?: boolean;
  machine?: boolean;
}

/**
 * What happens to one watch event: it is held back, and then shown, or lost with its connection, or forgotten by the
 * server, too.
 */
export interface EventFault {
  holdMs: number;
  how: "show" | "cut" | "compact";
}

/** What may happen to an agent on its way to the world. Everything is undisturbed where a method is absent. */
export interface Interference {
  /** Asked at every effect: a write to the API, or a call that changes something at a BMC. */
  effect?(agent: string, what: string): EffectFault | undefined;
  /** Asked at every call to a BMC. */
  call?(agent: string, what: string): CallFault | undefined;
  /** Asked at every event that a watch shows. */
  event?(agent: string, what: string): EventFault | undefined;
  /** Time that a request to the API takes on its way there, or back. */
  latencyMs?(): number;
  /**
   * How far the clock of the API server that answers is ahead of the cluster's: there may be several, behind one
   * address.
   */
  serverAheadMs?(isStream: boolean): number;
}

/** What an agent has of the cluster that it runs in. */
export interface OwnCluster {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  /** The wire to another API server as this agent has it: what befalls the agent befalls its requests there, too. */
  wire(inner: KubeTransport): KubeTransport;
  /** Whether it holds its lease. */
  mayWrite(): boolean;
}

type AgentClusters = WorkloadClusters & { settled?(): Promise<void> };

export interface AgentProcessOptions {
  name: string;
  clock?: ClockFault;
  /**
   * The installation that it belongs to: the name of the lease under which its agents lead in turn. It leads at once by
   * default.
   */
  installation?: string | undefined;
  /** It only observes, as with `--observe`: that it writes nothing is a safety rule. */
  observes?: boolean;
  /** Called with what its detector starts. */
  listener?: RemediationListener;
  /** What it serves in addition to BareMetalRemediations and FencingTargets. */
  families?: readonly Family[];
  /** The clusters of Machines' nodes; there are none by default. */
  clusters?: (own: OwnCluster, signal: AbortSignal) => AgentClusters;
  /** The way to the BMCs where those of its own cluster's rack are not all. */
  openDeviceFor?: RackDevices["openDeviceFor"];
  seed: number;
  interference?: Interference;
  /** How many hosts may be remediated at once: any number by default. */
  limits?: Partial<AdmissionLimits>;
  /** Clusters whose etcd runs outside of them; the empty text is the agent's own. */
  externalEtcd?: ReadonlySet<string>;
  /** The node that it runs on. */
  ownNode?: string | undefined;
  ownCluster?: ClusterRef | undefined;
  /** Called when it wants to hand its lease over. */
  onHandOver?: (why: string) => unknown;
  /** Called once when the process has ended by itself or by a crash. */
  onEnd?(why: Error): void;
  onNote?(note: EventNote): void;
  /** Takes the lines of its log of decisions; nothing is recorded by default. */
  record?: (line: string) => void;
  /** Datagrams of crash kernels; it does not receive them by default. */
  kdump?: KdumpSource;
}

/** How long a process that is asked to stop may take, and how often that is checked. */
const STOP_MAX_MS = 60_000;
const STOP_LOOK_MS = 20;

/**
 * One process of the agent: the real kube layer, remediator and, where asked for, detector and leader election. All
 * that it does goes through here, so that it can be crashed at any effect: what has crashed does nothing any more.
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

  /** Whether it is stopped, or an event is still held back from it: what it does then is to be seen yet. */
  get isHampered(): boolean {
    return this.#resumed !== undefined || this.#heldEvents > 0;
  }

  /** Ends it in order: it may finish what it does when its signal aborts. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error("stopped"));
    this.resume();
    await this.#cluster.clock.advance(0);
    // What it still has to do, giving its lease back for one, takes its time.
    for (let waitedMs = 0; !this.#hasEnded && waitedMs < STOP_MAX_MS; waitedMs += STOP_LOOK_MS) {
      await this.#cluster.clock.advance(STOP_LOOK_MS);
    }
    if (!this.#hasEnded) throw new Error(`${this.name} did not end within ${STOP_MAX_MS} ms`);
  }

  /** Ends it as a kill does: nothing of it has any effect from now on. */
  crash(): void {
    if (this.#isDead) return;
    this.#isDead = true;
    this.#abort.abort(new Error("crashed"));
    this.resume();
    this.#cluster.observer.setRunning(this.name, false);
    this.#cluster.observer.noteDeath(this.name);
  }

  /**
   * Stops it as SIGSTOP does, or with its machine: then its monotonic clock stands still, too. With `answersFirst` what
   * came meanwhile is received before any timer that became due runs.
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
   * It goes on. Timers that became due run before answers that came meanwhile, or after them: that depends on where in
   * its event loop it was stopped.
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
    // As in the agent: asked at the last moment, since a process that was stopped runs on before its timers tell it.
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
      // Events are written like every other object: their writes meet the same faults, and their answers show the same
      // server.
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

  /** The parts of an agent that leads. */
  async #lead(own: OwnCluster, open: OpenDevice, signal: AbortSignal): Promise<void> {
    const { runtime, nodes } = own;
    const families = new Set(this.#options.families);
    const { registry } = this;
    const clusters: AgentClusters = this.#options.clusters?.(own, signal) ?? NO_WORKLOAD_CLUSTERS;
    const targets = runtime.watch<FencingTarget>(
      { type: FENCING_TARGETS, namespace: NAMESPACE, trim: (raw) => raw as FencingTarget },
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
    if (acts && families.has("okd-machine")) parts.push(serveOkdMachines(runtime, signal));
    if (acts && families.has("metal3-remediation")) parts.push(serveMetal3Remediations(runtime, signal));
    if (families.has("okd-machine-health-check"))
      parts.push(runOkdHealthChecks({ runtime, nodes, registry, namespace: NAMESPACE, listener, recorder }, signal));
    if (families.has("machine-health-check")) {
      const kind = CLUSTER_API_CHECKS;
      parts.push(runMachineHealthChecks({ runtime, clusters, kind, namespace: NAMESPACE, listener, recorder }, signal));
    }
    if (families.has("node-health-check")) {
      const options = { leaseNamespace: "medik8s-leases", namespace: NAMESPACE };
      parts.push(runNodeHealthChecks({ runtime, nodes, registry, leases, listener, recorder, options }, signal));
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
    const zoneLabel = "topology.kubernetes.io/zone";
    return { concurrency: 50, limits, zoneLabel, ownNode, ownCluster, externalEtcd, handOver };
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
    // One that could not renew its lease in time has not given it back.
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

  /** The way to the API server. An agent that observes must not even try to write. */
  #wire(): KubeTransport {
    const { name, observes, installation = "ironfence" } = this.#options;
    const wire = this.#transport(this.#cluster.server.transport({ client: name }));
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

  /** The answer of the API server that this request has reached, by the clock of that one. */
  #dated<T extends { headers: Readonly<Record<string, string>> }>(isStream: boolean, answer: T): T {
    const aheadMs = this.#options.interference?.serverAheadMs?.(isStream) ?? 0;
    const { date } = answer.headers;
    if (aheadMs === 0 || date === undefined) return answer;
    return { ...answer, headers: { ...answer.headers, date: new Date(Date.parse(date) + aheadMs).toUTCString() } };
  }

  /**
   * Lets one call through, unless the process ends at it. @param what the effect, undefined for what changes nothing.
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
      // It hears the answer, and comes no further than to its next call.
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
 * A write as the API names it, for example `PATCH baremetalremediations/status`; undefined for a read, for the lease's
 * own writes, and for Events, on which nothing rests.
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
