import type { Cluster, Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { ConditionWrite } from "../../../api/cluster-api/machine-conditions.ts";
import type { MachineHealthCheck, MachineHealthCheckStatus } from "../../../api/cluster-api/machine-health-check.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KindVersions } from "../../../kube/objects/served-kind.ts";
import type { HealthCriteria } from "./machine-health.ts";
import type { MachineHealth, ObservedMachine } from "./observed-machine.ts";

/**
 * What differs between the vendors of MachineHealthChecks. The core (`decide`, `snapshot`, `effects`, `controller`)
 * knows neither Cluster API nor OKD. To add a vendor, add a file next to `vendors/cluster-api.ts` and call
 * `runMachineHealthChecks` with it.
 *
 * A vendor whose machines' nodes are in the agent's own cluster passes in `WorkloadClusters` that are always connected
 * to it, and names no kind of `clusters`. What is done to an unhealthy machine is a `Remedy`: `decideMachine` says
 * when, and `runMachineAction` does it.
 */
export interface MachineHealthCheckKind {
  /** For logs and the queue: the name of the family, for example `machine-health-check`. */
  name: string;
  checks: KindVersions;
  machines: KindVersions;
  /** Undefined if the vendor has no Clusters: the Machines belong to the cluster that stores them. */
  clusters: KindVersions | undefined;
  readCheck: (raw: KubeObject) => MachineHealthCheck;
  readMachine: (raw: KubeObject) => Machine;
  readCluster: (raw: KubeObject) => Cluster;
  /** Whether a machine of the check's namespace that its selector matches is one of its targets. */
  covers: (check: MachineHealthCheck, machine: Machine) => boolean;
  /** Whether an empty selector selects everything; it is refused otherwise. */
  emptySelectsAll: boolean;
  judge: (target: ObservedMachine, checks: HealthCriteria, nowMs: number) => MachineHealth;
  /** What is done about an unhealthy machine, once remediation is allowed. */
  remedy: (check: MachineHealthCheck, machine: Machine) => Remedy;
  /**
   * Fields that the status of this kind has. The API server would drop any other field, and the agent would write it
   * again each time.
   */
  statusFields: readonly (keyof MachineHealthCheckStatus)[];
  /** The conditions that a machine is to have for its health; none if it has no condition for that. */
  healthConditions: (health: MachineHealth) => readonly ConditionWrite[];
}

export type Remedy =
  /** A request from the health check's template. */
  | { type: "request" }
  /** The machine's owner is asked to replace it, by the condition `ask` on the Machine. */
  | { type: "askOwner"; ask: ConditionWrite }
  /** The machine is annotated, for a power fencing agent. */
  | { type: "annotate"; annotation: string }
  /** The machine is deleted, so that its owner makes a new one. */
  | { type: "delete" }
  /** Nothing, and why; with the reason of an Event if the operator must know. */
  | { type: "none"; reason: string; event?: "SkippedMaster" | "SkippedNoController" };
