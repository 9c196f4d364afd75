import { KubeError } from "../../kube/errors.ts";
import { abortReason } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { takesTaintOff } from "./session/api-failures.ts";
import { decide } from "../machine/decide.ts";
import { reportApiFailure } from "../machine/rules/waits/api-failure.ts";
import type { RatePermits } from "../early/rate-permits.ts";
import type { EffectContext } from "../effects/context/effect-context.ts";
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
import { UNTAINT_TRY_MAX_MS, UNTAINT_TRY_MIN_MS } from "../machine/model/decision/timings.ts";
import type { CallProgress } from "./recover.ts";
import { awaitsTaint, recover, waitForApi } from "./recover.ts";
import { WorkAborted, whileProven } from "./while-proven.ts";
import type { Decision } from "../machine/model/decision/decision.ts";
import type { ApiCall } from "../machine/model/facts/api-failure.ts";
import type { Now, Snapshot } from "../machine/model/facts/snapshot.ts";
import type { DecidedBy } from "../machine/log/functions.ts";
import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";
import type { StoreStatusDeps } from "./store-status.ts";
import { reportUnanswered, storeStatus } from "./store-status.ts";
import type { WaitReports } from "./wait-reports.ts";
import { mayBePostponed } from "./wait-reports.ts";

/** The most steps of one run, so that other remediations are served too. */
const STEPS_MAX = 100;
/** The pause after STEPS_MAX steps. A remediation that makes progress needs fewer. */
const BUSY_PAUSE_MS = 1_000;

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
  /** Shared by all remediations that only wait. */
  waitReports: WaitReports;
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
      const report = !isIdle || awaitsTaint(session) ? reportApiFailure(snapshot, now) : undefined;
      if (report === undefined || waitForApi(session, report) > 0) return isIdle ? decision.nextCheckMs : apiWaitMs;
      record(deps.recorder, "reportApiFailure", snapshot, now, report);
      decision = report;
    } else if (decision.status !== undefined && mayBePostponed(snapshot, decision.status)) {
      const inMs = session.postponeReport(decision.status, () => deps.waitReports.reserve());
      if (inMs > 0) return inMs;
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
      if (!(await recover(deps.runtime, session, progress, error, signal))) return undefined;
    } finally {
      const oldest = session.apiFailures.oldest(session.now().monotonicMs);
      if (oldest !== session.observations.kube) session.observe({ type: "ApiCallsObserved", oldest });
    }
  }
  return BUSY_PAUSE_MS;
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

/** Bounds one try to remove the taint, so that a lost answer does not delay the next try. */
async function inTime(
  { runtime }: ReconcileDeps,
  session: RemediationSession,
  call: ApiCall,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const tryMs = Math.min(UNTAINT_TRY_MIN_MS * 2 ** session.apiFailures.failuresOf(call), UNTAINT_TRY_MAX_MS);
  const what = `removing the out-of-service taint from node ${session.nodeName ?? ""}`;
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
