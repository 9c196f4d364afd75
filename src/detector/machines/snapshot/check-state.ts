import type { Cluster, Machine } from "../../../api/cluster-api/cluster-api.ts";
import { mayBeNodeOf } from "../../../api/cluster-api/cluster-api.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import { hasConditionWithAnyMessage } from "../../../api/cluster-api/machine-conditions.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { ClusterNodes } from "./cluster-nodes.ts";
import type { CheckState } from "../../shared/views/check-states.ts";
import { ObservationsByKey } from "../../shared/views/observations-by-key.ts";
import type { MachineHealthCheckKind } from "../decide/kind.ts";
import type { MachineCheckEvent, MachineObservations } from "../decide/observe.ts";
import { NOTHING_OBSERVED_OF_MACHINE, observeMachine } from "../decide/observe.ts";
import type { MachinePolicy } from "../decide/policy.ts";
import { compileMachinePolicy, MACHINE_POLICY_ANNOTATIONS } from "../decide/policy.ts";
import type { MachineHealth, ObservedNode } from "../decide/observed-machine.ts";
import { MachineTracker } from "./machine-tracker.ts";

/** The compiled spec of a valid health check, and the Machines that it covers. */
export interface CompiledMachineCheck {
  policy: MachinePolicy;
  tracker: MachineTracker;
}

/** What the agent knows about one MachineHealthCheck in addition to its status. */
export interface MachineCheckState extends CheckState {
  /** The compiled spec and the Machines that it covers, or what is wrong with the spec. */
  readonly compiled: CompiledMachineCheck | { problem: string };
  /** By the UIDs of Machines. */
  readonly observations: ObservationsByKey<MachineObservations, MachineCheckEvent>;
}

/** The sources by which the Machines of a health check are judged. */
export interface JudgmentSources {
  kind: MachineHealthCheckKind;
  nowMs: () => number;
  /** The Cluster of a health check; undefined if the vendor has no Clusters. */
  clusterOf: (check: MachineHealthCheck) => Cluster | undefined;
  /** The nodes of the cluster of a health check; undefined if they are not watched yet. */
  nodesOf: (check: MachineHealthCheck) => ClusterNodes | undefined;
}

export function newMachineCheckState(
  sources: JudgmentSources,
  check: MachineHealthCheck,
  machines: Iterable<Machine>,
): MachineCheckState {
  const policy = compileMachinePolicy(sources.kind, check);
  const isSettled = (machine: Machine, health: MachineHealth): boolean =>
    sources.kind.healthConditions(health).every((condition) => hasConditionWithAnyMessage(machine, condition)) &&
    conditionOf(machine.conditions, "ExternallyRemediated")?.status !== "False";
  const judge = (machine: Machine): MachineHealth =>
    judgeNow(sources, check, machine, sources.clusterOf(check), watchedNodeOf(sources, check, machine));
  return {
    key: machineCheckKey(check),
    compiled:
      typeof policy === "string"
        ? { problem: policy }
        : { policy, tracker: new MachineTracker({ covers: policy.covers, judge, isSettled }, machines) },
    observations: new ObservationsByKey<MachineObservations, MachineCheckEvent>(
      NOTHING_OBSERVED_OF_MACHINE,
      observeMachine,
    ),
    announced: new Set(),
  };
}

/**
 * Identifies a health check and everything that its policy is compiled from. A change of annotations does not increase
 * the generation.
 */
export function machineCheckKey({ metadata, apiVersion }: MachineHealthCheck): string {
  const { uid, generation, annotations } = metadata;
  return JSON.stringify([uid, generation, apiVersion, MACHINE_POLICY_ANNOTATIONS.map((name) => annotations?.[name])]);
}

/** Judges a Machine by the given Cluster and node. */
export function judgeNow(
  { kind, nowMs, nodesOf }: JudgmentSources,
  check: MachineHealthCheck,
  machine: Machine,
  cluster: Cluster | undefined,
  node: ObservedNode,
): MachineHealth {
  const nodeSinceMs: Parameters<typeof kind.judge>[0]["nodeSinceMs"] = (condition) =>
    machine.nodeName === undefined ? undefined : nodesOf(check)?.sinceMs(machine.nodeName, condition);
  return kind.judge({ machine, cluster, node: ownNodeOf(machine, node), nodeSinceMs }, check.spec, nowMs());
}

/** A Node with the same name but another providerID is not the node of the Machine. */
function ownNodeOf(machine: Machine, observed: ObservedNode): ObservedNode {
  if (observed.state !== "there" || mayBeNodeOf(observed.node, machine)) return observed;
  const reason = `Node ${observed.node.metadata.name} has a different providerID than the Machine: check whether the kubeconfig points to the Machine's cluster`;
  return { state: "unknown", reason };
}

/** The watched node of a Machine. Before the cluster has an API server, there are no nodes. */
function watchedNodeOf({ nodesOf }: JudgmentSources, check: MachineHealthCheck, { nodeName }: Machine): ObservedNode {
  const nodes = nodesOf(check);
  return nodeName === undefined || nodes === undefined ? { state: "none" } : nodes.nodeNamed(nodeName);
}
