import { isDeepStrictEqual } from "node:util";
import { EarlyWait } from "./early-wait.ts";
import { NodeDowntime } from "./node-downtime.ts";
import { StoredTimes } from "./stored-times.ts";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../api/ironfence/bare-metal-remediation.ts";
import { NHC_TIMED_OUT } from "../../../api/names/annotations.ts";
import { trimRemediation } from "../../../nodes/trim.ts";
import { isLaterVersion } from "../../../kube/watch/resource-version.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { serverTimeMs } from "../../../kube/server-time.ts";
import { SparseMap } from "../../../runtime/sparse-map.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { KubeletLeases } from "../../../nodes/leases/kubelet-leases.ts";
import type { Downtime } from "../../telemetry/metrics.ts";
import type { TracedFence } from "../../telemetry/fence-tracer.ts";
import { ApiFailures } from "./api-failures.ts";
import { SessionWatches } from "./session-watches.ts";
import type { BoundedStrategy, LeaseVersion, ParsedStrategy } from "../../machine/model/decision/strategy.ts";
import { parseStrategy } from "../../machine/model/decision/strategy.ts";
import type { Observations } from "../../machine/model/facts/observations.ts";
import type { ApiCall } from "../../machine/model/facts/api-failure.ts";
import type { Now, Snapshot } from "../../machine/model/facts/snapshot.ts";
import type { State } from "../../machine/model/decision/state.ts";
import { parseState, withUnknownSpec } from "../../machine/model/decision/state.ts";
import type { NodeCluster, NodeClusters } from "../../clusters/node-clusters.ts";
import type { Subject } from "../../../nodes/subject.ts";
import { clusterKey, clusterOf, isUnresolved, subjectOf } from "../../../nodes/subject.ts";
import type { FencedHost, HostPower } from "../../hosts/model/host.ts";
import { nothingObserved } from "../../machine/model/facts/nothing-observed.ts";
import { observe } from "../../machine/observe.ts";
import type { RemediationEvent } from "../../machine/model/facts/event.ts";
import { nameOf } from "../../../kube/watched.ts";
import type { KdumpMessages } from "../../kdump/kdump-messages.ts";
import type { DecisionRecorder } from "../../../telemetry/decisions/recorder.ts";

export interface SessionDeps {
  runtime: KubeRuntime;
  clusters: NodeClusters;
  /** Receives every event; nothing is recorded if it is absent. */
  recorder?: DecisionRecorder | undefined;
  /** Messages of crash kernels; undefined if the agent does not receive them. */
  kdump?: KdumpMessages | undefined;
}

/**
 * What this process holds for one remediation: the newest known version of its object, the observations, the open
 * devices, and the watches that wake it. `close` ends it.
 */
export class RemediationSession {
  readonly uid: string;
  /** The newest state of the object that this process knows; the watch may lag behind our own writes. */
  remediation: BareMetalRemediation;
  /** Whether this process has read the object live or written it. Until then, a late watch may show an old version. */
  wasReadLive = false;
  power: HostPower | undefined;
  /** Statuses whose writes got no answer, each with the function that reports its step. One of them may be stored. */
  unanswered: readonly { status: BareMetalRemediationStatus; report: () => void }[] = [];
  /** Failed guards of each call since it last succeeded. */
  readonly conflicts = new SparseMap<ApiCall, number>();
  /** Calls to the API server that fail. */
  readonly apiFailures = new ApiFailures();
  /** Monotonic time at which the present state was entered, for metrics. */
  enteredAtMs: number;
  /** Whether the release of the workloads was counted. */
  isReleaseCounted = false;
  readonly #runtime: KubeRuntime;
  readonly #recorder: DecisionRecorder | undefined;
  #observations: Observations = nothingObserved();
  readonly #clusters: NodeClusters;
  readonly #rewinds: number | undefined;
  readonly #earlyWait = new EarlyWait();
  readonly #times = new StoredTimes();
  readonly #downtime = new NodeDowntime();
  readonly #watches: SessionWatches;
  readonly #lifetime = new AbortController();
  readonly wake: () => void;
  #heldKey = "";
  #release = releaseNothing;
  #targetVersion: string | undefined;
  #state: { of: BareMetalRemediation; state: State } | undefined;
  #unreadSinceMs: number | undefined;
  /** What the first report of a wait says of the node and its Machine, until it is stored. */
  #unreported: Pick<BareMetalRemediationStatus, "node" | "machine"> | undefined;
  /** When a postponed report may be stored (monotonic milliseconds). */
  #reportAtMs: number | undefined;
  #strategy: (ParsedStrategy & { generation: number | undefined }) | undefined;

  /** @param deps `runtime` of the cluster with the remediation. The node may be in another one of `clusters`. */
  constructor(
    { runtime, clusters, recorder, kdump }: SessionDeps,
    remediation: BareMetalRemediation,
    wake: () => void,
    rewinds?: number,
  ) {
    this.#runtime = runtime;
    this.#clusters = clusters;
    this.#rewinds = rewinds;
    this.uid = remediation.metadata.uid;
    this.#recorder = recorder;
    this.wake = wake;
    this.#watches = new SessionWatches(this, runtime, wake, kdump);
    this.remediation = remediation;
    this.enteredAtMs = runtime.clock.monotonicMs();
    recorder?.begin(this.uid, `${remediation.kind} ${nameOf(remediation)}`);
  }

