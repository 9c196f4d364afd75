import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../api/ironfence/fencing-target.ts";
import { trimRemediation, trimTarget } from "../../nodes/trim.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { shareWatches } from "../../kube/watch/shared-watches.ts";

/**
 * Returns the same runtime, in which the detector and the remediator share the watches that both need. If such a watch
 * is silent, the detector may create a remediation because it does not see another one. This is safe,
 * because the remediator sees both at the same time and then applies its limits to both (`test/sim/stale.test.ts`).
 */
export function shareCollections(runtime: KubeRuntime, namespace: string): KubeRuntime {
  return shareWatches(runtime, [
    { type: BARE_METAL_REMEDIATIONS, trim: trimRemediation },
    { type: FENCING_TARGETS, namespace, trim: trimTarget },
  ]);
}
