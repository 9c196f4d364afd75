import type { KubeObject } from "../../kube/resource.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { LEASE_DURATION_DEFAULT_MS } from "./silence.ts";

/**
 * The fields that are kept of a node lease. They are few, because there is a lease for each node and each changes every
 * 10 s.
 */
export interface LeaseRecord extends KubeObject {
  durationMs: number;
  /** When it was last renewed, by the clock of the node. */
  renewTimeMs: number | undefined;
}

/** Reads a lease. A malformed field counts as absent. */
export function readLeaseRecord(raw: KubeObject): LeaseRecord {
  const { name, namespace, uid, resourceVersion } = raw.metadata;
  const spec = (raw as { spec?: { leaseDurationSeconds?: unknown; renewTime?: unknown } }).spec;
  const seconds = spec?.leaseDurationSeconds;
  return {
    apiVersion: "",
    kind: "",
    metadata: { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) },
    durationMs: typeof seconds === "number" && seconds > 0 ? seconds * 1_000 : LEASE_DURATION_DEFAULT_MS,
    renewTimeMs: typeof spec?.renewTime === "string" ? parseTimeMs(spec.renewTime) : undefined,
  };
}