  /** What this process has learned about the remediation. Only `observe` changes it. */
  get observations(): Observations {
    return this.#observations;
  }

  observe(event: RemediationEvent): void {
    this.#observations = observe(this.#observations, event);
    this.#recorder?.event(this.uid, event);
  }

  get subject(): Subject {
    return subjectOf(this.remediation);
  }

  /** Undefined while the node is not resolved, and for a Machine without a Node. */
  get nodeName(): string | undefined {
    return this.subject.nodeName;
  }

  /**
   * The cluster of the node, its lease and its pods. If the Machine was read but is not in the status yet, it is the
   * cluster of that Machine. The first read of this property makes the session hold the cluster, which keeps it
   * connected.
   */
  get cluster(): NodeCluster {
    const { subjectMachine: read } = this.observations;
    const isNews = isUnresolved(this.remediation) && read?.found === true;
    const cluster = isNews ? clusterOf(read.machine) : this.subject.cluster;
    const key = clusterKey(cluster);
    if (key !== this.#heldKey) {
      const previous = this.#release;
      this.#heldKey = key;
      this.#release = this.#clusters.hold(cluster);
      previous();
    }
    return this.#clusters.of(cluster);
  }

  /** The fence, as its trace names it. */
  get traced(): TracedFence {
    const { uid, nodeName } = this;
    const { namespace, name, creationTimestamp } = this.remediation.metadata;
    return { uid, name: `${namespace ?? ""}/${name}`, nodeName, createdMs: parseTimeMs(creationTimestamp) };
  }

  /** How long the node has been down (`NodeDowntime`). */
  downtime(leases: Pick<KubeletLeases, "of"> | undefined): Downtime | undefined {
    return this.#downtime.measure(this, leases);
  }

  get status(): BareMetalRemediationStatus {
    return this.remediation.status ?? {};
  }

  /** The stored status, with the node and its Machine as a postponed report will record them. */
  get statusWithPostponed(): BareMetalRemediationStatus {
    const [status, unreported] = [this.status, this.#unreported];
    // Until something is stored, an edited annotation may name another node.
    const isOfNode = unreported !== undefined && unreported.node?.name === this.nodeName;
    return isOfNode ? { ...status, ...unreported } : status;
  }

  /**
   * Postpones the report of a wait. The node is recorded as it is when the wait begins.
   *
   * @param reserve reserves a time for the report, unless it has one (monotonic milliseconds).
   * @returns the milliseconds until the report may be stored. If it may be stored now, the reservation is used up.
   */
  postponeReport({ node, machine }: BareMetalRemediationStatus, reserve: () => number): number {
    const atMs = this.#reportAtMs ?? reserve();
    const inMs = atMs - this.now().monotonicMs;
    this.#reportAtMs = inMs > 0 ? atMs : undefined;
    if (!isRecorded(this.status)) this.#unreported = { node, ...(machine !== undefined && { machine }) };
    return inMs;
  }

  get state(): State {
    const { remediation } = this;
    // Cached, because every step reads it. Each version of the remediation is a new object.
    if (this.#state?.of !== remediation) this.#state = { of: remediation, state: this.#readState() };
    return this.#state.state;
  }

  #readState(): State {
    const { status, metadata } = this.remediation;
    const known = parseState(status);
    const { unknown } = this.#parseStrategy();
    // A deleted or timed-out remediation is undone from any state, even if this version does not know all of its spec.
    const isGivenUp = metadata.deletionTimestamp !== undefined || metadata.annotations?.[NHC_TIMED_OUT] !== undefined;
    return unknown === undefined || isGivenUp ? known : withUnknownSpec(known, unknown);
  }

  /** The strategy as far as this version knows the spec. `state` is `Unknown` if it does not know all of it. */
  get strategy(): BoundedStrategy {
    return this.#parseStrategy().strategy;
  }

  /** The milliseconds until the host may be powered on. */
  get earlyForMs(): number {
    const { powerOnNotBeforeMs } = this.strategy;
    if (powerOnNotBeforeMs === undefined) return 0;
    return this.#earlyWait.remainingMs(powerOnNotBeforeMs, serverTimeMs(this.#runtime), this.now().monotonicMs);
  }

  /**
   * The version of the node's lease whose silence an early remediation relies on. It counts even after the duration,
   * because the node may have renewed its lease after the proof without any agent noticing.
   */
  get provenLease(): LeaseVersion | undefined {
    return this.strategy.provenLease;
  }

  #parseStrategy(): ParsedStrategy {
    const { generation } = this.remediation.metadata;
    // Cached, because every step reads it. The API server increases the generation with each change of the spec.
    if (this.#strategy === undefined || generation === undefined || this.#strategy.generation !== generation) {
      this.#strategy = { generation, ...parseStrategy(this.remediation.spec) };
    }
    return this.#strategy;
  }

