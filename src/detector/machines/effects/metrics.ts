import type { MachineHealthCheck } from "../../../api/machine-health-check.ts";

/** What a vendor counts of its health checks. */
export interface MachineMetrics {
  /** @param seen.covered machines that it covers; undefined if that is not known. */
  observe(check: MachineHealthCheck, seen: { covered: number | undefined; isRestricted: boolean }): void;
  /** One of its machines was deleted. */
  deleted(check: MachineHealthCheck): void;
  /** The health check is gone. @param key `namespace/name` */
  forget(key: string): void;
}
