import type { WorkloadClusters } from "../../clusters/workload-clusters.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { MachineHealthCheckKind } from "./kind.ts";

export interface MachineHealthChecksDeps {
  /** Of the cluster that the health checks and machines are objects of. */
  runtime: KubeRuntime;
  /** Where the machines' nodes are. */
  clusters: WorkloadClusters;
  kind: MachineHealthCheckKind;
}

/**
 * Serves every MachineHealthCheck of one kind until `signal` aborts; nothing of it runs after it has settled. Call it only
 * while the agent's lease is held, with a signal that aborts when the lease is lost.
 */
export async function runMachineHealthChecks(_deps: MachineHealthChecksDeps, _signal: AbortSignal): Promise<void> {
  await Promise.resolve();
}
