import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";

/** Metrics of the health checks of one vendor. */
export interface MachineMetrics {
  /** @param result.covered how many Machines it covers; undefined if that is not known. */
  observe(check: MachineHealthCheck, result: { covered: number | undefined; isRestricted: boolean }): void;
  /** Is called when the agent has deleted one of its Machines. */
  deleted(check: MachineHealthCheck): void;
  /** Is called when the health check was deleted. @param key `namespace/name` */
  forget(key: string): void;
}
