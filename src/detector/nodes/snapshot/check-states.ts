import type { Node } from "../../../api/core.ts";
import type { Change, Watched } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { CheckState } from "./check-state.ts";
import { isStateOf, newCheckState } from "./check-state.ts";
import type { HealthCheckObject } from "./health-check.ts";
import type { RemediationObject } from "../../shared/model/remediation.ts";
import { isOwnedBy, readRemediation } from "../../shared/model/remediation.ts";
import type { Peer } from "./snapshot.ts";
import type { ConditionTimes } from "../../shared/views/condition-times.ts";

export interface CheckStatesDeps {
  /** The health checks, each in the newest version known. */
  checks: { values: () => Iterable<HealthCheckObject> };
  nodes: Watched<Node>;
  clock: Clock;
  times: ConditionTimes;
  /** Is called with each health check that was not known before. */
  onNew: (check: HealthCheckObject) => void;
}

/** What is remembered of each health check, by its name. */
export class CheckStates {
  readonly #deps: CheckStatesDeps;
  readonly #states = new Map<string, CheckState>();

  constructor(deps: CheckStatesDeps) {
    this.#deps = deps;
  }

  /** What is remembered of this very health check and spec; made anew where there is nothing. */
  of(check: HealthCheckObject): CheckState {
    const { name } = check.metadata;
    const known = this.#states.get(name);
    if (known !== undefined && isStateOf(known, check)) return known;
    const { nodes, clock, times, onNew } = this.#deps;
    const state = newCheckState(check, nodes.values(), clock.nowMs(), times);
    if (known?.uid === state.uid) {
      state.told = known.told;
      state.leaseRenewals = known.leaseRenewals;
    } else {
      onNew(check);
    }
    this.#states.set(name, state);
    return state;
  }

  get(name: string): CheckState | undefined {
    return this.#states.get(name);
  }

  entries(): IterableIterator<[string, CheckState]> {
    return this.#states.entries();
  }

  forget(name: string): void {
    this.#states.delete(name);
  }

  /** The other health checks. */
  peersOf(check: HealthCheckObject): Peer[] {
    const peers: Peer[] = [];
    for (const peer of this.#deps.checks.values()) {
      if (peer.metadata.uid !== check.metadata.uid) peers.push({ check: peer, state: this.of(peer) });
    }
    return peers;
  }

  /** Drops the counts of nodes that the change does not leave as they are. @param change undefined: anything may have changed. */
  forgetCensus(change: Change<RemediationObject> | undefined): void {
    for (const state of this.#states.values()) if (!keepsCensus(state, change)) state.census = undefined;
  }
}

function keepsCensus({ compiled, uid }: CheckState, change: Change<RemediationObject> | undefined): boolean {
  if ("problem" in compiled) return true;
  if (change === undefined) return false;
  const counts = (object: RemediationObject) => isOwnedBy(object, uid) && readRemediation(object).nodeName;
  return change.type === "updated"
    ? counts(change.object) === counts(change.previous)
    : compiled.tracker.isAiling(readRemediation(change.object).nodeName);
}
