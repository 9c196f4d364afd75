import { CLUSTER_LEASE_NAMESPACE, clusterLeaseName } from "../../src/cli/agent/installation.ts";
import { COMPONENTS } from "../../src/config/parsers.ts";

/** Name of the agents' Lease, unless a flag says otherwise. */
const AGENT_LEASE = "ironfence";

/**
 * The agents' Lease, held by no agent, as an agent leaves it that was stopped. If it exists, the first agent leads at
 * once; if not, the agent waits for 15 s, which is of no interest to most tests.
 */
export function freeLease(namespace: string, name = AGENT_LEASE): Record<string, unknown> {
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { namespace, name }, spec: {} };
}

/** The same with the Leases of the cluster, which `deploy/kustomize` has. */
export function freeLeases(namespace: string): Record<string, unknown>[] {
  const names = COMPONENTS.map(clusterLeaseName);
  return [freeLease(namespace), ...names.map((name) => freeLease(CLUSTER_LEASE_NAMESPACE, name))];
}
