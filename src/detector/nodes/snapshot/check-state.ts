import type { Node } from "../../../api/core.ts";
import type { Census } from "../decide/threshold.ts";
import type { Hold } from "../decide/decision.ts";
import type { HealthCheckObject } from "./health-check.ts";
import { NodeTracker } from "./node-tracker.ts";
import type { Policy } from "../decide/policy.ts";
import type { ListedNodes } from "../../shared/views/current-nodes.ts";
import type { ConditionTimes } from "../../shared/views/condition-times.ts";
import { compilePolicy, POLICY_ANNOTATIONS } from "../decide/policy.ts";

/** A spec that can be used, and the nodes that it covers. */
export interface Compiled {
  policy: Policy;
  tracker: NodeTracker;
}

/** What the detector remembers of one health check beside its status. All of it can be lost: a restart finds it anew. */
export interface CheckState {
  uid: string;
  generation: number | undefined;
  /** Annotations that bear on the policy; they do not raise the generation. */
  settings: string;
  /** The compiled spec and the nodes it covers, or what is wrong with it. */
  compiled: Compiled | { problem: string };
  /** The newest count of nodes, for as long as nothing has changed that it was made of. */
  census: { census: Census; countsVersion: number; listed: ListedNodes | undefined } | undefined;
  /** Nodes that the last decision had something to say of; their changes matter though they may not be selected. */
  attention: ReadonlySet<string>;
  holds: Map<string, Hold>;
  /** When the leases that we hold want to be renewed. */
  leaseRenewals: Map<string, number>;
  /** Keys of the standing announcements that were told. */
  told: ReadonlySet<string>;
}

export function newCheckState(
  check: HealthCheckObject,
  nodes: Iterable<Node>,
  nowMs: number,
  times: ConditionTimes,
): CheckState {
  const result = compilePolicy(check.spec, check.metadata.annotations);
  return {
    uid: check.metadata.uid,
    generation: check.metadata.generation,
    settings: settingsOf(check),
    compiled:
      "problem" in result
        ? result
        : { policy: result.policy, tracker: new NodeTracker(result.policy, nodes, nowMs, times) },
    census: undefined,
    attention: new Set(),
    holds: new Map(),
    leaseRenewals: new Map(),
    told: new Set(),
  };
}

/** Whether the state was made for this very health check and spec. */
export function isStateOf(state: CheckState, check: HealthCheckObject): boolean {
  const { uid, generation } = check.metadata;
  return state.uid === uid && state.generation === generation && state.settings === settingsOf(check);
}

function settingsOf({ metadata }: HealthCheckObject): string {
  return JSON.stringify(POLICY_ANNOTATIONS.map((name) => metadata.annotations?.[name]));
}
