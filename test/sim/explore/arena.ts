import type { BareMetalHostOperator } from "../../../hack/rack/bare-metal-host-operator.ts";
import type { FaultAction, Verb } from "../../../hack/kube-mock/faults.ts";
import { STATEFUL_SETS } from "../../../hack/kube-mock/controllers/cluster-types.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { LEASES } from "../../../src/api/kubernetes/core-types.ts";
import {
  BARE_METAL_REMEDIATIONS,
  BARE_METAL_REMEDIATION_TEMPLATES,
} from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../../src/api/ironfence/node-health-check.ts";
import { SKIP_DURATION_IF_OFF } from "../../../src/api/names/annotations.ts";
import { ownCluster } from "../../../src/clusters/own-cluster.ts";
import { CLUSTER_LEASE_NAMESPACE, clusterLeaseName } from "../../../src/cli/agent/installation.ts";
import { COMPONENTS } from "../../../src/config/parsers.ts";
import type { Family } from "../../../src/config/parsers.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type { AdmissionLimits } from "../../../src/remediator/machine/rules/admission/admission.ts";
import type { PowerOrderType } from "../../../hack/rack/events.ts";
import type { Random } from "../../../src/runtime/random.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { AgentProcess } from "../agent-process.ts";
import type { EffectFault, EventFault, Interference, Stop } from "../agent-process.ts";
import { Cluster, NAMESPACE } from "../cluster.ts";
import { INVARIANTS } from "../invariants/all.ts";
import { unsettled } from "../invariants/endings.ts";
import { isFinal } from "../invariants/facts.ts";
import { BareMetalHosts, providedHost } from "../metal3/bare-metal-hosts.ts";
import { giveOutlets, storeEnrolment } from "../outlets.ts";
import { OkdMachines } from "../okd-machines.ts";
import { Metal3Machines } from "../metal3/machines.ts";
import type { CallFault } from "../rack-driver.ts";
import { FOREIGN_FINALIZER, QUICK } from "./deeds.ts";
import type { AgentShape, Fault, Run, Shape } from "./run.ts";

/** The name of the installation and of its lease. */
const INSTALLATION = "ironfence";
/** How long after the crash of its agent a host comes back by itself. */
const COMES_BACK_MS = 3_000;
/** Time from a crash to the next process of that agent. */
const RESTART_MS = 1_000;
/** As short as the periods of kubelets allow, so that most of the simulated time is spent on fences. */
const MONITOR = { monitorPeriodMs: 5_000, monitorGracePeriodMs: 20_000 };

/** Calls without which no agent can remove a taint: it must write the Node, and it may act only with its lease. */
const NEEDED: Readonly<Record<string, readonly Verb[]>> = { nodes: ["patch"], leases: ["get", "create", "patch"] };

/** Calls whose failure is an excuse in some rule. */
const JUDGED_CALLS = ["get fencingtargets", "list baremetalremediations", "patch baremetalremediations/status"];

interface Calls {
  /** The number of the agent; all agents by default. */
  agent?: number;
  resource: string;
  verbs: readonly Verb[];
}

/** The annotation with which a health check of OKD requests power fencing. */
const BY_POWER = { "machine.openshift.io/remediation-strategy": "external-baremetal" };

const ZONE = "topology.kubernetes.io/zone";

/** The default tolerations of a pod: it is evicted from a dead node after five minutes. */
const TOLERATIONS = ["not-ready", "unreachable"].map((condition) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: "Exists",
  effect: "NoExecute",
  tolerationSeconds: 300,
}));

/** The world of one run: a cluster, its agents, and the points at which faults affect them. */
export class Arena extends Cluster {
  readonly effects: string[] = [];
  readonly calls: string[] = [];
  readonly events: string[] = [];
  /** Machines for which remediations are requested, if there are any. */
  readonly machines: Pick<OkdMachines, "ask" | "withdraw" | "unmet"> | undefined;
  /** Called with what happens to agents. */
  tell: (what: string) => void = () => undefined;
  readonly #run: Run;
  readonly #record: ((line: string) => void) | undefined;
  readonly #random: Random;
  readonly #faults: ReadonlyMap<string, Fault>;
  readonly #limits: Pick<AdmissionLimits, "hosts" | "perZone">;
  readonly #bareMetalHosts: BareMetalHosts | undefined;
  readonly #agents: (AgentProcess | undefined)[] = [];
  #generations = 0;
  #isOver = false;
  #isHealed = false;
  #restarts = new Set<{ cancel(): void }>();
  /** Time from the next crash to the next process of that agent. */
  #downMs = RESTART_MS;
  /** The end of the last long downtime of an agent. */
  #downUntilMs = -Infinity;
  readonly #hampers = new Set<() => void>();

