import type { FencingTarget } from "../../api/fencing-target.ts";
import type { openDevice } from "../../bmc/open-device.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import type { HostDirectory } from "./host.ts";

export interface FencingTargetDirectoryDeps {
  runtime: KubeRuntime;
  targets: Watched<FencingTarget>;
  /** The agent's own namespace: FencingTargets and Secrets anywhere else are not honoured. */
  namespace: string;
  openDevice: typeof openDevice;
}

/** The hosts that FencingTargets describe, kept up to date from the watched targets until `signal` aborts. */
export function createFencingTargetDirectory(_deps: FencingTargetDirectoryDeps, _signal: AbortSignal): HostDirectory {
  return {
    find: (nodeName) => ({ found: false, reason: "NoTarget", message: `no FencingTarget names node ${nodeName}` }),
    byUid: () => undefined,
  };
}
