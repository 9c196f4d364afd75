import { CONFIG_MAPS } from "../../../api/core-types.ts";
import type { ConfigMap } from "../../../api/core.ts";
import type { FencingTarget } from "../../../api/fencing-target.ts";
import { FENCING_TARGETS } from "../../../api/fencing-target.ts";
import { STOP_SWITCH_NAME, stoppedBy } from "../../../api/stop-switch.ts";
import { trimMeta } from "../../../api/trim.ts";
import type { ObjectKey } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { apiVersionOf } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { serverTimeMs } from "../../../kube/server-time.ts";
import type { Change } from "../../../kube/watched.ts";
import { keyOf } from "../../../kube/watched.ts";
import { nodeKey } from "../../../nodes/subject.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { KindState } from "./dynamic-kinds.ts";
import { DynamicKinds } from "./dynamic-kinds.ts";
import type { ObservedHost, AgedTarget, ObservedTarget } from "../model/observed-host.ts";

/** A target, and when its proof was seen to come. */
interface Seen {
  target: ObservedTarget;
  /** Monotonic; undefined if the proof was there when watching began. */
  proofSeenAtMs: number | undefined;
}

/**
 * What FencingTargets and the stop switch of the agent's own namespace say of hosts' power. They are the only ground that the
 * two halves of ironfence share here, and nothing is watched before the first question.
 */
export class FencingTargetWatch {
  readonly #runtime: KubeRuntime;
  readonly #namespace: string;
  readonly #targets: DynamicKinds<ObservedTarget>;
  readonly #switches: DynamicKinds<ConfigMap>;
  /** By node, then by UID. */
  readonly #seen = new Map<string, Map<string, Seen>>();

