import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";

/** Metrics of the health checks of one vendor. */
export interface MachineMetrics {
  /** @param result.covered machines that it covers; undefined if that is not known. */
  observe(check: MachineHealthCheck, result: { covered: number | undefined; isRestricted: boolean }): void;
  /** One of its machines was deleted. */
  deleted(check: MachineHealthCheck): void;
  /** The health check is gone. @param key `namespace/name` */
  forget(key: string): void;
}