  /**
   * Whether the session is about that object, and the view has not gone back to older data since the session began
   * (`Watched.rewinds`).
   */
  isOf(watched: BareMetalRemediation | undefined, rewinds: number | undefined): boolean {
    return watched?.metadata.uid === this.uid && rewinds === this.#rewinds;
  }

  /** Takes the object from a live read or the answer to a write, without what caches do not keep. */
  learn(current: BareMetalRemediation): void {
    this.#take(trimRemediation(current));
    this.wasReadLive = true;
  }

  /**
   * Takes the version that the watch shows, if it is newer than the known one. If it is the same, its object replaces
   * the answer to our own write, so that thousands of waiting remediations are kept in memory only once.
   */
  absorb(watched: BareMetalRemediation): void {
    const { remediation } = this;
    if (isLaterVersion(watched.metadata.resourceVersion, remediation.metadata.resourceVersion)) this.#take(watched);
    else if (watched !== remediation && isDeepStrictEqual(watched, remediation)) {
      this.remediation = watched;
      if (this.#state?.of === remediation) this.#state = { ...this.#state, of: watched };
    }
  }

  /**
   * Takes a newer version of the object. A new status counts as stored even if the answer to our own write was lost.
   */
  #take(next: BareMetalRemediation): void {
    const [before, from, namedBefore] = [this.remediation.status, this.state, this.nodeName];
    this.remediation = next;
    const after = next.status;
    if (isRecorded(after)) this.#unreported = undefined;
    const isNodeNamed = this.nodeName !== namedBefore;
    if (after?.phase === before?.phase && after?.attempt?.id === before?.attempt?.id && !isNodeNamed) return;
    this.observe({ type: "StatusStored", from, to: this.state, isNodeNamed });
  }

  /**
   * Notes the version of the host's target. If the target was edited, its devices may belong to another host now: the
   * observations about them are dropped and their connections are closed.
   */
  async useTarget({ ref, version }: Pick<FencedHost, "ref" | "version">): Promise<void> {
    const isEdited = this.#targetVersion !== undefined && this.#targetVersion !== version;
    this.#targetVersion = version;
    const { claim } = this.observations;
    const isOther = claim?.owned === true && claim.targetUid !== ref.uid;
    if (isEdited || isOther) this.observe({ type: "TargetChanged", targetUid: ref.uid, isEdited });
    if (!isEdited) return;
    await this.closeDevices();
  }

  /** Whether the last check found that the agent cannot read something that the remediation needs. */
  get waitsForInput(): boolean {
    return this.#unreadSinceMs !== undefined;
  }

  /** Records what the remediation needs and the agent cannot read; undefined if everything is read. */
  waitsFor(unread: string | undefined): { message: string; forMs: number } | undefined {
    const { monotonicMs } = this.now();
    this.#unreadSinceMs = unread === undefined ? undefined : (this.#unreadSinceMs ?? monotonicMs);
    if (unread === undefined || this.#unreadSinceMs === undefined) return undefined;
    return { message: unread, forMs: monotonicMs - this.#unreadSinceMs };
  }

  now(): Now {
    const { clock } = this.#runtime;
    return { epochMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  }

  /** The time that is left in the present state. */
  remainingMs(state: State, strategy: BoundedStrategy): number {
    return this.#times.remainingMs(state, strategy, this.status, this.now());
  }

  /** When the intent of the last order was stored (`StoredTimes`). */
  intentTimes(state: State): Pick<Snapshot, "intentAtMs" | "intentSeenAtMs"> {
    return this.#times.intentTimes(state, this.now());
  }

  /** When this process first saw that an AC cycle was ordered; -Infinity if none was. */
  get cycleSeenAtMs(): number {
    return this.#times.cycleSeenAtMs(this.status, this.now());
  }

  /**
   * Whether the remediation is past the deadline of its state. Never in Resolving, because there it may wait for other
   * remediations.
   */
  get isOverdue(): boolean {
    const { state } = this;
    return state.name !== "Resolving" && this.remainingMs(state, this.strategy) <= 0;
  }

  /** Aborts when the session ends. */
  get lifetime(): AbortSignal {
    return this.#lifetime.signal;
  }

  /** Starts and ends the watches that the state needs. */
  watch(state: State["name"], signal: AbortSignal): void {
    this.#watches.keep(state, signal);
  }

  /** Ends watches, closes devices and releases the node's cluster. Never throws. */
  async close(): Promise<void> {
    this.#lifetime.abort();
    this.#watches.close();
    this.#release();
    this.#recorder?.end(this.uid);
    await this.closeDevices();
  }

  async closeDevices(): Promise<void> {
    const { power } = this;
    this.power = undefined;
    await power?.close();
  }
}

/** For a session that holds no connection to a workload cluster. One function for all sessions saves memory. */
function releaseNothing(): void {}

/** Whether a status says of the node what the report of a wait says. */
function isRecorded(status: BareMetalRemediationStatus | undefined): boolean {
  return status?.node?.wasReady !== undefined;
}
