import type { Node } from "../../api/core.ts";
import type { FencingTarget } from "../../api/fencing-target.ts";
import type { openDevice } from "../../bmc/open-device.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import type { HostDirectory } from "./host.ts";

/** How often targets are probed. */
export interface ProbeIntervals {
  /** Between two probes of a healthy target, in a cluster small enough for it. */
  quietMs: number;
  /** Before a failed probe is tried again: from this, doubling … */
  retryMinMs: number;
  /** … up to this. */
  retryMaxMs: number;
  /** After the BMC refused user or password, unless the Secret or the target changes: more tries lock accounts. */
  authRetryMs: number;
  /** Least time between two probes of one target, however often it changes. */
  changeMs: number;
  /** Least mean time between two quiet probes of any targets: it stretches `quietMs` in large clusters. */
  spacingMs: number;
}

export const DEFAULT_PROBE_INTERVALS: ProbeIntervals = {
  quietMs: 600_000,
  retryMinMs: 60_000,
  retryMaxMs: 600_000,
  authRetryMs: 900_000,
  changeMs: 5_000,
  spacingMs: 2_500,
};

export interface TargetControllerDeps {
  runtime: KubeRuntime;
  targets: Watched<FencingTarget>;
  nodes: Watched<Node>;
  directory: HostDirectory;
  /** The agent's own namespace. */
  namespace: string;
  openDevice: typeof openDevice;
  /** DEFAULT_PROBE_INTERVALS where absent. */
  intervals?: ProbeIntervals;
}

/**
 * Probes every FencingTarget in quiet times and writes what it finds into the target's status, so that a stale password is
 * found before the night it is needed. Settles, with nothing left running, once `signal` aborts.
 */
export async function startTargetController(deps: TargetControllerDeps, signal: AbortSignal): Promise<void> {
  await deps.targets.whenSynced(signal);
}
