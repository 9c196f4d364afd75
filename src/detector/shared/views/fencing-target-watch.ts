import { CONFIG_MAPS } from "../../../api/kubernetes/core-types.ts";
import type { ConfigMap } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../api/ironfence/fencing-target.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../../../api/ironfence/stop-switch.ts";
import { trimMeta } from "../../../api/kubernetes/trim.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { serverTimeMs } from "../../../kube/server-time.ts";
import type { Change } from "../../../kube/watched.ts";
import { keyOf } from "../../../kube/watched.ts";
import { nodeKey } from "../../../nodes/subject.ts";
import { MultiMap } from "../../../runtime/multi-map.ts";
import { shareTexts } from "../../../runtime/text/shared-text.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { KindState } from "./dynamic-kinds.ts";
import { DynamicKinds } from "./dynamic-kinds.ts";
import type { ObservedHost, AgedTarget, ObservedTarget } from "../model/observed-host.ts";

/** A target, and when its off proofs arrived. */
interface KnownTarget {
  target: ObservedTarget;
  /** On the monotonic clock; undefined if the proof existed when the watch began. */
  proofArrivedAtMs: number | undefined;
  /** The same for the early proof. */
  earlyProofArrivedAtMs: number | undefined;
}

/** Watches the FencingTargets and the pause in the agent's own namespace. The watches begin with the first call. */
export class FencingTargetWatch {
  readonly #runtime: KubeRuntime;
  readonly #namespace: string;
  readonly #targets: DynamicKinds<ObservedTarget>;
  readonly #switches: DynamicKinds<ConfigMap>;
  /** By node. */
  readonly #known = new MultiMap<KnownTarget>();

  /** @param onChange is called with the node whose host has changed; with undefined if it may be any node. */
  constructor(
    runtime: KubeRuntime,
    namespace: string,
    onChange: (nodeName: string | undefined) => void,
    signal: AbortSignal,
  ) {
    this.#runtime = runtime;
    this.#namespace = namespace;
    const onTarget = (change: Change<ObservedTarget> | undefined): void => {
      if (change !== undefined) this.#observe(change);
      onChange(change?.object.nodeName);
    };
    this.#targets = new DynamicKinds(runtime, { namespace, trim: trimTarget, onChange: onTarget }, signal);
    const switches = {
      namespace,
      fieldSelector: `metadata.name=${STOP_SWITCH_NAME}`,
      trim: trimSwitch,
      onChange: () => onChange(undefined),
    };
    this.#switches = new DynamicKinds(runtime, switches, signal);
  }

