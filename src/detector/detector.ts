import type { Registry } from "prom-client";
import type { Node } from "../api/core.ts";
import { NODE_HEALTH_CHECKS } from "../api/node-health-check.ts";
import { apiVersionOf } from "../kube/resource.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Watched } from "../kube/watched.ts";
import { sleep } from "../runtime/clock.ts";
import { trimHealthCheck } from "./health-check.ts";
import { DetectorMetrics } from "./metrics.ts";
import { NodeHealthCheckController } from "./node-health-check-controller.ts";

/** How often an API server that does not serve health checks is asked again. */
const CRD_RETRY_MS = 10_000;

export interface DetectorDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  registry: Registry;
  options: DetectorOptions;
}

export interface DetectorOptions {
  /** Where the lease `node-<node>` of each node lies, which node-maintenance tools take as well; `medik8s-leases` upstream. */
  leaseNamespace: string;
}

/**
 * Serves every `NodeHealthCheck` of the cluster until `signal` aborts; nothing of it runs after it has settled. Call it only
 * while the agent's lease is held, with a signal that aborts when the lease is lost.
 */
export async function runDetector(deps: DetectorDeps, signal: AbortSignal): Promise<void> {
  try {
    await whenServed(deps.runtime, signal);
    await serve(deps, signal);
  } catch (error) {
    // Being stopped is the one good end, at whatever it was waiting for.
    if (!signal.aborted) throw error;
  }
}

async function serve(deps: DetectorDeps, signal: AbortSignal): Promise<void> {
  const { runtime, nodes, registry, options } = deps;
  const metrics = new DetectorMetrics(registry);
  // An AbortController of its own, so that the watches end with this function however it ends.
  const scope = new AbortController();
  const everything = AbortSignal.any([signal, scope.signal]);
  try {
    const checks = runtime.watch({ type: NODE_HEALTH_CHECKS, trim: trimHealthCheck }, everything);
    await Promise.all([nodes.whenSynced(everything), checks.whenSynced(everything)]);
    const { leaseNamespace } = options;
    const controller = new NodeHealthCheckController({ runtime, nodes, checks, metrics, leaseNamespace }, everything);
    await controller.run(everything);
  } finally {
    scope.abort(new Error("the detector has ended"));
    metrics.close();
  }
}

/** Waits for the CRD of NodeHealthChecks, saying once that it is missing. */
async function whenServed(runtime: KubeRuntime, signal: AbortSignal): Promise<void> {
  const { client, clock, logger } = runtime;
  const { kind } = NODE_HEALTH_CHECKS;
  const apiVersion = apiVersionOf(NODE_HEALTH_CHECKS);
  for (let told = false; ; told = true) {
    try {
      if ((await client.discover(apiVersion, kind, signal)) !== undefined) return;
      if (!told) logger.warn({ apiVersion, kind }, "waiting: the CRD is not installed; apply deploy/crds");
    } catch (error) {
      signal.throwIfAborted();
      logger.warn({ err: error, apiVersion, kind }, "cannot find out whether the API server serves a kind");
    }
    await sleep(clock, CRD_RETRY_MS, signal);
  }
}
