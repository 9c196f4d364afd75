/** Name of the agents' Lease, unless a flag says otherwise. */
const AGENT_LEASE = "ironfence";

/**
 * The agents' Lease, held by nobody, as an agent leaves it that was stopped. Where it is there the first agent leads at
 * once; where there is none it waits for 15 s, which is of no interest to most tests.
 */
export function freeLease(namespace: string): Record<string, unknown> {
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { namespace, name: AGENT_LEASE }, spec: {} };
}