  /** @param onChange is called with the node whose host has changed; undefined: any node. */
  constructor(
    runtime: KubeRuntime,
    namespace: string,
    onChange: (nodeName: string | undefined) => void,
    signal: AbortSignal,
  ) {
    this.#runtime = runtime;
    this.#namespace = namespace;
    const onTarget = (change: Change<ObservedTarget> | undefined): void => {
      if (change !== undefined) this.#see(change);
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

  /** Whether what there is has not been read yet. The first question starts the reading. */
  get pending(): boolean {
    return [this.#targetState(), this.#switchState()].some(({ state }) => state === "pending");
  }

  /** What may not be read, in words. */
  get refusal(): string | undefined {
    const refused = [this.#targetState(), this.#switchState()].find(({ state }) => state === "forbidden");
    return refused?.state === "forbidden" ? refused.message : undefined;
  }

  /** Why no host can be known to be off, in words. */
  get problem(): string | undefined {
    const isAbsent = this.#targetState().state === "absent";
    return isAbsent ? "the API server does not serve FencingTargets: apply deploy/crds" : this.refusal;
  }

  hostOf(nodeName: string): ObservedHost {
    const state = this.#switchState();
    const key = { namespace: this.#namespace, name: STOP_SWITCH_NAME };
    const present = state.state === "watched" ? state.view.get(key) : undefined;
    const nowMs = this.#runtime.clock.monotonicMs();
    const targets = [...(this.#seen.get(nodeName)?.values() ?? [])];
    return {
      problem: this.problem ?? (this.pending ? "FencingTargets and the pause are still being read" : undefined),
      stopped: stoppedBy(present, serverTimeMs(this.#runtime))?.reason,
      targets: targets.map(({ target, proofSeenAtMs }) => ({
        target,
        proofSeenAgoMs: proofSeenAtMs === undefined ? undefined : nowMs - proofSeenAtMs,
      })),
    };
  }

  /** Since when the only FencingTarget of a node has been Ready, so that its host can be fenced; on the clock of the agent that probes. */
  fenceableSinceMs(nodeName: string): number | undefined {
    if (this.#targetState().state !== "watched") return undefined;
    const [seen, ...others] = this.#seen.get(nodeName)?.values() ?? [];
    const ready = others.length === 0 ? seen?.target.ready : undefined;
    return ready?.status === "True" ? parseTimeMs(ready.lastTransitionTime) : undefined;
  }

  /** Like `hostOf`, with every object read live: a watch may be behind. */
  async readHost(nodeName: string, signal: AbortSignal): Promise<ObservedHost> {
    const host = this.hostOf(nodeName);
    try {
      const [present, targets] = await Promise.all([
        this.#read<ConfigMap>(CONFIG_MAPS, { namespace: this.#namespace, name: STOP_SWITCH_NAME }, signal),
        Promise.all(host.targets.map((seen) => this.#readTarget(seen, signal))),
      ]);
      return { ...host, stopped: stoppedBy(present, serverTimeMs(this.#runtime))?.reason, targets: targets.flat() };
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      return { ...host, problem: error.message };
    }
  }

  async #readTarget({ target, proofSeenAgoMs }: AgedTarget, signal: AbortSignal): Promise<AgedTarget[]> {
    const raw = await this.#read<KubeObject>(FENCING_TARGETS, keyOf(target), signal);
    if (raw === undefined) return [];
    const live = trimTarget(raw);
    const isSeen = live.metadata.uid === target.metadata.uid && live.offProof?.time === target.offProof?.time;
    return [{ target: live, proofSeenAgoMs: isSeen ? proofSeenAgoMs : undefined }];
  }

  /** Resolves once nothing runs on in the background; abort the signal before. */
  async settled(): Promise<void> {
    await Promise.all([this.#targets.settled(), this.#switches.settled()]);
  }

  #targetState(): KindState<ObservedTarget> {
    return this.#targets.state(apiVersionOf(FENCING_TARGETS), FENCING_TARGETS.kind);
  }

  #switchState(): KindState<ConfigMap> {
    return this.#switches.state(apiVersionOf(CONFIG_MAPS), CONFIG_MAPS.kind);
  }

  async #read<T extends KubeObject>(type: ResourceType, key: ObjectKey, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await this.#runtime.client.get<T>(type, key, signal);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  #see(change: Change<ObservedTarget>): void {
    const { uid } = change.object.metadata;
    const before = change.type === "updated" ? change.previous : change.object;
    const known = this.#seen.get(before.nodeName)?.get(uid);
    this.#seen.get(before.nodeName)?.delete(uid);
    if (this.#seen.get(before.nodeName)?.size === 0) this.#seen.delete(before.nodeName);
    if (change.type === "deleted") return;
    const target = change.object;
    const isNews = change.type === "updated" && target.offProof?.time !== change.previous.offProof?.time;
    const proofSeenAtMs = isNews ? this.#runtime.clock.monotonicMs() : known?.proofSeenAtMs;
    const ofNode = this.#seen.get(target.nodeName) ?? new Map<string, Seen>();
    this.#seen.set(target.nodeName, ofNode.set(uid, { target, proofSeenAtMs }));
  }
}

function trimTarget(raw: KubeObject): ObservedTarget {
  const { apiVersion, kind, metadata, spec, status } = raw as FencingTarget;
  const { nodeName, clusterRef } = spec;
  const conditionOf = (type: string) => status?.conditions?.find((condition) => condition.type === type);
  return {
    apiVersion,
    kind,
    metadata: trimMeta(metadata, []),
    // A node of another cluster is never taken for one of this cluster.
    nodeName: nodeKey({ cluster: clusterRef, name: nodeName }),
    maintenance: spec.maintenance,
    isOwned: status?.owner !== undefined,
    isObserved: status?.observedGeneration === metadata.generation,
    powerState: status?.powerState,
    ready: conditionOf("Ready"),
    identityVerified: conditionOf("IdentityVerified"),
    offProof: status?.offProof,
  };
}

function trimSwitch(raw: KubeObject): ConfigMap {
  const { apiVersion, kind, metadata, data } = raw as ConfigMap;
  return { apiVersion, kind, metadata: trimMeta(metadata, []), ...(data !== undefined && { data }) };
}
