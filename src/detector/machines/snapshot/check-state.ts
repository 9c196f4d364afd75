import { ATTEMPT_BUDGET } from "../../../api/annotations.ts";
import type { Cluster, Machine } from "../../../api/cluster-api.ts";
import { mayBeNodeOf } from "../../../api/cluster-api.ts";
import { conditionOf } from "../../../api/foreign.ts";
import { agrees } from "../../../api/machine-conditions.ts";
import type { MachineHealthCheck } from "../../../api/machine-health-check.ts";
import type { ClusterNodes } from "./cluster-nodes.ts";
import type { CheckState } from "../../shared/views/check-states.ts";
import type { MachineHealthCheckKind } from "../decide/kind.ts";
import type { MachinePolicy } from "../decide/policy.ts";
import { compileMachinePolicy } from "../decide/policy.ts";
import type { MachineHealth, ObservedNode } from "../decide/target.ts";
import { MachineTracker } from "./machine-tracker.ts";

/** A spec that can be used, and the machines that it covers. */
export interface Compiled {
  policy: MachinePolicy;
  tracker: MachineTracker;
}

/** What the agent remembers of one MachineHealthCheck; its deferrals are by the UIDs of machines. */
export interface MachineCheckState extends CheckState {
  /** The compiled spec and the machines it covers, or what is wrong with it. */
  readonly compiled: Compiled | { problem: string };
}

/** What the machines of a health check are judged by. */
export interface MachineJudgment {
  kind: MachineHealthCheckKind;
  nowMs: () => number;
  /** The Cluster of a health check; undefined if its kind knows none. */
  clusterOf: (check: MachineHealthCheck) => Cluster | undefined;
  /** The nodes of its machines; undefined if there are none yet. */
  nodesOf: (check: MachineHealthCheck) => ClusterNodes | undefined;
}

export function newMachineCheckState(
  world: MachineJudgment,
  check: MachineHealthCheck,
  machines: Iterable<Machine>,
): MachineCheckState {
  const policy = compileMachinePolicy(world.kind, check);
  const isSettled = (machine: Machine, health: MachineHealth): boolean =>
    world.kind.healthConditions(health).every((condition) => agrees(machine, condition)) &&
    conditionOf(machine.conditions, "ExternallyRemediated")?.status !== "False";
  const judge = (machine: Machine): MachineHealth =>
    judgeNow(world, check, machine, world.clusterOf(check), hostOf(world, check, machine));
  return {
    key: stateKey(check),
    compiled:
      typeof policy === "string"
        ? { problem: policy }
        : { policy, tracker: new MachineTracker({ covers: policy.covers, judge, isSettled }, machines) },
    deferrals: new Map(),
    announced: new Set(),
  };
}

/** Names a health check and what its policy is made of. */
export function stateKey({ metadata, apiVersion }: MachineHealthCheck): string {
  return JSON.stringify([metadata.uid, metadata.generation, apiVersion, metadata.annotations?.[ATTEMPT_BUDGET]]);
}

/** Judges a machine by the given cluster and node. */
export function judgeNow(
  { kind, nowMs, nodesOf }: MachineJudgment,
  check: MachineHealthCheck,
  machine: Machine,
  cluster: Cluster | undefined,
  node: ObservedNode,
): MachineHealth {
  const nodeSinceMs: Parameters<typeof kind.judge>[0]["nodeSinceMs"] = (condition) =>
    machine.nodeName === undefined ? undefined : nodesOf(check)?.sinceMs(machine.nodeName, condition);
  return kind.judge({ machine, cluster, node: ownNodeOf(machine, node), nodeSinceMs }, check.spec, nowMs());
}

/** A node with the same name but another providerID says nothing about the machine. */
function ownNodeOf(machine: Machine, observed: ObservedNode): ObservedNode {
  if (observed.state !== "there" || mayBeNodeOf(observed.node, machine)) return observed;
  const reason = `Node ${observed.node.metadata.name} has a different providerID than the Machine: check whether the kubeconfig leads to the Machine's cluster`;
  return { state: "unknown", reason };
}

/** The machine's node in the watched nodes of its cluster. Before the cluster has an API server it has no nodes either. */
function hostOf({ nodesOf }: MachineJudgment, check: MachineHealthCheck, { nodeName }: Machine): ObservedNode {
  const nodes = nodesOf(check);
  return nodeName === undefined || nodes === undefined ? { state: "none" } : nodes.nodeNamed(nodeName);
}
