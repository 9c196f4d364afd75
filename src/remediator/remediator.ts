import type { Registry } from "prom-client";
import type { Node } from "../api/core.ts";
import type { FencingTarget } from "../api/fencing-target.ts";
import type { openDevice } from "../bmc/open-device.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Watched } from "../kube/watched.ts";

export interface RemediatorOptions {
  /** How many remediations may be worked on at the same moment; those that only wait for something do not count. */
  concurrency: number;
}

export interface RemediatorDeps {
  runtime: KubeRuntime;
  nodes: Watched<Node>;
  targets: Watched<FencingTarget>;
  /** The agent's own namespace: where FencingTargets, their Secrets and the stop switch lie. */
  namespace: string;
  openDevice: typeof openDevice;
  registry: Registry;
  options: RemediatorOptions;
}

/**
 * Serves every `BareMetalRemediation` of the cluster until `signal` aborts; nothing of it runs after it has settled, and
 * every device session is closed. Call it only while the agent's lease is held, with a signal that aborts when it is lost.
 */
export async function runRemediator(deps: RemediatorDeps, signal: AbortSignal): Promise<void> {
  await deps.targets.whenSynced(signal);
}
