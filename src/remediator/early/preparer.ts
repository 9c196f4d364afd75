import { EXCLUDE_FROM_REMEDIATION } from "../../api/names/labels.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { serverTimeMs } from "../../kube/server-time.ts";
import type { Watched } from "../../kube/watched.ts";
import type { FencingTargetDirectory } from "../hosts/fencing-target/directory.ts";
import { whyTargetUnusable } from "./candidate.ts";

/**
 * How long before the end of a duration a power-off is prepared. The drivers close a connection that is idle for 3 s.
 * So the connection to a fast BMC is still open when the remediation begins.
 */
export const PREPARED_BEFORE_MS = 2_500;
/**
 * How long prepared devices are kept open after the end of the duration. The session of a BMC may expire after 30 s.
 */
export const PREPARED_KEPT_MS = 10_000;
/** The most hosts that are being prepared or kept prepared at the same time. */
export const PREPARED_AT_ONCE = 8;
/** The shortest time between two preparations of one target: a kubelet chooses since when its node is not Ready. */
export const PREPARED_GAP_MIN_MS = 60_000;

/** Which power-offs health checks announce. */
export interface PowerOffsAnnounced {
  /** When a health check may create a remediation of the node; undefined if none is going to. */
  durationEndMs(node: Node): number | undefined;
  /** Calls `listener` when this may have changed. @returns a function that stops that. */
  onAnnounced(listener: () => void): () => void;
}

export interface PreparerDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  directory: FencingTargetDirectory;
  announced: PowerOffsAnnounced;
  /** Whether power-offs are held. */
  isStopped: () => boolean;
  /** Whether another operator powers the host of a target. */
  isManaged: (target: FencingTarget) => boolean;
}

/** The outage of a node, and when its duration is over. */
interface NodeOutage {
  nodeUid: string;
  /** Empty if it is not known. */
  bootID: string;
  endMs: number;
  /** Set when the preparation has begun or cannot begin. */
  preparation: { end(): void } | undefined;
}

/** For an outage for which no devices are opened. */
const NOT_PREPARED = { end: (): void => undefined };

/**
 * Opens the devices of hosts in the last seconds of the durations of their nodes, so that a remediation finds them
 * connected and logged in. It sends no order and decides nothing: a remediation reads everything again that its order
 * depends on. For each outage it reads once what a fence reads before its order. Without an outage it calls no BMC.
 */
export class Preparer {
  readonly #deps: PreparerDeps;
  readonly #outages = new Map<string, NodeOutage>();
  readonly #running = new Set<Promise<void>>();
  /** When each target was last prepared, by UID; monotonic. */
  readonly #preparedAtMs = new Map<string, number>();
  #wake: () => void = () => undefined;

  constructor(deps: PreparerDeps) {
    this.#deps = deps;
  }

