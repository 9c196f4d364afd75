import type { KubeClient } from "../../src/kube/client.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import type { Rack } from "./rack.ts";

export interface KubeletDeps {
  rack: Rack;
  client: KubeClient;
  clock: Clock;
  logger: Logger;
}

/** Periods of the simulated kubelets; those of a real one where absent. A demo scales them down. */
export interface KubeletOptions {
  /** Lease renewal: 10,000. */
  leasePeriodMs?: number;
  /** 40 */
  leaseDurationSeconds?: number;
  /** Look at the own Node, and a post of its status where that has changed: 10,000. */
  statusPeriodMs?: number;
  /** Look at the pods bound to the node: 1,000. */
  podPeriodMs?: number;
}

/**
 * Plays the kubelet of every host of the rack: it works while the host's OS runs, and falls silent when that hangs or loses
 * power. Resolves when `signal` has aborted and every kubelet has stopped.
 */
export async function startKubelets(deps: KubeletDeps, options: KubeletOptions, signal: AbortSignal): Promise<void> {
  await Promise.resolve({ deps, options, signal });
}
