import type { BareMetalRemediation, BareMetalRemediationStatus } from "../api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { keyOf } from "../kube/watched.ts";
import { abortReason } from "../runtime/clock.ts";
import { backoffMs } from "../runtime/random.ts";
import { decide } from "./decide.ts";
import type { EffectContext } from "./effect-context.ts";
import { fieldsOf } from "./effect-context.ts";
import { runEffect } from "./effects.ts";
import type { Lookup } from "./find-host.ts";
import { findHost } from "./find-host.ts";
import type { RemediatorMetrics } from "./metrics.ts";
import type { ClusterRef } from "../clusters/workload-clusters.ts";
import type { NodeCluster } from "./node-clusters.ts";
import { etcdNodes } from "./quorum.ts";
import type { Session } from "./session.ts";
import type { Decision, Note } from "./snapshot.ts";
import { seenAfter } from "./seen.ts";
import type { State } from "./state.ts";
import { conditionOf } from "./status.ts";
import { clusterKey } from "./subject.ts";
import type { HostDirectory } from "./targets/host.ts";
import type { SnapshotDeps } from "./take-snapshot.ts";
import { stopOf, takeSnapshot } from "./take-snapshot.ts";
import { API_RETRY_MAX_MS, API_RETRY_MIN_MS } from "./timings.ts";

/** Steps of one run, after which others get their turn. */
const STEPS_MAX = 100;
/** How long a run that used them all pauses: nothing that makes progress needs so many. */
const BUSY_PAUSE_MS = 1_000;
/** While the API server fails the power of a fenced host is still looked at so often. */
const API_WAIT_MAX_MS = 1_000;
/** Failed guards in a row before one is treated as a failure of the API server. */
const CONFLICTS_MAX = 10;

/** Effects that the API server has no part in. */
const DEVICE_EFFECTS: readonly string[] = ["readPower", "readWhole", "verifyIdentity", "closeDevices"];

export interface WalkerDeps extends SnapshotDeps {
  /** The nodes of a cluster, and members of etcd that it has lost. */
  nodesOf(cluster: ClusterRef | undefined): NodeCluster["nodes"];
  directory: HostDirectory;
  metrics: RemediatorMetrics;
  handOver: (why: string) => void;
}

/**
 * The thin shell around `decide`: takes a snapshot, stores the status that was decided, runs the effects one at a time, and
 * begins again, until there is nothing to do but wait.
 *
 * @returns after how long to come again; undefined where only a change can bring news.
 */
export async function walk(deps: WalkerDeps, session: Session, signal: AbortSignal): Promise<number | undefined> {
  for (let step = 0; step < STEPS_MAX; step += 1) {
    if (signal.aborted) throw abortReason(signal);
    const { state } = session;
    session.watch(state.name, signal);
    const host = findHost(deps.directory, session);
    if (host.found) await session.useTarget(host.host);
    const snapshot = takeSnapshot(deps, session, state, host);
    const decision = decide(snapshot, session.now());
    if (decision.status === undefined && decision.effects.length === 0) return decision.nextCheckMs;
    const apiWaitMs = waitForApi(session, decision);
    if (apiWaitMs > 0) return apiWaitMs;
    try {
      if (decision.status !== undefined) await store(deps, session, state, decision.status, decision.notes, signal);
      const context: EffectContext = {
        runtime: deps.runtime,
        nodeRuntime: session.cluster.runtime,
        session,
        host: host.found ? host.host : undefined,
        node: snapshot.node,
        siblings: snapshot.siblings,
        turns: deps.turns,
        handOver: deps.handOver,
        etcdNodes: () => etcdNodes(deps.nodesOf(session.subject.cluster).values()),
        mayOrder: () => mayOrder(deps, session, host),
        identifyOwnCluster: (running) => deps.clusters.identifyOwn(running),
      };
      for (const effect of decision.effects) {
        await runEffect(context, effect, signal);
        if (effect.do === "dropFinalizer") return undefined;
      }
      session.conflicts = 0;
      if (!isDeviceOnly(decision)) session.seen = { ...session.seen, kube: undefined };
    } catch (error) {
      if (signal.aborted) throw abortReason(signal);
      if (!(await recover(deps, session, error, signal))) return undefined;
    }
  }
  return BUSY_PAUSE_MS;
}

function isDeviceOnly(decision: Decision): boolean {
  return decision.status === undefined && decision.effects.every((effect) => DEVICE_EFFECTS.includes(effect.do));
}

