import type { Node } from "../../../api/kubernetes/core.ts";
import type { CheckState } from "../../shared/views/check-states.ts";
import { ObservationsByKey } from "../../shared/views/observations-by-key.ts";
import type { ConditionTimes } from "../../shared/views/watched-nodes/condition-times.ts";
import type { LiveNodes } from "../../shared/views/watched-nodes/current-nodes.ts";
import type { NodeCheckEvent, NodeObservations } from "../decide/observe.ts";
import { NOTHING_OBSERVED_OF_NODE, observeNode } from "../decide/observe.ts";
import type { NodePolicy } from "../decide/policy.ts";
import { compileNodePolicy, POLICY_ANNOTATIONS } from "../decide/policy.ts";
import type { NodeCounts } from "../decide/threshold.ts";
import type { HealthCheckObject } from "./health-check.ts";
import { NodeTracker } from "./node-tracker.ts";

/** The compiled spec of a valid health check, and the nodes that it selects. */
export interface CompiledNodeCheck {
  policy: NodePolicy;
  tracker: NodeTracker;
}

/** What the agent knows about one NodeHealthCheck in addition to its status. */
export interface NodeCheckState extends CheckState {
  readonly uid: string;
  /** The compiled spec and the nodes that it selects, or what is wrong with the spec. */
  readonly compiled: CompiledNodeCheck | { problem: string };
  /** The cached counts; undefined if something that they depend on has changed. */
  counts: { counts: NodeCounts; countsVersion: number; liveNodes: LiveNodes | undefined } | undefined;
  /** The nodes of the last decision. Their changes matter even if they are not selected. */
  reportedNodes: ReadonlySet<string>;
  /** By the names of nodes. */
  observations: ObservationsByKey<NodeObservations, NodeCheckEvent>;
}

export function newNodeCheckState(
  check: HealthCheckObject,
  nodes: Iterable<Node>,
  nowMs: number,
  times: ConditionTimes,
): NodeCheckState {
  const result = compileNodePolicy(check.spec, check.metadata.annotations);
  return {
    key: nodeCheckKey(check),
    uid: check.metadata.uid,
    compiled:
      "problem" in result
        ? result
        : { policy: result.policy, tracker: new NodeTracker(result.policy, nodes, nowMs, times) },
    counts: undefined,
    reportedNodes: new Set(),
    observations: new ObservationsByKey<NodeObservations, NodeCheckEvent>(NOTHING_OBSERVED_OF_NODE, observeNode),
    announced: new Set(),
  };
}

/**
 * Identifies a health check and everything that its policy is compiled from. A change of annotations does not increase
 * the generation.
 */
export function nodeCheckKey({ metadata }: HealthCheckObject): string {
  const { uid, generation, annotations } = metadata;
  return JSON.stringify([uid, generation, POLICY_ANNOTATIONS.map((name) => annotations?.[name])]);
}

/** Whether the state belongs to this health check with its current spec. */
export function isStateOf(state: NodeCheckState, check: HealthCheckObject): boolean {
  return state.key === nodeCheckKey(check);
}
