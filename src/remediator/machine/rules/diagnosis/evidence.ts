import { judgeEvidence } from "./cause.ts";
import type { OutageTimes } from "./cause.ts";
import type { Evidence } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { BmcEvidence } from "../../../../bmc/evidence/model.ts";
import { parseTimeMs, toMicroTime } from "../../../../runtime/time.ts";
import { TIMELINE_MAX } from "../../model/status.ts";
import type { Decision } from "../../model/decision/decision.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import type { Attempt, State } from "../../model/decision/state.ts";
import { statesBetween } from "../../model/decision/state.ts";

/** Reason of the Kubernetes Event and step of the timeline. */
export const CAUSE_OF_DEATH = "CauseOfDeath";

/** The states from the first power-off order until the verdict. */
const AFTER_ORDER: readonly State["name"][] = statesBetween("PoweringOff", "Undoing");

/**
 * Adds the search for the cause of death to a decision, without delaying anything else. The evidence is read while the
 * remediation only waits. The result is stored with the next status, or alone when the host is proven off.
 */
export function withEvidence(snapshot: Snapshot, now: Now, decision: Decision): Decision {
  const { state, status, observations } = snapshot;
  if (!AFTER_ORDER.includes(state.name) || status.evidence !== undefined) return decision;
  const attempt = "attempt" in state ? state.attempt : undefined;
  if (attempt === undefined) return decision;
  const isWait = decision.status === undefined && decision.effects.length === 0;
  const { evidence } = observations;
  if (evidence === undefined) {
    return isWait && isOrderOut(snapshot, attempt) ? { ...decision, effects: [{ do: "beginEvidence" }] } : decision;
  }
  if (evidence === "Reading" || evidence.found === undefined) return decision;
  // A write to the API server while the host is not proven off would delay the proof.
  const mayStore = decision.status !== undefined || (isWait && state.name !== "PoweringOff");
  if (!mayStore || observations.kube !== undefined) return decision;
  const judged = judgeOrNone(evidence.found, evidence.readAtMs, outageOf(snapshot, attempt, now));
  if (judged === undefined) return decision;
  const base = decision.status ?? status;
  const step = { step: CAUSE_OF_DEATH, time: toMicroTime(now.epochMs), message: judged.message };
  return {
    ...decision,
    status: { ...base, evidence: judged, timeline: [...(base.timeline ?? []), step].slice(-TIMELINE_MAX) },
    notes: [
      ...decision.notes,
      { type: judged.class === "None" ? "Normal" : "Warning", reason: CAUSE_OF_DEATH, message: judged.message },
    ],
  };
}

/** Judges the evidence; undefined if that fails. Data of a BMC may have any content, and must not stop a fence. */
function judgeOrNone(found: BmcEvidence, readAtMs: number, outage: OutageTimes): Evidence | undefined {
  try {
    return judgeEvidence(found, readAtMs, outage);
  } catch {
    return undefined;
  }
}

/** Whether a power-off order was sent and the devices are open. The host was identified for that order. */
function isOrderOut({ observations }: Snapshot, attempt: Attempt): boolean {
  const { order, power } = observations;
  const isAnswered = order?.action === "ForceOff" && order.outcome !== "Rejected";
  // After a restart, the order is not known, and a reading of the power shows that the devices are open.
  return attempt.action === "ForceOff" && (isAnswered || power.last !== undefined);
}

function outageOf({ observations, node, status }: Snapshot, attempt: Attempt, now: Now): OutageTimes {
  const { lease } = observations;
  const writtenAtMs = lease?.writtenAtMs;
  const ready = node?.status.conditions?.find(({ type }) => type === "Ready");
  const leftReadyMs = ready?.status === "True" ? undefined : parseTimeMs(ready?.lastTransitionTime);
  const lostAtMs =
    writtenAtMs === undefined ? (lease?.renewTimeMs ?? leftReadyMs) : now.epochMs - (now.monotonicMs - writtenAtMs);
  const { orderedAt, result } = status.diagnostics ?? {};
  const nmiAtMs = result === "NotSent" ? undefined : parseTimeMs(orderedAt);
  return {
    lostAtMs,
    startedAtMs: attempt.startedAtMs,
    orderedAtMs: attempt.actionAtMs,
    ...(nmiAtMs !== undefined && { nmiAtMs }),
  };
}
