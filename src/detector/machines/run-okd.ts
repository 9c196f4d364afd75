import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";
import type { Registry } from "prom-client";
import type { Node } from "../../api/kubernetes/core.ts";
import { ownCluster } from "../../clusters/own-cluster.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import type { HealthCheckCoverage } from "../../nodes/health-check-coverage.ts";
import type { FamilyCount } from "./effects/machine-check-counts.ts";
import type { RemediationListener } from "../shared/model/started-remediation.ts";
import { OkdMetrics } from "./effects/okd-metrics.ts";
import { OKD_CHECKS } from "./vendors/okd.ts";
import { runMachineHealthChecks } from "./run.ts";

/**
 * Serves every MachineHealthCheck of OKD until `signal` aborts. When the promise has settled, all work has ended. Call
 * it only while the agent lease is held.
 */
export async function runOkdHealthChecks(
  {
    runtime,
    nodes,
    registry,
    namespace,
    zoneLabel,
    count,
    coverage,
    listener,
    recorder,
  }: {
    runtime: KubeRuntime;
    nodes: Watched<Node>;
    registry: Registry;
    namespace: string;
    zoneLabel: string;
    count?: FamilyCount;
    coverage?: HealthCheckCoverage | undefined;
    listener?: RemediationListener | undefined;
    recorder?: DecisionRecorder | undefined;
  },
  signal: AbortSignal,
): Promise<void> {
  const metrics = new OkdMetrics(registry);
  try {
    const clusters = ownCluster(runtime, nodes, signal);
    const deps = {
      runtime,
      clusters,
      kind: OKD_CHECKS,
      namespace,
      zoneLabel,
      metrics,
      ...(count && { count }),
      coverage,
      listener,
      recorder,
    };
    await runMachineHealthChecks(deps, signal);
  } finally {
    metrics.close();
  }
}
