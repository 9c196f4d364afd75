import type { ApiServer } from "../../../hack/kube-mock/api-server.ts";
import type { Rack } from "../../../hack/rack/rack.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Lease, Node, Pod, VolumeAttachment } from "../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { CONFIRM, NODE_NAME } from "../../../src/api/names/annotations.ts";
import { EXTERNAL_REMEDIATION_ANNOTATION } from "../../../src/api/okd/okd-machine.ts";
import type { NodeHealthCheck } from "../../../src/api/ironfence/node-health-check.ts";
import { CLUSTER_LEASE_NAMESPACE, clusterLeaseName } from "../../../src/cli/agent/installation.ts";
import type { EventNote } from "../../../src/kube/events.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { DeviceEvent, RackDevices } from "../rack-driver.ts";
import { STOP_SWITCH_NAME } from "../../../src/api/ironfence/stop-switch.ts";
import { asTarget, holdOrder, isOperated } from "./bare-metal-host.ts";
import { isPaused, isStale, PAUSED, pauseEndMs, readyBoot } from "./came-back.ts";
import type { Change, Facts, HostTruth, Invariant, OrderRecord, Step, Wait } from "./facts.ts";
import { conditionOf, keyOfTarget, signerOf, taintKey } from "./facts.ts";

/** The namespace of the agent leases in a simulation. */
const LEASE_NAMESPACE = "ironfence";
const REMEDIATOR_LEASE = clusterLeaseName("remediator");

/** The most violations that are kept. A rule that is broken at every step would fill the memory. */
const VIOLATIONS_MAX = 20;
/**
 * Time until another agent leads after the leader has died: a lease of 15 s and an attempt every 2 s, by a clock that
 * runs a fifth too slowly.
 */
const TAKEOVER_MAX_MS = 22_000;

export interface Violation {
  invariant: string;
  atMs: number;
  what: string;
}

/** Keeps the facts of one world, and checks the invariants after every step. */
export class Observer {
  readonly violations: Violation[] = [];
  /** The agent that is writing now. Requests take effect synchronously within their call. */
  actor: string | undefined;
  readonly orders: OrderRecord[] = [];
  readonly #clock: Clock;
  readonly #server: Pick<ApiServer, "nowMs">;
  readonly #invariants: readonly Invariant[];
  readonly #nodes = new Map<string, Node>();
  readonly #pods = new Map<string, Pod>();
  readonly #attachments = new Map<string, VolumeAttachment>();
  readonly #remediations = new Map<string, BareMetalRemediation>();
  readonly #present = new Set<string>();
  readonly #targets = new Map<string, FencingTarget>();
  /** Deleted targets, by BMC. */
  readonly #gone = new Map<string, FencingTarget>();
  readonly #checks = new Map<string, NodeHealthCheck>();
  readonly #notOffSinceMs = new Map<string, number>();
  readonly #leftOffAtMs = new Map<string, number>();
  readonly #ownTaints = new Map<string, Set<string>>();
  readonly #fenced = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #operated = new Set<string>();
  readonly #warnedAtMs = new Map<string, Map<string, number>>();
  readonly #waits = new Map<string, Wait>();
  readonly #failedBy = new Map<string, { agent: string; atMs: number }>();
  readonly #begun = new Map<
    string,
    { node: string; bootID: string | undefined; wasReady: boolean; isStale: boolean; atMs: number }
  >();
  /** By UID of a remediation that an agent has created for a node, that node at the creation. */
  readonly #created = new Map<string, Node>();
  /** By UID of a remediation with a status, whether it was stale when it got its first status. */
  readonly #stale = new Map<string, boolean>();
  readonly #readySince = new Map<string, { bootID: string; sinceMs: number }>();
  readonly #notReadySinceMs = new Map<string, number>();
  readonly #clearedMembers = new Set<string>();
  #isEtcdExternal = false;
  readonly #heldSinceMs = new Map<string, number>();
  /** The end of the pause by the clock of the API server. */
  #pauseEndsMs = Infinity;
  #limits: Facts["limits"] = { hosts: Infinity, perZone: Infinity };
  readonly #listeners: ((step: Step, facts: Facts) => void)[] = [];
  #leader: { holder: string } | undefined;
  /** Holders of leases: the leader of each installation, and the installation that remediates in this cluster. */
  readonly #holders = new Map<string, string>();
  #installation = "";
  #calmSinceMs = 0;
  #hampers = 0;
  /** By call: the number of faults that affect it now, and when the last one ended. */
  readonly #hampered = new Map<string, { count: number; endedMs: number }>();
  #isAtOnce = false;
  readonly #stopped = new Set<string>();
  /** The start of each running agent. Undefined in a cluster whose agents run in another cluster. */
  #running: Map<string, number> | undefined;
  readonly #diedMs = new Map<string, number>();
  #devicesWell = true;
  #clocksAgree = true;
  #isServerClockSet = false;
  #clocksDoubtedAtMs = -Infinity;
  #heldNodes = 0;
  #nodesLagMs = 0;
  readonly #facts: Facts;

