import type { Registry } from "prom-client";
import type { Node } from "../api/core.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Watched } from "../kube/watched.ts";

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
  await deps.nodes.whenSynced(signal);
}
