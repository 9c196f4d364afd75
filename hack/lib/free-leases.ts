import { CLUSTER_LEASE_NAMESPACE, clusterLeaseName } from "../../src/cli/agent/installation.ts";
import { COMPONENTS } from "../../src/config/parsers.ts";

/** Default name of the agent Lease. */
const AGENT_LEASE = "ironfence";

/**
 * An agent Lease without a holder, as a stopped agent leaves it. If it exists, the first agent leads at once. Without
 * it, the agent waits for 15 s, which would only slow most tests down.
 */
export function freeLease(namespace: string, name = AGENT_LEASE): Record<string, unknown> {
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { namespace, name }, spec: {} };
}

/** The same Lease and the cluster-wide Leases of `deploy/kustomize`. */
export function freeLeases(namespace: string): Record<string, unknown>[] {
  const names = COMPONENTS.map(clusterLeaseName);
  return [freeLease(namespace), ...names.map((name) => freeLease(CLUSTER_LEASE_NAMESPACE, name))];
}
