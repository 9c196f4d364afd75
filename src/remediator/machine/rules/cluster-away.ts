import { fail, move, run, waitBecause } from "./transitions.ts";
import type { Plan } from "../model/strategy.ts";
import type { Reason } from "../model/reasons.ts";
import type { Now, Snapshot } from "../model/snapshot.ts";
import type { State } from "../model/state.ts";
import { isFinal } from "../model/state.ts";
import { conditionOf, processing } from "../model/status.ts";
import { clusterKey } from "../../../nodes/subject.ts";
import { CLUSTER_LOOK_MS, POWER_REREAD_MS } from "../model/timings.ts";
import type { Decision, Effect } from "../model/decision.ts";
import type { Away } from "../model/away.ts";

// What becomes of a remediation whose node lies in a cluster that cannot be reached, or that is another by now. Pure.

/** States that can do nothing without the node's cluster. In the others the power is looked after meanwhile. */
const WAITING_STATES: readonly State["name"][] = ["Verifying", "Provisioning", "Rejoining", "Restoring"];

/** What acts on the node's cluster. A power-off is no more sent while nobody can say what runs on the host. */
const NEEDS_CLUSTER: ReadonlySet<Effect["do"]> = new Set<Effect["do"]>([
  "examine",
  "readLease",
  "quarantine",
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

/** What is said when that for which a remediation waited is back, by the reason of its wait. */
const BACK: ReadonlyMap<string, { step: string; message: string }> = new Map(
  Object.entries({
    ClusterUnreachable: { step: "ClusterReached", message: "the node's cluster can be reached again" },
    ClusterExchanged: { step: "ClusterReached", message: "the node's cluster can be reached again" },
    UnknownState: { step: "StateKnown", message: "the agent knows the state that is stored again" },
    InputUnread: { step: "InputRead", message: "everything that the remediation needs can be read again" },
  } satisfies Partial<Record<Reason, { step: string; message: string }>>),
);

/**
 * Decides while the node's cluster is away. Before any power order the remediation goes back to where it waits for a while and
 * then fails. After one, what needs the cluster waits for it without end, and says so; meanwhile the proof that the host is off
 * is kept, and a host whose taint is known to be off is powered on again, since the cluster may be away for want of it. A Cluster
 * that was deleted is waited for no longer.
 *
 * @param away why.
 * @param decisions how the remediation is aborted, and what would be done otherwise.
 */
export function decideAway(
  snapshot: Snapshot,
  now: Now,
  away: Away,
  decisions: {
    abort: (snapshot: Snapshot, now: Now) => Decision | undefined;
    usual: (snapshot: Snapshot, now: Now) => Decision;
  },
): Decision {
  const { state, status, seen, plan } = snapshot;
  const isUnderWay = state.name !== "Resolving" && !isFinal(state.name);
  if (isUnderWay && seen.cluster?.gone === true) return decideGone(snapshot, now, decisions);
  if (WAITING_STATES.includes(state.name)) {
    const aborted = decisions.abort(snapshot, now);
    if (aborted !== undefined) return aborted;
    if (state.name !== "Verifying" || state.attempt.action === "ForceOff" || state.attempt.action === "On") {
      return waitForCluster(snapshot, now, away);
    }
    return move(snapshot, now, {
      to: "Resolving",
      step: away.reason,
      message: away.message,
      warning: true,
      attempt: { ...state.attempt, deadlineMs: now.epochMs + plan.powerOffTimeoutMs },
      conditions: processing(away.reason, away.message),
    });
  }
  // Before a host was taken no mark can have been put on.
  const unmarked = state.name === "Undoing" && status.target === undefined;
  const known = unmarked ? { ...snapshot, seen: { ...seen, taintCleared: true, marksCleared: true } } : snapshot;
  const decision = decisions.usual(known, now);
  if (!decision.effects.some((effect) => NEEDS_CLUSTER.has(effect.do))) return decision;
  return waitForCluster(snapshot, now, away, POWER_REREAD_MS);
}

/** Says that the cluster is waited for, and looks from time to time whether there is anything left to wait for. */
function waitForCluster(snapshot: Snapshot, now: Now, away: Away, recheckMs = Infinity): Decision {
  const waiting = waitBecause(snapshot, now, away.reason, away.message);
  if (waiting.status !== undefined) return waiting;
  const { cluster } = snapshot.seen;
  const inMs = cluster === undefined ? 0 : cluster.atMs + CLUSTER_LOOK_MS - now.monotonicMs;
  return inMs <= 0 ? run({ do: "findCluster" }) : { ...waiting, nextCheckMs: Math.min(inMs, recheckMs) };
}

/** The Cluster was deleted: its nodes and their marks are gone with it, or another management cluster's by now. */
function decideGone(snapshot: Snapshot, now: Now, { abort, usual }: Parameters<typeof decideAway>[3]): Decision {
  if (snapshot.state.name === "Undoing") return usual(snapshot, now);
  const message = `cluster ${clusterKey(snapshot.subject.cluster)} is gone: there is no node any more to bring back`;
  return abort(snapshot, now) ?? fail(snapshot, now, "ClusterGone", message);
}

/** What was waited for is back: the state that waited for it begins its time again. Undefined where none did. */
export function decideBack(snapshot: Snapshot, now: Now): Decision | undefined {
  const { state, plan } = snapshot;
  const waitedFor = BACK.get(conditionOf(snapshot.status, "Processing")?.reason ?? "");
  if (waitedFor === undefined || !("attempt" in state) || state.attempt === undefined) return undefined;
  if (state.name === "Resolving") return undefined;
  const { step, message } = waitedFor;
  return move(snapshot, now, {
    to: state.name,
    step,
    message,
    attempt: { ...state.attempt, deadlineMs: now.epochMs + timeoutOf(state.name, plan) },
    conditions: processing(state.name, message),
  });
}

function timeoutOf(state: State["name"], plan: Plan): number {
  switch (state) {
    case "Releasing":
      return plan.drainTimeoutMs;
    case "Rejoining":
    case "Restoring":
    case "Provisioning":
      return Math.max(plan.timeoutMs, plan.powerOnTimeoutMs);
    case "PoweringOn":
    case "Undoing":
      return plan.powerOnTimeoutMs;
    default:
      return plan.powerOffTimeoutMs;
  }
}
