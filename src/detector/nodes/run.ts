import type { Registry } from "prom-client";
import type { Node } from "../../api/kubernetes/core.ts";
import { NODE_HEALTH_CHECKS } from "../../api/ironfence/node-health-check.ts";
import { apiVersionOf } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";
import type { HealthCheckCoverage } from "../../nodes/health-check-coverage.ts";
import type { KubeletLeases } from "../../nodes/leases/kubelet-leases.ts";
import type { Watched } from "../../kube/watched.ts";
import { whenServed } from "../../kube/objects/when-served.ts";
import type { RemediationListener } from "../shared/model/started-remediation.ts";
import { trimHealthCheck } from "./snapshot/health-check.ts";
import { nodeCoverage } from "./snapshot/coverage.ts";
import { NodeHealthCheckMetrics } from "./effects/metrics.ts";
import { NodeHealthCheckController } from "./controller.ts";

/** How often discovery is repeated if the API server does not serve NodeHealthChecks. */
const CRD_RETRY_MS = 10_000;

export interface NodeHealthChecksDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  registry: Registry;
  /** The node leases of the agent's own cluster. Without them no remediation begins early. */
  leases?: KubeletLeases | undefined;
  /** Receives which nodes the health checks cover. */
  coverage?: HealthCheckCoverage | undefined;
  listener?: RemediationListener | undefined;
  /** The log of decisions; undefined if none is written. */
  recorder?: DecisionRecorder | undefined;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
  options: NodeHealthCheckOptions;
}

export interface NodeHealthCheckOptions {
  /**
   * The namespace of the remediation leases `node-<node>`, which node maintenance tools take as well. Upstream uses
   * `medik8s-leases`.
   */
  leaseNamespace: string;
  /** The agent's own namespace. FencingTargets and the pause are read only there. */
  namespace: string;
}

/**
 * Serves every `NodeHealthCheck` of the cluster until `signal` aborts. When the promise has settled, all work has
 * ended. Call it only while the agent lease is held, with a signal that aborts when the lease is lost.
 */
export async function runNodeHealthChecks(deps: NodeHealthChecksDeps, signal: AbortSignal): Promise<void> {
  const { kind } = NODE_HEALTH_CHECKS;
  const fields = { apiVersion: apiVersionOf(NODE_HEALTH_CHECKS), kind };
  const onAbsent = (): void =>
    deps.runtime.logger.warn(fields, "waiting until the CRD is installed: apply deploy/node-health-check");
  try {
    await whenServed(deps.runtime, NODE_HEALTH_CHECKS, { retryMs: CRD_RETRY_MS, onAbsent }, signal);
    await serve(deps, signal);
  } catch (error) {
    // An abort is the only normal end.
    if (!signal.aborted) throw error;
  }
}

async function serve(deps: NodeHealthChecksDeps, signal: AbortSignal): Promise<void> {
  const { runtime, nodes, registry, leases, coverage, listener, recorder, zoneLabel, options } = deps;
  // A separate AbortController ends the watches together with this function, also if it throws.
  const scope = new AbortController();
  const everything = AbortSignal.any([signal, scope.signal]);
  const checks = runtime.watch({ type: NODE_HEALTH_CHECKS, trim: trimHealthCheck }, everything);
  const metrics = new NodeHealthCheckMetrics(registry, () => {
    // Old series are removed at each scrape, so that this needs no timer.
    metrics.dropGone(runtime.clock.monotonicMs());
    return checks.values();
  });
  try {
    await Promise.all([nodes.whenSynced(everything), checks.whenSynced(everything)]);
    coverage?.add(() => nodeCoverage(checks.values()), everything);
    const controller = new NodeHealthCheckController(
      { runtime, nodes, checks, metrics, leases, listener, recorder, zoneLabel, ...options },
      everything,
    );
    await controller.run(everything);
  } finally {
    scope.abort(new Error("the detector has ended"));
    metrics.close();
  }
}