  constructor(
    parts: { clock: Clock & { afterStep: () => void }; server: ApiServer; rack: Rack; devices: RackDevices },
    invariants: readonly Invariant[],
  ) {
    this.#clock = parts.clock;
    this.#server = parts.server;
    this.#invariants = invariants;
    const hosts = new Map<string, HostTruth>(parts.rack.hosts.map((host) => [host.name, host]));
    for (const { name, power } of hosts.values()) if (power !== "Off") this.#notOffSinceMs.set(name, 0);
    this.#facts = this.#liveFacts(hosts);
    parts.server.onChange((change) => this.#onChange(change));
    parts.rack.subscribe((event) => {
      if (event.type !== "powerChanged") return;
      if (event.power !== "Off" && !this.#notOffSinceMs.has(event.host))
        this.#leftOffAtMs.set(event.host, this.#clock.monotonicMs());
      if (event.power === "Off") this.#notOffSinceMs.delete(event.host);
      else if (!this.#notOffSinceMs.has(event.host)) this.#notOffSinceMs.set(event.host, this.#clock.monotonicMs());
      this.#step({ type: "passed" });
    });
    parts.devices.onEvent((event) => this.#onDeviceEvent(event));
    parts.clock.afterStep = () => this.#step({ type: "passed" });
  }

  /** Calls `listener` for every step in which more happens than that time passes. */
  onStep(listener: (step: Step, facts: Facts) => void): void {
    this.#listeners.push(listener);
  }

  get facts(): Facts {
    return this.#facts;
  }

  /** Registers the lease under which agents of an installation lead. */
  useLease(installation: string): void {
    this.#leader ??= { holder: "" };
    if (!this.#holders.has(installation)) this.#holders.set(installation, "");
  }

  /** Sets the limits of the agents in this world. */
  limit(limits: Facts["limits"]): void {
    this.#limits = limits;
  }

  /** Declares that etcd does not run on the hosts of this world. */
  useExternalEtcd(): void {
    this.#isEtcdExternal = true;
  }

  /** Records a Kubernetes Event of an agent. */
  noted({ type, reason, regarding }: EventNote): void {
    if (type !== "Warning") return;
    const { uid } = regarding.metadata;
    const warnedAtMs = this.#warnedAtMs.get(uid) ?? new Map<string, number>();
    this.#warnedAtMs.set(uid, warnedAtMs.set(reason, this.#clock.monotonicMs()));
  }

  /** Runs `act` until its first await. Its writes count as those of `agent`. */
  as<T>(agent: string, act: () => T): T {
    const before = this.actor;
    this.actor = agent;
    try {
      return act();
    } finally {
      this.actor = before;
    }
  }

  /** Runs `act`. Rules are checked only after all its changes. */
  atOnce(act: () => void): void {
    this.disturb();
    this.#isAtOnce = true;
    act();
    this.#isAtOnce = false;
    this.#step({ type: "passed" });
  }

  /** Records that something hampers an agent, or has just stopped hampering it. */
  disturb(): void {
    this.#calmSinceMs = this.#clock.monotonicMs();
  }

  /** Records whether calls that every agent needs now fail or take long. */
  hamper(isHampered: boolean): void {
    this.disturb();
    this.#hampers += isHampered ? 1 : -1;
  }

  /** Records whether calls such as `get nodes` now fail or take long. */
  hamperCalls(calls: readonly string[], isHampered: boolean): void {
    for (const call of calls) {
      const { count = 0 } = this.#hampered.get(call) ?? {};
      this.#hampered.set(call, { count: count + (isHampered ? 1 : -1), endedMs: this.#clock.monotonicMs() });
    }
  }

  #hamperedAt(call: string): number | undefined {
    const known = this.#hampered.get(call);
    return known === undefined || known.count === 0 ? known?.endedMs : this.#clock.monotonicMs();
  }

  /** Records that an agent is stopped or resumed. While the leader is stopped, no agent acts. */
  setStopped(agent: string, isStopped: boolean): void {
    this.disturb();
    if (isStopped) this.#stopped.add(agent);
    else this.#stopped.delete(agent);
  }

  /** Records that an agent starts, without any knowledge, or has ended. While none runs, nothing is done. */
  setRunning(agent: string, isRunning: boolean): void {
    this.disturb();
    this.#running ??= new Map();
    if (isRunning) this.#running.set(agent, this.#clock.monotonicMs());
    else this.#running.delete(agent);
  }

  /** Records that an agent has ended without releasing its lease. Until the lease expires, no agent leads. */
  noteDeath(agent: string): void {
    this.disturb();
    this.#diedMs.set(agent, this.#clock.monotonicMs());
  }

  /** Updates the leader: the holder of the lease of the installation that works in this cluster. */
  #learnLease({ metadata, spec }: Lease): void {
    const { namespace = "", name } = metadata;
    const holder = spec.holderIdentity ?? "";
    if (namespace === LEASE_NAMESPACE && this.#holders.has(name)) this.#holders.set(name, holder);
    else if (namespace === CLUSTER_LEASE_NAMESPACE && name === REMEDIATOR_LEASE) this.#installation = holder;
    else return;
    this.#lead(this.#holders.get(this.#installation.replace(`${LEASE_NAMESPACE}/`, "")) ?? "");
  }

  #lead(holder: string): void {
    if (this.#leader?.holder !== holder) this.disturb();
    this.#leader = { holder };
  }

  #calmSince(): number {
    const atMs = this.#clock.monotonicMs();
    const holder = this.#leader?.holder;
    const isStopped = holder === undefined ? this.#stopped.size > 0 : this.#stopped.has(holder);
    if (isStopped || this.#hampers > 0 || this.#running?.size === 0) return atMs;
    const diedMs = holder === undefined ? undefined : this.#diedMs.get(holder);
    if (diedMs === undefined) return this.#calmSinceMs;
    // An agent that started later must observe itself that the lease is not renewed.
    const lookingSinceMs = Math.max(diedMs, Math.min(...(this.#running?.values() ?? [diedMs])));
    return Math.max(this.#calmSinceMs, Math.min(atMs, lookingSinceMs + TAKEOVER_MAX_MS));
  }

  /** Records whether a watch on Nodes is delayed now. */
  holdNodes(isHeld: boolean): void {
    this.#heldNodes += isHeld ? 1 : -1;
  }

  /** Records the delay of watches on Nodes. */
  lagNodes(byMs: number): void {
    this.#nodesLagMs = byMs;
  }

  /** Records that the clock of an API server was moved. */
  doubtServerClock(): void {
    this.#isServerClockSet = true;
    this.doubtClocks();
  }

  doubtClocks(): void {
    this.#clocksAgree = false;
    this.#clocksDoubtedAtMs = this.#clock.monotonicMs();
  }

  #onChange(change: Change): void {
    this.#learn(change);
    this.#step({ type: "wrote", by: this.actor, change });
    if (change.object.kind === "Node") this.#learnTaints(change);
    if (change.object.kind === "BareMetalHost" && this.actor !== undefined) this.#learnHold(change, this.actor);
    if (change.object.kind === "BareMetalRemediation") this.#learnFailure(change.object as BareMetalRemediation);
  }

  #learnFailure({ metadata, status }: BareMetalRemediation): void {
    if (this.actor === undefined || status?.outcome === undefined || this.#failedBy.has(metadata.uid)) return;
    this.#failedBy.set(metadata.uid, { agent: this.actor, atMs: this.#clock.monotonicMs() });
  }

  #learnWait(remediation: BareMetalRemediation): void {
    const { uid } = remediation.metadata;
    const of = `${remediation.status?.phase} ${conditionOf(remediation, "Processing")?.reason}`;
    const before = this.#waits.get(uid);
    if (before?.of === of) return;
    const sinceMs = this.#clock.monotonicMs();
    this.#waits.set(uid, { of, sinceMs, previousSinceMs: before?.sinceMs ?? sinceMs });
  }

  #learn({ type, object, previous }: Change): void {
    const { uid, name, namespace = "" } = object.metadata;
    const keep = <T extends KubeObject>(map: Map<string, T>, key: string): void => {
      if (type === "DELETED") map.delete(key);
      // The kind determines the type of the object.
      else map.set(key, object as T);
    };
    switch (object.kind) {
      case "Node":
        if (type !== "DELETED" && signerOf(object as Node, "outOfService") !== undefined) this.#fenced.add(name);
        else this.#fenced.delete(name);
        if (type !== "DELETED") this.#clearedMembers.delete(name);
        this.#learnReady(name, type === "DELETED" ? undefined : readyBoot(object as Node));
        return keep(this.#nodes, name);
      case "Pod":
        return keep(this.#pods, `${namespace}/${name}`);
      case "VolumeAttachment":
        return keep(this.#attachments, name);
      case "FencingTarget":
        this.#learnTarget(type, object as FencingTarget, previous as FencingTarget | undefined);
        this.#learnHeld(name, type !== "DELETED" && (object as FencingTarget).spec.maintenance);
        return keep(this.#targets, name);
      case "BareMetalHost":
        if (type === "DELETED") this.#targets.delete(name);
        else this.#targets.set(name, asTarget(object));
        this.#learnHeld(name, type !== "DELETED" && asTarget(object).spec.maintenance);
        if (type !== "DELETED" && isOperated(object)) this.#operated.add(name);
        else this.#operated.delete(name);
        return;
      case "NodeHealthCheck":
        return keep(this.#checks, name);
      case "BareMetalRemediation":
        this.#remediations.set(uid, object as BareMetalRemediation);
        if (type === "ADDED") this.#learnCreated(object as BareMetalRemediation);
        this.#learnBegun(object as BareMetalRemediation);
        this.#learnWait(object as BareMetalRemediation);
        if (type === "DELETED") this.#present.delete(uid);
        else this.#present.add(uid);
        return;
      case "ConfigMap":
        if (name === STOP_SWITCH_NAME) {
          this.#learnHeld(PAUSED, type !== "DELETED" && isPaused(object));
          this.#pauseEndsMs = pauseEndMs(object);
        }
        return;
      case "Metal3Remediation":
        this.#asked.add(uid);
        return;
      case "Machine":
        if (object.metadata.annotations?.[EXTERNAL_REMEDIATION_ANNOTATION] !== undefined) this.#asked.add(uid);
        return;
      case "Lease":
        if (this.#leader !== undefined) this.#learnLease(object as Lease);
        return;
      default:
    }
  }

  #learnHold(change: Change, agent: string): void {
    const { hosts, remediations } = this.#facts;
    const record = holdOrder(change, agent, this.#clock.monotonicMs(), hosts, remediations);
    if (record === undefined) return;
    this.orders.push(record);
    this.#step({ type: "ordered", record });
  }

  #learnReady(name: string, bootID: string | undefined): void {
    if (bootID === undefined) {
      if (this.#readySince.delete(name)) this.#notReadySinceMs.set(name, this.#clock.monotonicMs());
    } else if (this.#readySince.get(name)?.bootID !== bootID) {
      this.#readySince.set(name, { bootID, sinceMs: this.#clock.monotonicMs() });
    }
  }

  #learnHeld(what: string, isHeld: boolean): void {
    if (!isHeld) this.#heldSinceMs.delete(what);
    else if (!this.#heldSinceMs.has(what)) this.#heldSinceMs.set(what, this.#clock.monotonicMs());
  }

  /** What the agent knew of the node counts, whatever is stored later: the node may have come back in the meantime. */
  #learnCreated({ metadata }: BareMetalRemediation): void {
    const node = this.#nodes.get(metadata.annotations?.[NODE_NAME] ?? "");
    if (this.actor !== undefined && node !== undefined) this.#created.set(metadata.uid, node);
  }

  #learnBegun(remediation: BareMetalRemediation): void {
    const { metadata, status } = remediation;
    if (status === undefined) return;
    const wasStale = this.#stale.get(metadata.uid) ?? isStale(remediation, this.#server.nowMs());
    this.#stale.set(metadata.uid, wasStale);
    const { name, bootID, wasReady, cluster } = status?.node ?? {};
    // The facts contain no nodes of other clusters.
    const isElsewhere = cluster !== undefined && cluster.own !== true;
    if (isElsewhere || wasReady === undefined || name === undefined || this.#begun.has(metadata.uid)) return;
    const created = metadata.annotations?.[CONFIRM] === metadata.uid ? undefined : this.#created.get(metadata.uid);
    const bootAtCreation = created?.status.nodeInfo?.bootID ?? bootID;
    const readyAtCreation = created && readyBoot(created);
    const wasReadyAtCreation =
      created === undefined || (readyAtCreation !== undefined && readyAtCreation === (bootID ?? readyAtCreation));
    this.#begun.set(metadata.uid, {
      node: name,
      bootID: bootAtCreation,
      wasReady: wasReady && wasReadyAtCreation,
      isStale: wasStale,
      atMs: this.#clock.monotonicMs(),
    });
  }

  /** Tracks targets. A target that was deleted or changed to another node cannot help a host that is off. */
  #learnTarget(type: Change["type"], target: FencingTarget, previous: FencingTarget | undefined): void {
    const wasMember = previous?.status?.etcdMember !== undefined && target.status?.etcdMember === undefined;
    if (wasMember && this.actor === undefined) this.#clearedMembers.add(target.spec.nodeName);
    const bmc = keyOfTarget(target);
    if (type === "DELETED" && bmc !== undefined) this.#gone.set(bmc, target);
    const isMoved = previous !== undefined && previous.spec.nodeName !== target.spec.nodeName;
    if (type === "DELETED" || isMoved) this.#devicesWell = false;
  }

  /**
   * Tracks the taints of agents: a taint is an agent's from the write that adds it until it is removed. The rules are
   * checked before this write counts.
   */
  #learnTaints({ type, object, previous }: Change): void {
    const { uid } = object.metadata;
    if (type === "DELETED") {
      this.#ownTaints.delete(uid);
      return;
    }
    const present = taintKeys(object);
    const before = taintKeys(previous);
    const own = this.#ownTaints.get(uid) ?? new Set();
    const kept = [...own].filter((key) => present.has(key));
    const added = this.actor === undefined ? [] : [...present].filter((key) => !before.has(key));
    this.#ownTaints.set(uid, new Set([...kept, ...added]));
  }

  #onDeviceEvent(event: DeviceEvent): void {
    if ("trouble" in event) {
      this.#devicesWell = false;
      return;
    }
    const owner = this.#targetOf(event.bmc)?.status?.owner?.uid;
    if ("boot" in event) {
      this.#step({ type: "bootSet", by: event.user, host: event.host, enabled: event.boot, remediation: owner });
      return;
    }
    const status = this.#remediations.get(owner ?? "")?.status;
    const { attempt, retryCount = 0 } = status ?? {};
    const record: OrderRecord = {
      atMs: this.#clock.monotonicMs(),
      agent: event.user,
      host: event.host,
      order: event.order,
      outcome: event.outcome,
      remediation: owner,
      attempt: attempt && { id: attempt.id, action: attempt.action, retryCount },
    };
    this.orders.push(record);
    this.#step({ type: "ordered", record });
  }

  /** The target of a BMC or, if it was deleted, the last one: an order may still be in transit. */
  #targetOf(bmc: string): FencingTarget | undefined {
    for (const target of this.#targets.values()) if (keyOfTarget(target) === bmc) return target;
    return this.#gone.get(bmc);
  }

  #step(step: Step): void {
    if (this.#isAtOnce) return;
    for (const invariant of this.#invariants) {
      const what = invariant.check(this.#facts, step);
      if (what !== undefined) this.report(invariant.name, what);
    }
    if (step.type === "passed") return;
    for (const listener of this.#listeners) listener(step, this.#facts);
  }

  /** Records a violation once. */
  report(invariant: string, what: string): void {
    const known = this.violations.some(
      (other) => other.invariant === invariant && digitless(other.what) === digitless(what),
    );
    if (known || this.violations.length >= VIOLATIONS_MAX) return;
    this.violations.push({ invariant, atMs: this.#clock.monotonicMs(), what });
  }

  /** Facts that always show the present state. */
  #liveFacts(hosts: ReadonlyMap<string, HostTruth>): Facts {
    const now = (): number => this.#clock.monotonicMs();
    const epoch = (): number => this.#clock.nowMs();
    const leader = (): Facts["leader"] => this.#leader;
    const calmSinceMs = (): number => this.#calmSince();
    const devicesWell = (): boolean => this.#devicesWell;
    const clocksAgree = (): boolean => this.#clocksAgree;
    const isServerClockSet = (): boolean => this.#isServerClockSet;
    const clocksDoubtedAtMs = (): number => this.#clocksDoubtedAtMs;
    const heldSinceMs = (): Facts["heldSinceMs"] => {
      if (this.#server.nowMs() >= this.#pauseEndsMs) this.#heldSinceMs.delete(PAUSED);
      return this.#heldSinceMs;
    };
    const nodesLag = (): boolean => this.#heldNodes > 0 || this.#nodesLagMs > 0;
    const limits = (): Facts["limits"] => this.#limits;
    const isEtcdExternal = (): boolean => this.#isEtcdExternal;
    return {
      get atMs() {
        return now();
      },
      get epochMs() {
        return epoch();
      },
      get leader() {
        return leader();
      },
      get calmSinceMs() {
        return calmSinceMs();
      },
      get devicesWell() {
        return devicesWell();
      },
      get clocksAgree() {
        return clocksAgree();
      },
      get isServerClockSet() {
        return isServerClockSet();
      },
      get clocksDoubtedAtMs() {
        return clocksDoubtedAtMs();
      },
      get nodesLag() {
        return nodesLag();
      },
      get limits() {
        return limits();
      },
      get isEtcdExternal() {
        return isEtcdExternal();
      },
      hosts,
      nodes: this.#nodes,
      pods: this.#pods,
      attachments: this.#attachments,
      remediations: this.#remediations,
      present: this.#present,
      targets: this.#targets,
      checks: this.#checks,
      orders: this.orders,
      notOffSinceMs: this.#notOffSinceMs,
      leftOffAtMs: this.#leftOffAtMs,
      ownTaints: this.#ownTaints,
      fenced: this.#fenced,
      asked: this.#asked,
      operated: this.#operated,
      warnedAtMs: this.#warnedAtMs,
      waits: this.#waits,
      failedBy: this.#failedBy,
      begun: this.#begun,
      readySince: this.#readySince,
      notReadySinceMs: this.#notReadySinceMs,
      clearedMembers: this.#clearedMembers,
      get heldSinceMs() {
        return heldSinceMs();
      },
      hamperedAtMs: (call) => this.#hamperedAt(call),
    };
  }
}

function taintKeys(node: KubeObject | undefined): Set<string> {
  // This is only called for Nodes.
  return new Set((node as Node | undefined)?.spec.taints?.map(taintKey));
}

function digitless(text: string): string {
  return text.replaceAll(/[\d.]+ ms/g, "");
}
