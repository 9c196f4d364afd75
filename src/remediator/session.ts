import { NHC_TIMED_OUT, NODE_NAME } from "../api/annotations.ts";
import type { BareMetalRemediation, BareMetalRemediationStatus } from "../api/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../api/bare-metal-remediation.ts";
import { LEASES, NODE_LEASE_NAMESPACE, PODS } from "../api/core-types.ts";
import type { Lease, Pod } from "../api/core.ts";
import { trimMeta } from "../api/trim.ts";
import { isLaterVersion } from "../kube/resource-version.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { parseTimeMs } from "../runtime/time.ts";
import type { Plan } from "./plan.ts";
import { planOf } from "./plan.ts";
import { NOTHING_READ } from "./power-seen.ts";
import type { LeaseSeen, Now, Seen } from "./snapshot.ts";
import { nothingSeen } from "./snapshot.ts";
import type { State, StateName } from "./state.ts";
import { parseState } from "./state.ts";
import type { Subject } from "./subject.ts";
import { localNode } from "./subject.ts";
import type { FencedHost, HostPower } from "./targets/host.ts";
import { DEVICE_FINAL_RETRY_MS } from "./timings.ts";

/** A kubelet's lease without a duration of its own: its default. */
const LEASE_DURATION_SECONDS = 40;

const WATCHES_LEASE: readonly StateName[] = [
  "Verifying",
  "PoweringOff",
  "Releasing",
  "Provisioning",
  "PoweringOn",
  "Rejoining",
];

/**
 * What this process holds about one remediation: its object as last known, what was seen, the open devices, and the watches
 * that wake it. It ends with `close`.
 */
export class Session {
  readonly uid: string;
  /** The newest state of the object that this process knows; the watch may lag behind our own writes. */
  remediation: BareMetalRemediation;
  seen: Seen = nothingSeen();
  power: HostPower | undefined;
  /** Failed guards in a row. */
  conflicts = 0;
  /** Monotonic time at which the present state was entered, for metrics. */
  enteredAtMs: number;
  readonly #runtime: KubeRuntime;
  readonly #nodeRuntime: KubeRuntime;
  readonly #wake: () => void;
  #stopLease: AbortController | undefined;
  #stopPods: AbortController | undefined;
  #targetVersion: string | undefined;
  #deadline: { key: string; atMs: number } | undefined;
  #plan: { generation: number | undefined; plan: Plan } | undefined;

  /** @param runtimes `nodeRuntime` of the cluster that holds the node, its lease and its pods. */
  constructor(
    { runtime, nodeRuntime }: { runtime: KubeRuntime; nodeRuntime: KubeRuntime },
    remediation: BareMetalRemediation,
    wake: () => void,
  ) {
    this.#runtime = runtime;
    this.#nodeRuntime = nodeRuntime;
    this.#wake = wake;
    this.uid = remediation.metadata.uid;
    this.remediation = remediation;
    this.enteredAtMs = runtime.clock.monotonicMs();
  }

  get nodeName(): string {
    return nodeNameOf(this.remediation);
  }

  get subject(): Subject {
    return localNode(this.nodeName);
  }

  get status(): BareMetalRemediationStatus {
    return this.remediation.status ?? {};
  }

  /** @throws Error where the status is not one that this version wrote. */
  get state(): State {
    return parseState(this.remediation.status);
  }

  /** @throws Error where the spec breaks the schema. */
  get plan(): Plan {
    const { generation } = this.remediation.metadata;
    // The API server counts the generation up with each change of the spec, and a plan is asked for at every step.
    if (this.#plan === undefined || generation === undefined || this.#plan.generation !== generation) {
      this.#plan = { generation, plan: planOf(bareMetalRemediationSpecSchema.parse(this.remediation.spec)) };
    }
    return this.#plan.plan;
  }

  /** Takes what the watch says, unless it is older than what is known already. */
  absorb(watched: BareMetalRemediation): void {
    if (isLaterVersion(watched.metadata.resourceVersion, this.remediation.metadata.resourceVersion)) {
      this.remediation = watched;
    }
  }

  /**
   * Takes note of how the host's target is configured: what was learned from its devices, and the open connections to them,
   * count for nothing once it is edited, since they may be another host's.
   */
  async useTarget({ ref, version }: Pick<FencedHost, "ref" | "version">): Promise<void> {
    const { claim } = this.seen;
    // What was taken is another target than this one, which was made anew.
    if (claim?.owned === true && claim.targetUid !== ref.uid) this.seen = { ...this.seen, claim: undefined };
    const edited = this.#targetVersion !== undefined && this.#targetVersion !== version;
    this.#targetVersion = version;
    if (!edited) return;
    this.seen = { ...this.seen, identity: undefined, power: NOTHING_READ, device: undefined, override: undefined };
    await this.closeDevices();
  }

