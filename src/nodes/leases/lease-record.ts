import type { KubeObject } from "../../kube/resource.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { LEASE_DURATION_DEFAULT_MS } from "./silence.ts";

/** All that is kept of a lease of a node. There is one for each node of a cluster, and each changes every 10 s. */
export interface LeaseRecord extends KubeObject {
  durationMs: number;
  /** When it was renewed, by the clock of the node. */
  renewTimeMs: number | undefined;
}

/** Reads a lease; a field that is malformed counts as absent. */
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
