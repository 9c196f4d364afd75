import { CONFIRM } from "../../../api/annotations.ts";
import { isReady } from "../node-patches/marks.ts";
import { run, waitBecause } from "./transitions.ts";
import type { Now, Snapshot } from "../model/snapshot.ts";
import type { Attempt } from "../model/state.ts";
import { conditionOf } from "../model/status.ts";
import { REQUEST_AGE_MAX_MS, REQUEST_LOOK_MAX_MS, REQUEST_LOOK_MIN_MS } from "../model/timings.ts";
import type { Decision } from "../model/decision.ts";

/**
 * A remediation that has not begun and is old, or that a backup tool has restored, may be about an outage that is long over. Where its
 * node is Ready, and no health check lists that as unhealthy now, a person has to confirm it. Undefined where it may begin. Pure.
 */
export function staleGate(snapshot: Snapshot, attempt: Attempt | undefined, now: Now): Decision | undefined {
  const { remediation, status, seen, node, nodeName, away } = snapshot;
  const said = conditionOf(status, "Processing")?.reason;
  const isOld = remediation.isRestored || now.epochMs - remediation.createdAtMs >= REQUEST_AGE_MAX_MS;
  if (hasPassed(snapshot, attempt) || (!isOld && said !== "StaleRequest")) return undefined;
  // What serves a request of another kind goes with that request.
  if (remediation.isRequested || remediation.isConfirmed || away !== undefined) return undefined;
  const look = seen.request;
  const ageMs = look === undefined ? Infinity : now.monotonicMs - look.atMs;
  const isNews = node !== undefined && look?.isReady !== isReady(node) && ageMs >= REQUEST_LOOK_MIN_MS;
  if (look === undefined || isNews || ageMs >= REQUEST_LOOK_MAX_MS) return run({ do: "examineRequest" });
  if (!look.isReady || look.isListed) return undefined;
  const { namespace, name, uid } = remediation;
  const message = `node ${nodeName} is Ready, no health check lists it as unhealthy, and this remediation ${remediation.isRestored ? "was restored from a backup" : "is older than 10 minutes"} without a status: it may be about an outage that is over. Delete it, or confirm that the node is to be fenced: kubectl annotate -n ${namespace} baremetalremediations.ironfence.io ${name} ${CONFIRM}=${uid}`;
  return waitBecause(snapshot, now, "StaleRequest", message, REQUEST_LOOK_MAX_MS - ageMs);
}

/**
 * Whether the gate let the remediation begin before: what is stored behind it alone is on record. An attempt is no proof of that:
 * one is stored, too, by a wait for the node's cluster, or for the Machine.
 */
function hasPassed({ status }: Snapshot, attempt: Attempt | undefined): boolean {
  const hasAction = attempt !== undefined && attempt.action !== "None";
  return status.target !== undefined || status.node?.wasReady !== undefined || hasAction;
}