  now(): Now {
    const { clock } = this.#runtime;
    return { epochMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  }

  /**
   * What is left of the present state's time. The stored deadline is a wall-clock time; from the moment at which this
   * process first sees it, only its own clock counts, so that a jump of the wall clock ends nothing early.
   */
  remainingMs(state: State, plan: Plan): number {
    if (!("attempt" in state) || state.attempt === undefined) return Infinity;
    const key = `${state.name} ${state.attempt.deadlineMs}`;
    const now = this.now();
    if (this.#deadline?.key !== key) {
      const longestMs = Math.max(plan.timeoutMs, plan.powerOffTimeoutMs, plan.powerOnTimeoutMs, plan.drainTimeoutMs);
      const leftMs = Math.min(Math.max(state.attempt.deadlineMs - now.epochMs, 0), longestMs + DEVICE_FINAL_RETRY_MS);
      this.#deadline = { key, atMs: now.monotonicMs + leftMs };
    }
    return this.#deadline.atMs - now.monotonicMs;
  }

  /** Starts and ends the watches that the state needs: the node's lease, and its pods while they are to leave. */
  watch(state: StateName, signal: AbortSignal): void {
    if (!WATCHES_LEASE.includes(state)) {
      this.#stopLease?.abort();
      this.#stopLease = undefined;
    } else if (this.#stopLease === undefined) {
      this.#stopLease = new AbortController();
      this.#watchLease(AbortSignal.any([signal, this.#stopLease.signal]));
    }
    if (state !== "Releasing") {
      this.#stopPods?.abort();
      this.#stopPods = undefined;
    } else if (this.#stopPods === undefined) {
      this.#stopPods = new AbortController();
      this.#watchPods(AbortSignal.any([signal, this.#stopPods.signal]));
    }
  }

  #watchLease(signal: AbortSignal): void {
    const leases = this.#nodeRuntime.watch<Lease>(
      {
        type: LEASES,
        namespace: NODE_LEASE_NAMESPACE,
        fieldSelector: `metadata.name=${this.nodeName}`,
        trim: (raw) => (raw.metadata.name === this.nodeName ? (raw as Lease) : undefined),
      },
      signal,
    );
    leases.subscribe((change) => {
      if (change.type !== "deleted" && this.recordLease(change.object, undefined)) this.#wake();
    });
  }

  #watchPods(signal: AbortSignal): void {
    const pods = this.#nodeRuntime.watch<Pod>(
      { type: PODS, fieldSelector: `spec.nodeName=${this.nodeName}`, trim: trimPod },
      signal,
    );
    pods.subscribe((change) => {
      if (change.type !== "deleted" || this.seen.drain === undefined) return;
      // A pod has gone: look again at once instead of at the next turn.
      this.seen = { ...this.seen, drain: { ...this.seen.drain, atMs: -Infinity } };
      this.#wake();
    });
  }

  /**
   * Takes one look at the node's lease. @param readAtMs when it was read live; absent for a watch event.
   * @returns whether it shows a renewal since the last look.
   */
  recordLease(lease: Lease | undefined, readAtMs: number | undefined): boolean {
    const known = this.seen.lease;
    const next = leaseSeen(known, lease, this.now().monotonicMs, readAtMs);
    this.seen = { ...this.seen, lease: next };
    return known !== undefined && next.renewedAtMs !== known.renewedAtMs;
  }

  /** Ends watches and closes devices. Never throws. */
  async close(): Promise<void> {
    this.#stopLease?.abort();
    this.#stopPods?.abort();
    await this.closeDevices();
  }

  async closeDevices(): Promise<void> {
    const { power } = this;
    this.power = undefined;
    await power?.close();
  }
}

/**
 * The node that a remediation is about: the one that it has begun with, since an annotation may be edited while that node's
 * host is off; before that the one that the annotation names, else the remediation's own name.
 */
export function nodeNameOf({ metadata, status }: BareMetalRemediation): string {
  return status?.node?.name ?? metadata.annotations?.[NODE_NAME] ?? metadata.name;
}

/** What caches keep of a remediation. */
export function trimRemediation(raw: KubeObject): BareMetalRemediation {
  const remediation = raw as BareMetalRemediation;
  return { ...remediation, metadata: trimMeta(remediation.metadata, [NODE_NAME, NHC_TIMED_OUT]) };
}

function trimPod(raw: KubeObject): Pod {
  const { metadata } = raw as Pod;
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion: raw.apiVersion, kind: raw.kind, metadata: { name, namespace, uid, resourceVersion }, spec: {} };
}

/**
 * Pure: the next view of a lease. A watch event that is older than a live read changes nothing. A renewal need not bring a
 * later time: the node's clock may have been set back.
 */
export function leaseSeen(
  known: LeaseSeen | undefined,
  lease: Lease | undefined,
  nowMs: number,
  readAtMs: number | undefined,
): LeaseSeen {
  const renewTimeMs = parseTimeMs(lease?.spec.renewTime);
  const uid = lease?.metadata.uid ?? "none";
  const resourceVersion = lease?.metadata.resourceVersion ?? "";
  const durationMs = (lease?.spec.leaseDurationSeconds ?? LEASE_DURATION_SECONDS) * 1_000;
  if (known === undefined) {
    return { uid, resourceVersion, renewTimeMs, durationMs, renewedAtMs: undefined, readAtMs: readAtMs ?? -Infinity };
  }
  const looked = { ...known, readAtMs: readAtMs ?? known.readAtMs };
  if (lease === undefined || renewTimeMs === undefined) return looked;
  const isRenewal = isLaterVersion(resourceVersion, known.resourceVersion) && renewTimeMs !== known.renewTimeMs;
  return uid !== known.uid || isRenewal
    ? { ...looked, uid, resourceVersion, renewTimeMs, durationMs, renewedAtMs: nowMs }
    : looked;
}
