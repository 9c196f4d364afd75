import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../api/ironfence/fencing-target.ts";
import { trimRemediation, trimTarget } from "../../nodes/trim.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { shareWatches } from "../../kube/watch/shared-watches.ts";

/**
 * Returns the same runtime, in which the detector and the remediator share the watches that both need. If a watch is
 * silent, both are late. The detector may then start a remediation without knowing of another one. The remediator does
 * not know of it either until it sees both: `test/sim/stale.test.ts` shows that it decides on both then.
 */
export function shareCollections(runtime: KubeRuntime, namespace: string): KubeRuntime {
  return shareWatches(runtime, [
    { type: BARE_METAL_REMEDIATIONS, trim: trimRemediation },
    { type: FENCING_TARGETS, namespace, trim: trimTarget },
  ]);
}