  /** Runs until `signal` aborts. When it settles, all its tasks have ended and all devices are closed. */
  async run(signal: AbortSignal): Promise<void> {
    const { nodes, announced } = this.#deps;
    const note = (node: Node, isGone = false): void => {
      if (this.#note(node, isGone)) this.#wake();
    };
    const unsubscribe = [
      nodes.subscribe(({ type, object }) => note(object, type === "deleted")),
      announced.onAnnounced(() => {
        for (const node of nodes.values()) note(node);
      }),
    ];
    for (const node of nodes.values()) this.#note(node, false);
    try {
      while (!signal.aborted) await this.#wait(this.#look(signal), signal);
    } finally {
      for (const stop of unsubscribe) stop();
      await Promise.all(this.#running);
    }
  }

  /**
   * Notes the state of a node. If its outage is over or another one has begun, the preparation ends.
   *
   * @returns whether anything has changed.
   */
  #note(node: Node, isGone: boolean): boolean {
    const { name, uid } = node.metadata;
    const endMs = isGone ? undefined : this.#deps.announced.durationEndMs(node);
    const known = this.#outages.get(name);
    const bootID = node.status.nodeInfo?.bootID ?? "";
    const isSame = known?.nodeUid === uid && known.bootID === bootID && known.endMs === endMs;
    if (isSame || (known === undefined && endMs === undefined)) return false;
    known?.preparation?.end();
    if (endMs === undefined) this.#outages.delete(name);
    else this.#outages.set(name, { nodeUid: uid, bootID, endMs, preparation: undefined });
    return true;
  }

  /**
   * Begins the preparations that are due. @returns the time until the next one is due; undefined if only a change can
   * make one due.
   */
  #look(signal: AbortSignal): number | undefined {
    const nowMs = serverTimeMs(this.#deps.runtime);
    let nextMs: number | undefined;
    for (const [name, outage] of this.#outages) {
      if (outage.preparation !== undefined || outage.endMs <= nowMs) continue;
      const inMs = outage.endMs - PREPARED_BEFORE_MS - nowMs;
      if (inMs > 0) nextMs = Math.min(nextMs ?? Infinity, inMs);
      else this.#begin(name, outage, signal);
    }
    return nextMs;
  }

  #begin(name: string, outage: NodeOutage, signal: AbortSignal): void {
    outage.preparation = NOT_PREPARED;
    const target = this.#targetOf(name);
    const node = this.#deps.nodes.get({ name });
    // In a large outage not every host is prepared. A remediation without prepared devices opens them itself.
    if (target === undefined || node === undefined || this.#running.size >= PREPARED_AT_ONCE) return;
    if (!this.#mayPrepare(target.metadata.uid)) return;
    const ended = new AbortController();
    outage.preparation = { end: () => ended.abort(new Error("the outage is over")) };
    const { clock } = this.#deps.runtime;
    const keptMs = outage.endMs - serverTimeMs(this.#deps.runtime) + PREPARED_KEPT_MS;
    const timer = clock.schedule(keptMs, () => ended.abort(new Error("no remediation has begun in time")));
    const running = this.#prepare(node, target, AbortSignal.any([signal, ended.signal])).finally(() => {
      timer.cancel();
      this.#running.delete(running);
    });
    this.#running.add(running);
  }

  /** Whether a target was not prepared within PREPARED_GAP_MIN_MS. If so, notes that it is prepared now. */
  #mayPrepare(uid: string): boolean {
    const nowMs = this.#deps.runtime.clock.monotonicMs();
    for (const [known, atMs] of this.#preparedAtMs) {
      if (nowMs - atMs >= PREPARED_GAP_MIN_MS) this.#preparedAtMs.delete(known);
    }
    if (this.#preparedAtMs.has(uid)) return false;
    this.#preparedAtMs.set(uid, nowMs);
    return true;
  }

  /** The only target that names the node, if its host may be powered off. */
  #targetOf(name: string): FencingTarget | undefined {
    const { directory, nodes, isStopped, isManaged } = this.#deps;
    const [target, other] = directory.index.byNode({ cluster: undefined, name });
    if (target === undefined || other !== undefined || isStopped() || isManaged(target)) return undefined;
    const isExcluded = nodes.get({ name })?.metadata.labels?.[EXCLUDE_FROM_REMEDIATION] === "true";
    const isConflict = directory.conflictOf(target.metadata.uid) !== undefined;
    return isExcluded || isConflict || whyTargetUnusable(target) !== undefined ? undefined : target;
  }

  /** Keeps the devices open until a remediation takes them, the outage is over, or no remediation has begun in time. */
  async #prepare(node: Node, target: FencingTarget, signal: AbortSignal): Promise<void> {
    const { runtime, directory } = this.#deps;
    const { logger } = runtime;
    const fields = { node: node.metadata.name, target: target.metadata.name };
    const onReady = (): void => logger.info(fields, "power-off prepared: the duration of the node is about to end");
    try {
      await directory.prepare(target, { node, onReady }, signal);
    } catch (error) {
      if (!signal.aborted) logger.info({ ...fields, err: error }, "power-off not prepared");
    }
  }

  /** Waits for `ms` or for a change, whichever comes first. */
  async #wait(ms: number | undefined, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = ms === undefined ? undefined : this.#deps.runtime.clock.schedule(ms, resolve);
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    await promise;
    signal.removeEventListener("abort", onAbort);
    timer?.cancel();
  }
}
