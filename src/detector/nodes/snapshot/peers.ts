import type { Change } from "../../../kube/watched.ts";
import type { RemediationObject } from "../../shared/model/remediation.ts";
import { isOwnedBy, readRemediation } from "../../shared/model/remediation.ts";
import type { CheckStates } from "../../shared/views/check-states.ts";
import type { NodeCheckState } from "./check-state.ts";
import type { HealthCheckObject } from "./health-check.ts";
import type { Peer } from "./snapshot.ts";

export type NodeCheckStates = CheckStates<HealthCheckObject, NodeCheckState>;

/** The other health checks, and the state of each. */
export function peersOf(states: NodeCheckStates, checks: Iterable<HealthCheckObject>, own: HealthCheckObject): Peer[] {
  const peers: Peer[] = [];
  for (const check of checks) {
    if (check.metadata.uid !== own.metadata.uid) peers.push({ check, state: states.of(check) });
  }
  return peers;
}

/**
 * Drops the cached counts that a change of a remediation makes wrong. @param change undefined if any remediation may
 * have changed.
 */
export function dropCounts(states: NodeCheckStates, change: Change<RemediationObject> | undefined): void {
  for (const [, state] of states.entries()) if (!keepsCounts(state, change)) state.counts = undefined;
}

function keepsCounts({ compiled, uid }: NodeCheckState, change: Change<RemediationObject> | undefined): boolean {
  if ("problem" in compiled) return true;
  if (change === undefined) return false;
  const counts = (object: RemediationObject) => isOwnedBy(object, uid) && readRemediation(object).nodeName;
  return change.type === "updated"
    ? counts(change.object) === counts(change.previous)
    : compiled.tracker.isNotHealthy(readRemediation(change.object).nodeName);
}
