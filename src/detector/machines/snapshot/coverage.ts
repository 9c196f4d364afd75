import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { CoverageJudge } from "../../../nodes/health-check-coverage.ts";
import type { MachineHealthCheckKind } from "../decide/kind.ts";
import { compileMachinePolicy } from "../decide/policy.ts";

export interface CoverageViews {
  kind: MachineHealthCheckKind;
  checks: Pick<Watched<MachineHealthCheck>, "values">;
  machines: Pick<Watched<Machine>, "values">;
  ownCluster: ClusterRef | undefined;
}

/** Judges whether a node of the agent's own cluster has a Machine that a health check covers. */
export function machineCoverage({ kind, checks, machines, ownCluster }: CoverageViews): CoverageJudge {
  const policies = [...checks.values()].flatMap((check) => {
    const policy = compileMachinePolicy(kind, check);
    return typeof policy === "string" ? [] : [policy];
  });
  const isOwn = ({ metadata: { namespace }, clusterName }: Machine): boolean =>
    kind.clusters === undefined || (namespace === ownCluster?.namespace && clusterName === ownCluster.name);
  const names = new Set<string>();
  for (const machine of machines.values()) {
    const { nodeName } = machine;
    if (nodeName !== undefined && isOwn(machine) && policies.some(({ covers }) => covers(machine))) names.add(nodeName);
  }
  return ({ metadata: { name } }) => names.has(name);
}
