import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { isKubeError, KubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { keyOf } from "../../kube/watched.ts";
import { abortReason } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { takesTaintOff } from "./session/api-failures.ts";
import { decide } from "../machine/decide.ts";
import { reportApiFailure } from "../machine/rules/waits/api-failure.ts";
import type { RatePermits } from "../early/rate-permits.ts";
import type { EffectContext } from "../effects/context/effect-context.ts";
import { fieldsOf } from "../effects/context/effect-context.ts";
import { runEffect } from "../effects/run-effect.ts";
import type { Lookup } from "./find-host.ts";
import { findHost } from "./find-host.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { NodeCluster } from "../clusters/node-clusters.ts";
import { etcdNodes } from "../machine/rules/admission/quorum.ts";
import type { RemediationSession } from "./session/session.ts";
import type { State } from "../machine/model/decision/state.ts";
import type { OrderFacts } from "../machine/rules/orders/order-obstacle.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { HostDirectory } from "../hosts/model/host.ts";
import type { SnapshotDeps } from "./take-snapshot.ts";
import { watchedHold, takeSnapshot } from "./take-snapshot.ts";
import { REFRESH_MAX_MS, UNTAINT_TRY_MAX_MS, UNTAINT_TRY_MIN_MS } from "../machine/model/decision/timings.ts";
import { WorkAborted, whileProven } from "./while-proven.ts";
import type { Decision } from "../machine/model/decision/decision.ts";
import type { ApiCall } from "../machine/model/facts/api-failure.ts";
import type { Now, Snapshot } from "../machine/model/facts/snapshot.ts";
import type { DecidedBy } from "../machine/log/functions.ts";
import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";
import type { StoreStatusDeps } from "./store-status.ts";
import { reportUnanswered, storeStatus } from "./store-status.ts";

/** The most steps of one run, so that other remediations are served too. */
const STEPS_MAX = 100;
/** The pause after STEPS_MAX steps. A remediation that makes progress needs fewer. */
const BUSY_PAUSE_MS = 1_000;
/** The longest wait for the API server at a time, because the power of a fenced host must still be checked. */
const API_WAIT_MAX_MS = 1_000;
/**
 * How often the guard of a call may fail before the next time counts as a failure of the API server: an admission
 * policy refuses with the same status. Successes of other calls in between do not reset the number.
 */
const CONFLICTS_MAX = 10;

/** Effects that make no call to the API server, except to read the Secret of a device. */
const DEVICE_EFFECTS: readonly string[] = ["readPower", "readWhole", "verifyIdentity", "closeDevices"];

export interface ReconcileDeps extends SnapshotDeps, StoreStatusDeps {
  /** The nodes of a cluster, with its etcd members whose Node was deleted. */
  nodesOf(cluster: ClusterRef | undefined): NodeCluster["nodes"];
  /** Whether the etcd of a cluster, by its `clusterKey`, runs outside of it. */
  hasExternalEtcd(cluster: string): boolean;
  directory: HostDirectory;
  /** Shared by all remediations that began early. */
  earlyPodWrites?: RatePermits;
  handOver: (why: string) => void;
  recorder: DecisionRecorder | undefined;
}

/**
 * The thin shell around `decide`: takes a snapshot, stores the status of the decision, runs its effects one at a time,
 * and repeats this until the remediation can only wait.
 *
 * @returns the milliseconds until the next check; undefined if only a change can lead to another decision.
 */
export async function reconcile(
  deps: ReconcileDeps,
  session: RemediationSession,
  signal: AbortSignal,
): Promise<number | undefined> {
  for (let step = 0; step < STEPS_MAX; step += 1) {
    if (signal.aborted) throw abortReason(signal);
    reportUnanswered(session);
    const { state } = session;
    session.watch(state.name, signal);
    const host = findHost(deps.directory, session);
    if (host.found) await session.useTarget(host.host);
    const snapshot = takeSnapshot(deps, session, state, host);
    const now = session.now();
    let decision = decide(snapshot, now);
    record(deps.recorder, "decide", snapshot, now, decision);
    const apiWaitMs = waitForApi(session, decision);
    const isIdle = decision.status === undefined && decision.effects.length === 0;
    if (isIdle || apiWaitMs > 0) {
      // A taint that cannot be put on is tried again only after a long wait.
      const isReportable = !isIdle || session.observations.kube?.call === "taint";
      const report = isReportable ? reportApiFailure(snapshot, now) : undefined;
      if (report === undefined || waitForApi(session, report) > 0) return isIdle ? decision.nextCheckMs : apiWaitMs;
      record(deps.recorder, "reportApiFailure", snapshot, now, report);
      decision = report;
    }
    const progress: CallProgress = { present: "store", startedMs: 0 };
    const context: EffectContext = {
      runtime: deps.runtime,
      nodeRuntime: session.cluster.runtime,
      session,
      host: host.found ? host.host : undefined,
      node: snapshot.node,
      siblings: snapshot.siblings,
      admissions: deps.admissions,
      earlyPodWrites: session.strategy.powerOnNotBeforeMs === undefined ? undefined : deps.earlyPodWrites,
      handOver: deps.handOver,
      etcdNodes: () => etcdNodes(deps.nodesOf(session.subject.cluster).values()),
      hasExternalEtcd: deps.hasExternalEtcd(clusterKey(session.subject.cluster)),
      orderFacts: () => orderFacts(deps, session, host),
      readStopSwitch: (reading) => deps.stopSwitch.read(reading),
      identifyOwnCluster: (running) => deps.clusters.identifyOwn(running),
    };
    const work = (signal: AbortSignal): Promise<void> => perform(deps, context, session, decision, progress, signal);
    try {
      if (mayReadPowerMeanwhile(state, decision)) {
        const leftMs = decision.status === undefined && snapshot.remainingMs > 0 ? snapshot.remainingMs : Infinity;
        const isCurrent = (): boolean => isSameHost(host, findHost(deps.directory, session));
        await whileProven(context, { withinMs: leftMs, isCurrent }, signal, work);
      } else {
        await work(signal);
      }
      if (decision.effects.some((effect) => effect.do === "dropFinalizer")) return undefined;
    } catch (error) {
      if (signal.aborted) throw abortReason(signal);
      if (error instanceof WorkAborted) continue;
      if (!(await recover(deps, session, progress, error, signal))) return undefined;
    } finally {
      const oldest = session.apiFailures.oldest(session.now().monotonicMs);
      if (oldest !== session.observations.kube) session.observe({ type: "ApiCallsObserved", oldest });
    }
  }
  return BUSY_PAUSE_MS;
}

/** The call of a decision that is being made. */
interface CallProgress {
  present: ApiCall;
  startedMs: number;
}

/** Stores the status of a decision, then runs its effects, one at a time. */
async function perform(
  deps: ReconcileDeps,
  context: EffectContext,
  session: RemediationSession,
  decision: Decision,
  calls: CallProgress,
  signal: AbortSignal,
): Promise<void> {
  const begin = (call: ApiCall): void => {
    calls.present = call;
    calls.startedMs = session.now().monotonicMs;
  };
  if (decision.status !== undefined) {
    begin("store");
    const from = session.state;
    await storeStatus(deps, session, from, decision.status, decision.notes, signal);
    session.apiFailures.succeeded("store");
    session.conflicts.delete("store");
    if (session.state.name !== from.name) {
      session.apiFailures.clear();
      session.conflicts.clear();
      // From now on, the limits count the remediation by its stored state.
      deps.admissions.withdraw(session.uid);
    }
  }
  for (const effect of decision.effects) {
    begin(effect.do);
    const run = (signal: AbortSignal): Promise<void> => runEffect(context, effect, signal);
    await (takesTaintOff(effect.do) ? inTime(deps, session, effect.do, signal, run) : run(signal));
    session.apiFailures.succeeded(effect.do);
    session.conflicts.delete(effect.do);
  }
}

/** Bounds one try to take the taint off, so that a lost answer does not delay the next try. */
async function inTime(
  { runtime }: ReconcileDeps,
  session: RemediationSession,
  call: ApiCall,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const tryMs = Math.min(UNTAINT_TRY_MIN_MS * 2 ** session.apiFailures.failuresOf(call), UNTAINT_TRY_MAX_MS);
  const what = `taking the out-of-service taint off node ${session.nodeName ?? ""}`;
  try {
    await withDeadline(runtime.clock, what, tryMs, signal, run);
  } catch (error) {
    throw error instanceof DeadlineError ? new KubeError("Timeout", error.message, { cause: error }) : error;
  }
}

/** The states in which a host that is proven off may have the out-of-service taint or a deleted Node. */
const PROVEN_STATES: readonly State["name"][] = ["PoweringOff", "Releasing", "Provisioning"];

/** Effects during which the power is not read, because they call the devices themselves. */
const CALLS_DEVICES: readonly string[] = [
  ...DEVICE_EFFECTS,
  "examine",
  "sendNmi",
  "acCycle",
  "forceOff",
  "powerOn",
  "setBootOverride",
];

function mayReadPowerMeanwhile({ name }: State, decision: Decision): boolean {
  return PROVEN_STATES.includes(name) && !decision.effects.some((effect) => CALLS_DEVICES.includes(effect.do));
}

/**
 * The milliseconds that a decision must wait because one of its calls has failed; 0 if it may be carried out now. This
 * includes effects on devices, because a device is opened with a Secret of the API server.
 */
function waitForApi(session: RemediationSession, decision: Decision): number {
  const calls: ApiCall[] = decision.effects.map((effect) => effect.do);
  if (decision.status !== undefined) calls.push("store");
  return Math.min(session.apiFailures.waitMs(calls, session.now().monotonicMs), API_WAIT_MAX_MS);
}

/**
 * Handles an error of a step. After a failed guard, it reads the remediation live, and the next step decides again. It
 * reports any other failure of the API server, and the call is repeated after a backoff.
 *
 * @returns false if the remediation is gone.
 */
async function recover(
  deps: ReconcileDeps,
  session: RemediationSession,
  calls: CallProgress,
  error: unknown,
  signal: AbortSignal,
): Promise<boolean> {
  const { runtime } = deps;
  const stale = isKubeError(error, "Conflict", "NotFound", "Invalid", "AlreadyExists");
  if (!isKubeError(error)) throw error;
  const { present: call, startedMs } = calls;
  const conflicts = session.conflicts.get(call) ?? 0;
  if (stale && conflicts < CONFLICTS_MAX) {
    session.conflicts.set(call, conflicts + 1);
    return refresh(runtime, session, signal);
  }
  const times = { startedMs, nowMs: session.now().monotonicMs };
  const failure = session.apiFailures.failed(call, error, runtime.random, times);
  const { failures } = failure;
  // From now on, a failed guard leads to one live read before it counts as a failure again.
  session.conflicts.set(call, CONFLICTS_MAX - 1);
  runtime.logger.warn({ ...fieldsOf(session), call, failures, err: error }, "API call failed, will try again");
  if (session.apiFailures.isWarningDue(failure, times.nowMs)) {
    runtime.events.record({
      regarding: session.remediation,
      type: "Warning",
      reason: "ApiFailing",
      action: session.status.phase ?? "Resolving",
      note: failure.message,
    });
  }
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

/** Reads the remediation live. @returns false if it is gone. */
export async function refresh(
  runtime: KubeRuntime,
  session: RemediationSession,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const key = keyOf(session.remediation);
    const current = await withDeadline(
      runtime.clock,
      "reading the remediation live",
      REFRESH_MAX_MS,
      signal,
      (bounded) => runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, key, bounded),
    );
    if (current.metadata.uid !== session.uid) return false;
    session.learn(current);
    return true;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return false;
    const isTransient = error instanceof DeadlineError || (isKubeError(error) && error.retryable);
    if (signal.aborted || !isTransient) throw error;
    // The remediation may still exist. The next read shows whether it does, and so does the guard of the next write.
    runtime.logger.warn({ ...fieldsOf(session), err: error }, "remediation not read live, will try again");
    return true;
  }
}

/** Whether the host and its configuration are still those of the decision. */
function isSameHost(decidedOn: Lookup, present: Lookup): boolean {
  if (!present.found || !decidedOn.found) return present.found === decidedOn.found;
  return present.host.version === decidedOn.host.version;
}

/** What a power order depends on, as it is now. `decidedOn` is the host for which the order was decided. */
function orderFacts(deps: ReconcileDeps, session: RemediationSession, decidedOn: Lookup): OrderFacts {
  const host = findHost(deps.directory, session);
  return {
    isSameHost: host.found && isSameHost(decidedOn, host) && host.host.takenBack(session.subject) === undefined,
    watchedHold: watchedHold(deps.stopSwitch, host),
    readHold: session.observations.hold,
  };
}

function record(
  recorder: DecisionRecorder | undefined,
  by: DecidedBy,
  snapshot: Snapshot,
  now: Now,
  decision: Decision,
): void {
  if (recorder === undefined) return;
  const { observations: _followFromEvents, ...input } = snapshot;
  recorder.decision(snapshot.remediation.uid, by, input, now, decision);
}
