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
 * If the nodes of a vendor's Machines are in the agent's own cluster, pass `ownCluster` as its `WorkloadClusters`, and
 * leave `clusters` undefined. A `Remedy` says what to do about an unhealthy Machine; `decideMachine` decides when, and
 * `runMachineAction` does it.
 */
export interface MachineHealthCheckKind {
  /** The name of the family, for example `machine-health-check`. */
  name: string;
  checks: KindVersions;
  machines: KindVersions;
  /** Undefined if the vendor has no Clusters: the Machines belong to the cluster that stores them. */
  clusters: KindVersions | undefined;
  readCheck: (raw: KubeObject) => MachineHealthCheck;
  readMachine: (raw: KubeObject) => Machine;
  readCluster: (raw: KubeObject) => Cluster;
  /** Whether a health check covers a Machine that is in its namespace and matches its selector. */
  covers: (check: MachineHealthCheck, machine: Machine) => boolean;
  /** Whether an empty selector selects all Machines. Otherwise an empty selector is invalid. */
  emptySelectsAll: boolean;
  judge: (target: ObservedMachine, checks: HealthCriteria, nowMs: number) => MachineHealth;
  /** What to do about an unhealthy Machine when remediation is allowed. */
  remedy: (check: MachineHealthCheck, machine: Machine) => Remedy;
  /**
   * The fields that the status of this kind has. The API server would drop any other field, and each evaluation would
   * write it again.
   */
  statusFields: readonly (keyof MachineHealthCheckStatus)[];
  /** The conditions that show the health of a Machine; none if its kind has no such conditions. */
  healthConditions: (health: MachineHealth) => readonly ConditionWrite[];
}

export type Remedy =
  /** Create a request from the template of the health check. */
  | { type: "request" }
  /** Ask the owner of the Machine to replace it, by the condition `ask` on the Machine. */
  | { type: "askOwner"; ask: ConditionWrite }
  /** Annotate the Machine, which asks a power fencing agent to act. */
  | { type: "annotate"; annotation: string }
  /** Delete the Machine, so that its owner creates a new one. */
  | { type: "delete" }
  /** Do nothing. `event` is the reason of a Kubernetes Event if the operator must know. */
  | { type: "none"; reason: string; event?: "SkippedMaster" | "SkippedNoController" };
