import { SKIP_DURATION_IF_OFF } from "../../api/names/annotations.ts";
import { NODE_HEALTH_CHECKS } from "../../api/ironfence/node-health-check.ts";
import { trimMeta } from "../../api/kubernetes/trim.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { whenServed } from "../../kube/objects/when-served.ts";

/**
 * How often the agent checks again whether the API server serves health checks: a cluster may use those of another
 * project.
 */
const CRD_RETRY_MS = 60_000;

/** Whether any health check requests proofs of Off. */
export interface ProofsWanted {
  readonly wanted: boolean;
  /** Resolves when nothing runs in the background any more. Abort the signal first. */
  settled(): Promise<void>;
}

/**
 * Watches health checks for the annotation by which they request proofs, so that no BMC is read for a proof in a
 * cluster without such a health check. Health checks that cannot be read request nothing.
 *
 * @param onChange is called when `wanted` has changed.
 */
export function watchProofsWanted(runtime: KubeRuntime, onChange: () => void, signal: AbortSignal): ProofsWanted {
  let wanted = false;
  let view: Watched<KubeObject> | undefined;
  const update = (): void => {
    const isRequested = [...(view?.values() ?? [])].some((check) => requestsProof(check));
    if (isRequested === wanted) return;
    wanted = isRequested;
    onChange();
  };
  const onAbsent = (): void => runtime.logger.debug("no health checks are served: no host is proven off beforehand");
  const watch = async (): Promise<void> => {
    try {
      await whenServed(runtime, NODE_HEALTH_CHECKS, { retryMs: CRD_RETRY_MS, onAbsent }, signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    view = runtime.watch({ type: NODE_HEALTH_CHECKS, trim: trimAsking }, signal);
    view.subscribe(update);
  };
  const watching = watch();
  return {
    get wanted() {
      return wanted;
    },
    settled: () => watching,
  };
}

function requestsProof({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[SKIP_DURATION_IF_OFF] === "true";
}

/** Drops health checks that request no proof. */
function trimAsking(raw: KubeObject): KubeObject | undefined {
  const { apiVersion, kind, metadata } = raw;
  return requestsProof(raw) ? { apiVersion, kind, metadata: trimMeta(metadata, [SKIP_DURATION_IF_OFF]) } : undefined;
}