  /** @param record receives the lines of the log of decisions. */
  constructor(run: Run, record?: (line: string) => void) {
    const { shape, seed } = run;
    const names = Array.from({ length: shape.hosts ?? 3 }, (_, index) => `n${index + 1}`);
    super({
      hosts: names.map((name, index) => ({
        ...(shape.bareMetalHosts === undefined ? { name } : providedHost(name)),
        ...(shape.okd === "replaced" && index === names.length - 1 && { power: "Off" as const }),
        labels: {
          ...(shape.labels !== undefined && ["n1", "n2"].includes(name) && shape.labels),
          ...(shape.controlPlane === true && { "node-role.kubernetes.io/control-plane": "" }),
          ...(shape.zones !== undefined && { [ZONE]: `zone-${1 + (index % shape.zones)}` }),
        },
      })),
      targets: shape.bareMetalHosts === undefined,
      driven: names.filter((_name, index) => shape.driven === "all" || (shape.driven === "half" && index % 2 === 0)),
      controllers: { nodeLifecycle: MONITOR },
      kubelets: { podPeriodMs: 4_000, leasePeriodMs: 10_000, leaseDurationSeconds: 20 },
      seed,
      turns: 1,
      invariants: INVARIANTS,
    });
    if (shape.bareMetalHosts !== undefined) {
      this.#bareMetalHosts = new BareMetalHosts(this, { used: shape.bareMetalHosts === "used" });
    }
    this.machines = this.#createMachines(shape);
    this.#run = run;
    for (const name of names) this.faults.cycles.set(name, "done");
    this.#record = record;
    this.#random = seededRandom(seed + 1);
    this.#faults = new Map(run.faults.flatMap((fault) => placesOf(fault).map((place) => [place, fault])));
    if (shape.agents?.some(({ aheadMs = 0, rate = 1 }) => aheadMs !== 0 || rate !== 1) === true) {
      this.observer.doubtClocks();
    }
    if (shape.outlets === true) for (const name of names) this.#enrolOutlets(name);
    this.#limits = { hosts: shape.maxHosts ?? Infinity, perZone: shape.maxHostsPerZone ?? Infinity };
    this.observer.limit(this.#limits);
    this.#createWorkload(shape.pods ?? 1);
    for (const lease of this.#leases()) this.create(LEASES, lease, { spec: {} });
    if (shape.detector === true) this.#createHealthCheck(shape.skips === true);
    for (let agent = 0; agent < (shape.agents?.length ?? 1); agent += 1) this.#start(agent);
    this.observer.onStep((step) => {
      if (step.type === "wrote" && step.change.object.kind === "BareMetalRemediation") this.#free(step.change.object);
    });
  }

  /** Removes the finalizer of another client after the verdict, or if the remediation has not begun. */
  #free({ metadata }: KubeObject): void {
    const { namespace = "", name, uid, finalizers = [] } = metadata;
    if (!finalizers.includes(FOREIGN_FINALIZER)) return;
    this.clock.schedule(0, () => {
      const present = this.remediation(name);
      if (present?.metadata.uid !== uid) return;
      const isUnbegun = present.metadata.deletionTimestamp !== undefined && present.status?.target === undefined;
      if (!isFinal(present) && !isUnbegun) return;
      const kept = (present.metadata.finalizers ?? []).filter((finalizer) => finalizer !== FOREIGN_FINALIZER);
      const change = { metadata: { finalizers: kept.length === 0 ? null : kept } };
      this.server.collection(BARE_METAL_REMEDIATIONS).mergePatch({ namespace, name }, change);
    });
  }

  /** Ends everything. */
  async end(): Promise<void> {
    this.#isOver = true;
    for (const restart of this.#restarts) restart.cancel();
    for (const agent of this.#agents) await agent?.stop();
    await this.#bareMetalHosts?.stop();
    await this.stopCluster();
  }

  /** The operator of the BareMetalHosts, if there are any. */
  get operator(): BareMetalHostOperator | undefined {
    return this.#bareMetalHosts?.operator;
  }

  /** Adds enrolled outlets to the target of a host. */
  #enrolOutlets(host: string): void {
    const addresses = [1, 2].map((number) => `snmp://pdu-${host}/${number}`);
    giveOutlets(this, host, { addresses, call: "2s", identity: { pdu: `SN-${host}` } });
    storeEnrolment(this, host);
  }

  /** Creates the target of a host again, with its stored enrolment. */
  remakeTarget(host: string): void {
    this.createTarget(host, this.rack.host(host).spec.systemUUID);
    if (this.#run.shape.outlets === true) this.#enrolOutlets(host);
  }

  /** Restores mains power of the host, unless its outlets are off. */
  restoreMains(host: string): void {
    if (this.devices.pdus.isSupplied(host)) this.rack.host(host).restoreMains();
  }

  crashAll(): void {
    for (const agent of this.#agents) agent?.crash();
  }

  crash(agent: number): void {
    this.#agents[agent]?.crash();
  }

  suspend(agent: number, forMs: number, stop?: Stop): void {
    this.#agents[agent]?.suspend(forMs, stop);
  }

  jumpClock(agent: number, byMs: number): void {
    this.observer.doubtClocks();
    this.#agents[agent]?.clock.jump(byMs);
  }

  lagWatches(forMs: number, plural?: string): void {
    this.observer.disturb();
    const paths: Record<string, string> = {
      nodes: "/api/v1/nodes",
      pods: "/api/v1/pods",
      leases: "/apis/coordination.k8s.io",
      configmaps: `/api/v1/namespaces/${NAMESPACE}/configmaps`,
    };
    const pathPrefix = plural === undefined ? "/" : (paths[plural] ?? "/apis/ironfence.io");
    if (plural === undefined || plural === "nodes") this.observer.lagNodes(forMs);
    this.server.faults.lagWatches({ client: "agent", pathPrefix }, forMs);
  }

  /** Lets matching calls of one or all agents fail for a time, or until all faults end. */
  hamper(calls: Calls, action: FaultAction, forMs = Infinity): void {
    const { agent, resource, verbs } = calls;
    const client = agent === undefined ? "agent" : clientOf(agent);
    const takeBack = this.server.faults.inject({ match: { client, resource, verbs }, times: Infinity, action });
    const isExcuse = NEEDED[resource]?.some((verb) => verbs.includes(verb)) === true;
    const named = verbs.map((verb) => `${verb} ${resource}`);
    if (isExcuse) this.observer.hamper(true);
    this.observer.hamperCalls(named, true);
    const end = (): void => {
      if (!this.#hampers.delete(end)) return;
      takeBack();
      this.observer.hamperCalls(named, false);
      if (isExcuse) this.observer.hamper(false);
    };
    this.#hampers.add(end);
    if (forMs !== Infinity) this.clock.schedule(forMs, end);
  }

  /** Delays every call of agents, as an overloaded API server does. */
  slowDown(delayMs: number, forMs: number): void {
    const match = { client: "agent", watch: false };
    const takeBack = this.server.faults.inject({ match, times: Infinity, action: { kind: "delay", delayMs } });
    // Two calls of one second each, to remove a taint, are not an excuse.
    const isExcuse = delayMs > 1_000;
    if (isExcuse) this.observer.hamper(true);
    this.observer.hamperCalls(JUDGED_CALLS, true);
    const end = (): void => {
      if (!this.#hampers.delete(end)) return;
      takeBack();
      this.observer.hamperCalls(JUDGED_CALLS, false);
      if (isExcuse) this.observer.hamper(false);
    };
    this.#hampers.add(end);
    this.clock.schedule(forMs, end);
  }

  /** Deletes all agent leases, as an operator does to make another agent lead. */
  deleteLease(): void {
    this.observer.disturb();
    const leases = this.server.collection(LEASES);
    for (const lease of this.#leases()) if (leases.get(lease) !== undefined) leases.delete(lease);
  }

  /** All leases under which agents lead. */
  #leases(): { namespace: string; name: string }[] {
    const { agents } = this.#run.shape;
    if (agents === undefined) return [];
    const clusters = COMPONENTS.map((component) => ({
      namespace: CLUSTER_LEASE_NAMESPACE,
      name: clusterLeaseName(component),
    }));
    return [...new Set(agents.map(installationOf))].map((name) => ({ namespace: NAMESPACE, name })).concat(clusters);
  }

  /** Ends all temporary faults of agents, devices and hosts. Permanent damage (a disk, a wrong cable) stays. */
  heal(): void {
    this.observer.disturb();
    for (const end of this.#hampers) end();
    this.server.faults.clear();
    this.observer.lagNodes(0);
    for (const host of this.rack.hosts) {
      const bmc = this.rack.bmc(host.name);
      bmc.setReachability("up");
      bmc.orderDelayMs = 0;
      this.devices.pdus.disturb(host.name, "well");
      this.restoreMains(host.name);
    }
    this.operator?.setAway(false);
    this.#isHealed = true;
  }

  /** Whether all temporary faults of agents have ended. */
  get isHealed(): boolean {
    return this.#isHealed;
  }

  #start(agent: number): void {
    const { shape, seed } = this.#run;
    this.#generations += 1;
    const name = `${clientOf(agent)}${this.#generations}`;
    this.#agents[agent] = new AgentProcess(this, {
      name,
      seed: seed * 1_000 + this.#generations,
      installation: shape.agents && installationOf(shape.agents[agent]),
      observes: shape.agents?.[agent]?.observes === true,
      limits: this.#limits,
      ...(shape.agents?.[agent] !== undefined && { clock: shape.agents[agent] }),
      families: familiesOf(shape),
      // The Machines belong to nodes of the same cluster.
      ...(shape.metal3 !== undefined && {
        clusters: ({ runtime, nodes }, signal) => ownCluster(runtime, nodes, signal),
      }),
      interference: this.#interference(),
      ...(this.#record !== undefined && { record: this.#record }),
      onEnd: (why) => {
        this.tell(`${name} ends: ${why.message}`);
        this.#restartLater(agent);
      },
    });
  }

  #restartLater(agent: number): void {
    if (this.#isOver) return;
    const downMs = this.#downMs;
    if (downMs !== RESTART_MS) this.#downUntilMs = this.clock.monotonicMs() + downMs;
    this.#downMs = RESTART_MS;
    const timer = this.clock.schedule(downMs, () => {
      this.#restarts.delete(timer);
      this.#start(agent);
    });
    this.#restarts.add(timer);
  }

  #interference(): Interference {
    const { latencyMs } = this.#run.shape;
    return {
      effect: (agent, what) => {
        const fault = this.#faultAt("effect", this.effects.push(what) - 1);
        if (fault?.at !== "effect") return undefined;
        if (fault.how === "deleteLease") {
          this.tell(`${agent}: can do nothing about its lease, which is deleted, after effect ${fault.index}, ${what}`);
          this.clock.schedule(0, () => this.#cutOffLease(agent, fault.forMs));
          return undefined;
        }
        if (fault.how === "downtime") {
          const { forMs, host, by } = fault;
          this.tell(
            `${agent}: crashes for ${forMs} ms after effect ${fault.index}, ${what}; ${host} comes back (${by})`,
          );
          this.#downMs = forMs;
          this.clock.schedule(COMES_BACK_MS, () => this.#comeBack(host, by));
          return { how: "crash", place: "between" };
        }
        const { at: _at, index, ...effect } = fault;
        this.tell(`${agent}: ${tellEffect(effect)} effect ${index}, ${what}`);
        return effect;
      },
      call: (agent, what) => {
        const fault = this.#faultAt("call", this.calls.push(what) - 1);
        if (fault?.at !== "call") return undefined;
        const { at: _at, index: _index, times: _times, ...call } = fault;
        this.tell(`${agent}: call ${this.calls.length - 1}, ${what}, meets ${JSON.stringify(call)}`);
        return call satisfies CallFault;
      },
      ...(this.#run.faults.some(({ at }) => at === "event") || !["walk", "world"].includes(this.#run.name)
        ? {
            event: (agent: string, what: string): EventFault | undefined => {
              const fault = this.#faultAt("event", this.events.push(what) - 1);
              if (fault?.at !== "event") return undefined;
              this.tell(`${agent}: event ${fault.index}, ${what}, is held for ${fault.holdMs} ms, then ${fault.how}`);
              return { holdMs: fault.holdMs, how: fault.how };
            },
          }
        : {}),
      ...(latencyMs !== undefined && { latencyMs: () => Math.floor((this.#random.next() * latencyMs) / 2) }),
    };
  }

  #comeBack(name: string, by: "resume" | PowerOrderType): void {
    if (by === "resume") this.rack.host(name).resume();
    else this.otherClientOrders(name, by);
  }

  #cutOffLease(client: string, forMs: number): void {
    const agent = this.#agents.findIndex((process) => process?.name === client);
    this.hamper({ agent, resource: "leases", verbs: ["get", "create", "patch"] }, { kind: "hang" }, forMs);
    this.deleteLease();
  }

  #faultAt(at: Fault["at"], index: number): Fault | undefined {
    return this.#isHealed && at !== "effect" ? undefined : this.#faults.get(`${at} ${index}`);
  }

  #createMachines({ okd, metal3 }: Shape): Arena["machines"] {
    if (metal3 !== undefined) {
      const machines = new Metal3Machines(this);
      if (metal3 === "checked") machines.createHealthCheck();
      return machines;
    }
    if (okd === undefined) return undefined;
    const machines = new OkdMachines(this);
    if (okd === "checked") machines.createHealthCheck({ unhealthyConditions: unreadyFor("timeout") }, BY_POWER);
    if (okd === "replaced") machines.replaceDeleted(this.rack.hosts.at(-1)?.name ?? "");
    return machines;
  }

  /** Creates pods, each with a single-writer volume. */
  #createWorkload(replicas: number): void {
    this.create(
      STATEFUL_SETS,
      { namespace: "default", name: "db" },
      {
        spec: {
          replicas,
          serviceName: "db",
          selector: { matchLabels: { app: "db" } },
          template: {
            metadata: { labels: { app: "db" } },
            spec: { containers: [{ name: "db", image: "none" }], tolerations: TOLERATIONS },
          },
          volumeClaimTemplates: [
            {
              metadata: { name: "data" },
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
            },
          ],
        },
      },
    );
  }

  #createHealthCheck(skips: boolean): void {
    this.create(
      BARE_METAL_REMEDIATION_TEMPLATES,
      { namespace: NAMESPACE, name: "reboot" },
      { spec: { template: { spec: { strategy: QUICK } } } },
    );
    const { group, version, kind } = BARE_METAL_REMEDIATION_TEMPLATES;
    this.create(
      NODE_HEALTH_CHECKS,
      { name: "all", ...(skips && { annotations: { [SKIP_DURATION_IF_OFF]: "true" } }) },
      {
        spec: {
          selector: { matchLabels: { "kubernetes.io/os": "linux" } },
          minHealthy: 2,
          unhealthyConditions: unreadyFor("duration"),
          // So that a remediation is kept although its node has come back while no agent ran.
          ...(this.#run.faults.some((fault) => "how" in fault && fault.how === "downtime") && { healthyDelay: "90s" }),
          remediationTemplate: { apiVersion: `${group}/${version}`, kind, namespace: NAMESPACE, name: "reboot" },
        },
      },
    );
  }

  /** Whether an agent is still stopped or delayed, so that its reaction is still to come. */
  get isHampered(): boolean {
    return this.#agents.some((agent) => agent?.isHampered === true);
  }

  /** What has not settled yet (L1). */
  unsettled(): string[] {
    const down = this.clock.monotonicMs() < this.#downUntilMs ? ["an agent is down"] : [];
    return [...down, ...unsettled(this.observer.facts), ...(this.machines?.unmet() ?? [])];
  }

  /** Remediations that are in storage. */
  remediations(): BareMetalRemediation[] {
    const { present, remediations } = this.observer.facts;
    return [...present].flatMap((uid) => remediations.get(uid) ?? []);
  }
}

function installationOf({ installation = INSTALLATION, observes }: AgentShape = {}): string {
  return observes === true ? `${installation}-observe` : installation;
}

/** Prefix of the names of all processes of an agent. */
function clientOf(agent: number): string {
  return `agent-${agent + 1}.`;
}

/** The unhealthy conditions of a health check whose duration field has this name. */
function unreadyFor(duration: "duration" | "timeout"): Record<string, string>[] {
  return ["False", "Unknown"].map((status) => ({ type: "Ready", status, [duration]: "5s" }));
}

function familiesOf({ detector, bareMetalHosts, okd, metal3 }: Shape): Family[] {
  return [
    ...(detector === true ? (["node-health-check"] as const) : []),
    ...(bareMetalHosts === undefined ? [] : (["bare-metal-host"] as const)),
    ...(metal3 === undefined ? [] : (["metal3-remediation"] as const)),
    ...(metal3 === "checked" ? (["machine-health-check"] as const) : []),
    ...(okd === undefined ? [] : (["okd-machine"] as const)),
    ...(okd === "checked" ? (["okd-machine-health-check"] as const) : []),
  ];
}

/** The points at which a fault acts. */
function placesOf(fault: Fault): string[] {
  const times = fault.at === "call" ? fault.times : 1;
  return Array.from({ length: times }, (_, more) => `${fault.at} ${fault.index + more}`);
}

function tellEffect(fault: EffectFault): string {
  switch (fault.how) {
    case "crash":
      return { before: "crashes before", between: "crashes before it hears of", after: "crashes after" }[fault.place];
    case "stop":
      return `${fault.machine === true ? "has its machine suspended" : "is stopped"} for ${fault.forMs} ms after`;
    case "lost":
      return "does not hear of";
    default:
      return "is asked to come back later with";
  }
}