  /** Whether the targets or the pause have not been read yet. */
  get pending(): boolean {
    return [this.#targetState(), this.#switchState()].some(({ state }) => state === "pending");
  }

  /** Which read RBAC does not allow, as text for the operator. */
  get refusal(): string | undefined {
    const refused = [this.#targetState(), this.#switchState()].find(({ state }) => state === "forbidden");
    return refused?.state === "forbidden" ? refused.message : undefined;
  }

  /** Why no off proof can be read, as text for the operator. */
  get problem(): string | undefined {
    const isAbsent = this.#targetState().state === "absent";
    return isAbsent ? "the API server does not serve FencingTargets: apply deploy/crds" : this.refusal;
  }

  hostOf(nodeName: string): ObservedHost {
    const state = this.#switchState();
    const key = { namespace: this.#namespace, name: STOP_SWITCH_NAME };
    const present = state.state === "watched" ? state.view.get(key) : undefined;
    const nowMs = this.#runtime.clock.monotonicMs();
    const targets = [...this.#known.get(nodeName)];
    return {
      problem: this.problem ?? (this.pending ? "FencingTargets and the pause are still being read" : undefined),
      stopped: stoppedBy(present, serverTimeMs(this.#runtime))?.reason,
      targets: targets.map(({ target, proofArrivedAtMs, earlyProofArrivedAtMs }) => ({
        target,
        proofArrivedAgoMs: proofArrivedAtMs === undefined ? undefined : nowMs - proofArrivedAtMs,
        earlyProofArrivedAgoMs: earlyProofArrivedAtMs === undefined ? undefined : nowMs - earlyProofArrivedAtMs,
      })),
    };
  }

  /** The names of the nodes of the agent's own cluster that have a target with an early proof. */
  *provenEarly(): Generator<string> {
    if (this.#targetState().state !== "watched") return;
    for (const name of this.#known.keys()) if (this.isProvenEarly(name)) yield name;
  }

  /** Whether a target of the node has an early proof. */
  isProvenEarly(nodeName: string): boolean {
    return [...this.#known.get(nodeName)].some(({ target }) => target.earlyOffProof !== undefined);
  }

  /**
   * Since when the host of a node can be fenced: the transition time of the condition Ready of its FencingTarget, on
   * the clock of the agent that probes. Undefined if the target is not Ready or if several targets name the node.
   */
  fenceableSinceMs(nodeName: string): number | undefined {
    if (this.#targetState().state !== "watched") return undefined;
    const [known, ...others] = this.#known.get(nodeName);
    const ready = others.length === 0 ? known?.target.ready : undefined;
    return ready?.status === "True" ? parseTimeMs(ready.lastTransitionTime) : undefined;
  }

  /** Like `hostOf`, with every object read live, because a watch may be late. */
  async readHost(nodeName: string, signal: AbortSignal): Promise<ObservedHost> {
    const host = this.hostOf(nodeName);
    const { client } = this.#runtime;
    try {
      const [present, targets] = await Promise.all([
        findObject<ConfigMap>(client, CONFIG_MAPS, { namespace: this.#namespace, name: STOP_SWITCH_NAME }, signal),
        Promise.all(host.targets.map((known) => this.#readTarget(known, signal))),
      ]);
      return { ...host, stopped: stoppedBy(present, serverTimeMs(this.#runtime))?.reason, targets: targets.flat() };
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      return { ...host, problem: error.message };
    }
  }

  async #readTarget(
    { target, proofArrivedAgoMs, earlyProofArrivedAgoMs }: AgedTarget,
    signal: AbortSignal,
  ): Promise<AgedTarget[]> {
    const raw = await findObject(this.#runtime.client, FENCING_TARGETS, keyOf(target), signal);
    if (raw === undefined) return [];
    const live = trimTarget(raw);
    const isSameProof = live.metadata.uid === target.metadata.uid && live.offProof?.time === target.offProof?.time;
    const isSameEarly = live.metadata.uid === target.metadata.uid && isSameEarlyProof(live, target);
    return [
      {
        target: live,
        proofArrivedAgoMs: isSameProof ? proofArrivedAgoMs : undefined,
        earlyProofArrivedAgoMs: isSameEarly ? earlyProofArrivedAgoMs : undefined,
      },
    ];
  }

  /** Resolves when nothing runs in the background. Abort the signal first. */
  async settled(): Promise<void> {
    await Promise.all([this.#targets.settled(), this.#switches.settled()]);
  }

  #targetState(): KindState<ObservedTarget> {
    return this.#targets.state(apiVersionOf(FENCING_TARGETS), FENCING_TARGETS.kind);
  }

  #switchState(): KindState<ConfigMap> {
    return this.#switches.state(apiVersionOf(CONFIG_MAPS), CONFIG_MAPS.kind);
  }

  #observe(change: Change<ObservedTarget>): void {
    const { uid } = change.object.metadata;
    const before = change.type === "updated" ? change.previous : change.object;
    const known = [...this.#known.get(before.nodeName)].find((other) => other.target.metadata.uid === uid);
    if (known !== undefined) this.#known.delete(before.nodeName, known);
    if (change.type === "deleted") return;
    const target = change.object;
    const isNews = change.type === "updated" && target.offProof?.time !== change.previous.offProof?.time;
    const proofArrivedAtMs = isNews ? this.#runtime.clock.monotonicMs() : known?.proofArrivedAtMs;
    const isEarlyNews = change.type === "updated" && target.earlyOffProof?.time !== change.previous.earlyOffProof?.time;
    const earlyProofArrivedAtMs = isEarlyNews ? this.#runtime.clock.monotonicMs() : known?.earlyProofArrivedAtMs;
    this.#known.add(target.nodeName, { target, proofArrivedAtMs, earlyProofArrivedAtMs });
  }
}

function trimTarget(raw: KubeObject): ObservedTarget {
  const { apiVersion, kind, metadata, spec, status } = raw as FencingTarget;
  const { nodeName, clusterRef } = spec;
  const conditionOf = (type: string) => {
    const found = status?.conditions?.find((condition) => condition.type === type);
    return found && shareTexts(found);
  };
  return {
    apiVersion,
    kind,
    metadata: trimMeta(metadata, []),
    // The key includes the cluster, so a node of another cluster never matches.
    nodeName: nodeKey({ cluster: clusterRef, name: nodeName }),
    maintenance: spec.maintenance,
    isOwned: status?.owner !== undefined,
    isObserved: status?.observedGeneration === metadata.generation,
    powerState: status?.powerState,
    ready: conditionOf("Ready"),
    identityVerified: conditionOf("IdentityVerified"),
    offProof: status?.offProof,
    earlyOffProof: status?.earlyOffProof,
  };
}

/**
 * Whether both proofs are for the same silence of the same lease. A renewed proof has another time, but is the same
 * proof in this sense.
 */
function isSameEarlyProof({ earlyOffProof: a }: ObservedTarget, { earlyOffProof: b }: ObservedTarget): boolean {
  return a !== undefined && a.leaseUID === b?.leaseUID && a.leaseResourceVersion === b.leaseResourceVersion;
}

function trimSwitch(raw: KubeObject): ConfigMap {
  const { apiVersion, kind, metadata, data } = raw as ConfigMap;
  return { apiVersion, kind, metadata: trimMeta(metadata, []), ...(data !== undefined && { data }) };
}
