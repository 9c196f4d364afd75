import type { Node } from "../../../api/core.ts";
import type { CheckState } from "../../shared/views/check-states.ts";
import type { ConditionTimes } from "../../shared/views/condition-times.ts";
import type { ListedNodes } from "../../shared/views/current-nodes.ts";
import type { Policy } from "../decide/policy.ts";
import { compilePolicy, POLICY_ANNOTATIONS } from "../decide/policy.ts";
import type { Census } from "../decide/threshold.ts";
import type { HealthCheckObject } from "./health-check.ts";
import { NodeTracker } from "./node-tracker.ts";

/** A spec that can be used, and the nodes that it covers. */
export interface Compiled {
  policy: Policy;
  tracker: NodeTracker;
}

/** What the agent remembers of one NodeHealthCheck; its deferrals are by the names of nodes. */
export interface NodeCheckState extends CheckState {
  readonly uid: string;
  /** The compiled spec and the nodes it covers, or what is wrong with it. */
  readonly compiled: Compiled | { problem: string };
  /** The newest count of nodes, for as long as nothing has changed that it was made of. */
  census: { census: Census; countsVersion: number; listed: ListedNodes | undefined } | undefined;
  /** Nodes that the last decision says something about; their changes matter though they may not be selected. */
  attention: ReadonlySet<string>;
  /** When the leases that we hold are due for renewal, by the names of nodes. */
  leaseRenewals: Map<string, number>;
}

export function newCheckState(
  check: HealthCheckObject,
  nodes: Iterable<Node>,
  nowMs: number,
  times: ConditionTimes,
): NodeCheckState {
  const result = compilePolicy(check.spec, check.metadata.annotations);
  return {
    key: stateKey(check),
    uid: check.metadata.uid,
    compiled:
      "problem" in result
        ? result
        : { policy: result.policy, tracker: new NodeTracker(result.policy, nodes, nowMs, times) },
    census: undefined,
    attention: new Set(),
    deferrals: new Map(),
    leaseRenewals: new Map(),
    announced: new Set(),
  };
}

/** Names a health check and everything that its policy is compiled from: annotations do not raise the generation. */
export function stateKey({ metadata }: HealthCheckObject): string {
  const { uid, generation, annotations } = metadata;
  return JSON.stringify([uid, generation, POLICY_ANNOTATIONS.map((name) => annotations?.[name])]);
}

/** Whether the state was made for this very health check and spec. */
export function isStateOf(state: NodeCheckState, check: HealthCheckObject): boolean {
  return state.key === stateKey(check);
}
