import { CONFIRM } from "../../../../api/names/annotations.ts";
import { isReady } from "../../../../nodes/ready.ts";
import { run, waitBecause } from "../transitions.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import type { Attempt } from "../../model/decision/state.ts";
import { statusCondition } from "../../model/status.ts";
import { REQUEST_AGE_MAX_MS, REQUEST_RECHECK_MAX_MS, REQUEST_RECHECK_MIN_MS } from "../../model/decision/timings.ts";
import type { Decision } from "../../model/decision/decision.ts";

/**
 * Waits for a confirmation by a user if a remediation may be about an outage that is over. That is so if the
 * remediation is old or was restored by a backup tool, has not begun, its node is Ready, and no health check reports
 * the node as unhealthy. Undefined if the remediation may begin. Pure.
 */
export function ensureNotStale(snapshot: Snapshot, attempt: Attempt | undefined, now: Now): Decision | undefined {
  const { remediation, status, observations, node, nodeName, clusterProblem } = snapshot;
  const reported = statusCondition(status, "Processing")?.reason;
  const isOld = isOldRequest(remediation);
  if (wasAllowedToBegin(snapshot, attempt) || (!isOld && reported !== "StaleRequest")) return undefined;
  // A remediation that serves a request of another kind is deleted with that request, so it is never stale.
  if (remediation.isRequested || remediation.isConfirmed || clusterProblem !== undefined) return undefined;
  const request = observations.request;
  const ageMs = request === undefined ? Infinity : now.monotonicMs - request.atMs;
  const isNews = node !== undefined && request?.isReady !== isReady(node) && ageMs >= REQUEST_RECHECK_MIN_MS;
  if (request === undefined || isNews || ageMs >= REQUEST_RECHECK_MAX_MS) return run({ do: "examineRequest" });
  if (!request.isReady || request.isFoundUnhealthy) return undefined;
  const { namespace, name, uid } = remediation;
  const message = `node ${nodeName} is Ready, no health check lists it as unhealthy, and this remediation ${remediation.isRestored ? "was restored from a backup" : "is older than 10 minutes"} without a status: it may be about an outage that is over. Delete it, or confirm that the node is to be fenced: kubectl annotate -n ${namespace} baremetalremediations.ironfence.io ${name} ${CONFIRM}=${uid}`;
  return waitBecause(snapshot, now, "StaleRequest", message, REQUEST_RECHECK_MAX_MS - ageMs);
}

/** Whether a remediation that has not begun may be about an outage that is over. */
export function isOldRequest({ isRestored, ageMs }: Snapshot["remediation"]): boolean {
  return isRestored || ageMs >= REQUEST_AGE_MAX_MS;
}

/**
 * Whether the remediation was already allowed to begin: its status has a field that is stored only after this check. An
 * attempt alone does not show that, because a wait for the cluster of the node or for the Machine also stores one.
 */
function wasAllowedToBegin({ status }: Snapshot, attempt: Attempt | undefined): boolean {
  const hasAction = attempt !== undefined && attempt.action !== "None";
  return status.target !== undefined || status.node?.wasReady !== undefined || hasAction;
}
