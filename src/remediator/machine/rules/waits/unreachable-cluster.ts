import { fail } from "../attempts.ts";
import { transition, run, waitBecause } from "../transitions.ts";
import type { BoundedStrategy } from "../../model/decision/strategy.ts";
import type { Reason } from "../../model/decision/reasons.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import type { State } from "../../model/decision/state.ts";
import { isFinal } from "../../model/decision/state.ts";
import { statusCondition, processing } from "../../model/status.ts";
import { clusterKey } from "../../../../nodes/subject.ts";
import { CLUSTER_RECHECK_MS, POWER_REREAD_MS } from "../../model/decision/timings.ts";
import type { Decision, Effect } from "../../model/decision/decision.ts";
import type { ClusterProblem } from "../../model/facts/cluster-problem.ts";

// Decides about a remediation whose node is in a cluster that cannot be reached or was replaced by another one. Pure.

/** States that can do nothing without the cluster of the node. The other states continue to check the power. */
const WAITING_STATES: readonly State["name"][] = ["Verifying", "Provisioning", "Rejoining", "Restoring"];

/**
 * Effects on the cluster of the node. A power-off is one of them: without the cluster, the agent cannot check what
 * runs on the host.
 */
const NEEDS_CLUSTER: ReadonlySet<Effect["do"]> = new Set<Effect["do"]>([
  "examine",
  "readLease",
  "quarantine",
  "proveWritable",
  "forceOff",
  "taint",
  "untaint",
  "releasePods",
  "checkDrained",
  "swapMarks",
  "backupNode",
  "deleteNode",
  "liftQuarantine",
  "restoreNode",
  "clearMarks",
]);

/** Step and message when a wait is over, by the reason of the wait. */
const RESUMED: ReadonlyMap<string, { step: string; message: string }> = new Map(
  Object.entries({
    ClusterUnreachable: { step: "ClusterReached", message: "the node's cluster can be reached again" },
    ClusterExchanged: { step: "ClusterReached", message: "the node's cluster can be reached again" },
    UnknownState: { step: "StateKnown", message: "the agent knows the stored state and the spec again" },
    InputUnread: { step: "InputRead", message: "everything that the remediation needs can be read again" },
  } satisfies Partial<Record<Reason, { step: string; message: string }>>),
);

/**
 * Decides while the cluster of the node cannot be reached.
 *
 * - Before any power order, the remediation returns to Resolving, where it waits for a while and then fails.
 * - After a power order, effects on the cluster wait for it without a deadline, and the status reports that. Meanwhile
 *   the proof that the host is off is kept. A host whose taint is known to be off is powered on again: its cluster may
 *   be unreachable because the host is off.
 * - A Cluster that was deleted is not waited for.
 *
 * @param problem why the cluster cannot be reached.
 * @param decisions how the remediation is aborted, and how it is decided otherwise.
 */
export function decideWithoutCluster(
  snapshot: Snapshot,
  now: Now,
  problem: ClusterProblem,
  decisions: {
    abort: (snapshot: Snapshot, now: Now) => Decision | undefined;
    usual: (snapshot: Snapshot, now: Now) => Decision;
  },
): Decision {
  const { state, status, observations, strategy } = snapshot;
  const isUnderWay = state.name !== "Resolving" && !isFinal(state.name);
  if (isUnderWay && observations.cluster?.gone === true) return decideClusterDeleted(snapshot, now, decisions);
  if (WAITING_STATES.includes(state.name)) {
    const aborted = decisions.abort(snapshot, now);
    if (aborted !== undefined) return aborted;
    if (state.name !== "Verifying" || state.attempt.action === "ForceOff" || state.attempt.action === "On") {
      return waitForCluster(snapshot, now, problem);
    }
    return transition(snapshot, now, {
      to: "Resolving",
      step: problem.reason,
      message: problem.message,
      warning: true,
      attempt: { ...state.attempt, deadlineMs: now.epochMs + strategy.powerOffTimeoutMs },
      conditions: processing(problem.reason, problem.message),
    });
  }
  // Before a host is claimed, no mark can have been put on.
  const unmarked = state.name === "Undoing" && status.target === undefined;
  const known = unmarked
    ? { ...snapshot, observations: { ...observations, taintCleared: true, marksCleared: true } }
    : snapshot;
  const decision = decisions.usual(known, now);
  if (!decision.effects.some((effect) => NEEDS_CLUSTER.has(effect.do))) return decision;
  return waitForCluster(snapshot, now, problem, POWER_REREAD_MS);
}

/**
 * Reports that the remediation waits for the cluster, and checks from time to time whether the Cluster still exists.
 */
function waitForCluster(snapshot: Snapshot, now: Now, problem: ClusterProblem, recheckMs = Infinity): Decision {
  const waiting = waitBecause(snapshot, now, problem.reason, problem.message);
  if (waiting.status !== undefined) return waiting;
  const { cluster } = snapshot.observations;
  const inMs = cluster === undefined ? 0 : cluster.atMs + CLUSTER_RECHECK_MS - now.monotonicMs;
  return inMs <= 0 ? run({ do: "findCluster" }) : { ...waiting, nextCheckMs: Math.min(inMs, recheckMs) };
}

/** Ends a remediation whose Cluster was deleted: its node is gone, or another management cluster manages it now. */
function decideClusterDeleted(
  snapshot: Snapshot,
  now: Now,
  { abort, usual }: Parameters<typeof decideWithoutCluster>[3],
): Decision {
  if (snapshot.state.name === "Undoing") return usual(snapshot, now);
  const message = `cluster ${clusterKey(snapshot.subject.cluster)} was deleted: there is no node left to bring back`;
  return abort(snapshot, now) ?? fail(snapshot, now, "ClusterGone", message);
}

/** Reports the end of a wait in RESUMED, and gives the state its time again. Undefined if the state did not wait. */
export function resumeAfterWait(snapshot: Snapshot, now: Now): Decision | undefined {
  const { state, strategy } = snapshot;
  const waitedFor = RESUMED.get(statusCondition(snapshot.status, "Processing")?.reason ?? "");
  if (waitedFor === undefined || !("attempt" in state) || state.attempt === undefined) return undefined;
  if (state.name === "Resolving") return undefined;
  const { step, message } = waitedFor;
  return transition(snapshot, now, {
    to: state.name,
    step,
    message,
    attempt: { ...state.attempt, deadlineMs: now.epochMs + timeoutOf(state.name, strategy) },
    conditions: processing(state.name, message),
  });
}

function timeoutOf(state: State["name"], strategy: BoundedStrategy): number {
  switch (state) {
    case "Releasing":
      return strategy.drainTimeoutMs;
    case "Rejoining":
    case "Restoring":
    case "Provisioning":
      return Math.max(strategy.timeoutMs, strategy.powerOnTimeoutMs);
    case "PoweringOn":
    case "Undoing":
      return strategy.powerOnTimeoutMs;
    default:
      return strategy.powerOffTimeoutMs;
  }
}