/** Milliseconds that a decision has to wait because the API server has just failed; 0 for one that does not need it. */
function waitForApi(session: Session, decision: Decision): number {
  const { kube } = session.seen;
  if (kube === undefined || isDeviceOnly(decision)) return 0;
  return Math.min(kube.retryAtMs - session.now().monotonicMs, API_WAIT_MAX_MS);
}

/**
 * After a failed guard the object is read live, and all is decided anew; any other failure of the API is waited out.
 *
 * @returns false where the remediation is gone.
 */
async function recover(deps: WalkerDeps, session: Session, error: unknown, signal: AbortSignal): Promise<boolean> {
  const { runtime } = deps;
  const stale = isKubeError(error, "Conflict", "NotFound", "Invalid", "AlreadyExists");
  if (!isKubeError(error)) throw error;
  if (stale && session.conflicts < CONFLICTS_MAX) {
    session.conflicts += 1;
    return refresh(runtime, session, signal);
  }
  const failures = (session.seen.kube?.failures ?? 0) + 1;
  const inMs = backoffMs(runtime.random, API_RETRY_MIN_MS, API_RETRY_MAX_MS, failures - 1);
  const retryAtMs = session.now().monotonicMs + Math.max(inMs, error.retryAfterMs ?? 0);
  session.seen = { ...session.seen, kube: { message: error.message, refused: !error.retryable, failures, retryAtMs } };
  session.conflicts = 0;
  runtime.logger.warn({ ...fieldsOf(session), failures, err: error }, "API call failed, will try again");
  if (isKubeError(error, "Forbidden", "Unauthorized")) {
    runtime.events.record({
      regarding: session.remediation,
      type: "Warning",
      reason: "ApiRefused",
      action: session.status.phase ?? "Resolving",
      note: error.message,
    });
  }
  return true;
}

/** Reads the object live. @returns false where it is gone. */
export async function refresh(runtime: KubeRuntime, session: Session, signal: AbortSignal): Promise<boolean> {
  try {
    const key = keyOf(session.remediation);
    const live = await runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, key, signal);
    if (live.metadata.uid !== session.uid) return false;
    session.learn(live);
    return true;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return false;
    if (!isKubeError(error) || !error.retryable) throw error;
    // Not known: the guards of the next write will tell, or another look.
    runtime.logger.warn({ ...fieldsOf(session), err: error }, "remediation not read live, will try again");
    return true;
  }
}

/** Stores a status, guarded; tells people only then. */
async function store(
  deps: WalkerDeps,
  session: Session,
  from: State,
  status: BareMetalRemediationStatus,
  notes: readonly Note[],
  signal: AbortSignal,
): Promise<void> {
  const { runtime, metrics } = deps;
  const { metadata } = session.remediation;
  const { nodeName: namedBefore } = session;
  const guard = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
  const stored = await runtime.client.patch<BareMetalRemediation>(
    BARE_METAL_REMEDIATIONS,
    keyOf(session.remediation),
    guard,
    [{ op: "add", path: "/status", value: status }],
    { subresource: "status" },
    signal,
  );
  session.learn(stored);
  const entered = session.state;
  const to = entered.name;
  session.seen = seenAfter(session.seen, from, entered);
  // What was seen of the node before it was named was seen of none.
  if (session.nodeName !== namedBefore) session.seen = { ...session.seen, examined: undefined, lease: undefined };
  for (const { type, reason, message } of notes) {
    runtime.logger.info({ ...fieldsOf(session), state: to, step: reason, message }, "remediation step");
    const { nodeName, cluster } = session.subject;
    // Events are told to the cluster of the remediation, which has no node of another one.
    const isThere = clusterKey(cluster) === "" && nodeName !== undefined;
    const node = isThere ? session.cluster.nodes.get({ name: nodeName }) : undefined;
    const regarding = session.remediation;
    runtime.events.record({
      regarding,
      ...(node !== undefined && { related: node }),
      type,
      reason,
      action: to,
      note: message,
    });
  }
  if (to === from.name) return;
  const nowMs = session.now().monotonicMs;
  metrics.left(from.name, (nowMs - session.enteredAtMs) / 1_000);
  session.enteredAtMs = nowMs;
  if (to === "Succeeded" || to === "Failed") {
    metrics.finished(to, conditionOf(status, "Succeeded")?.reason ?? to);
  }
}

/** Whether a power order that was decided on may still go out: nobody has stopped it or edited its target meanwhile. */
function mayOrder(deps: WalkerDeps, session: Session, decidedOn: Lookup): boolean {
  const host = findHost(deps.directory, session);
  if (!host.found || !decidedOn.found || host.host.version !== decidedOn.host.version) return false;
  if (host.host.takenBack(session.subject) !== undefined) return false;
  return stopOf(deps.stopSwitch, host) === undefined;
}
