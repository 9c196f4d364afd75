import { MACHINES, MACHINE_DECIDE, OKD_HEALTH_CHECK } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/detector/machines");

export const DETECTOR_MACHINES_MUTANTS: readonly Mutant[] = [
  // Health checks over machines.
  mutant(
    "machines-renewed-against-gate",
    "decide/decide-machine",
    "a failed request is repeated only if a first request would be allowed",
    "isWaiting ? undefined : (evaluation.gate ?? findObstacle(evaluation, facts, remedy));",
    "undefined as string | undefined;",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-gone-by-word",
    "snapshot/cluster-nodes",
    "a node counts as gone only if its own cluster confirms it",
    "findObject<Node>(connection.runtime.client, NODES, { name: nodeName }, signal);",
    "findObject<Node>(connection.runtime.client, NODES, { name: nodeName }, signal).catch(() => undefined);",
    MACHINES,
  ),
  mutant(
    "machines-away-is-not-gone",
    "snapshot/cluster-nodes",
    "nodes of an unreachable cluster do not count as gone",
    'if (connection.state !== "connected") return { state: "unknown", reason: this.unreachable ?? "" };\n    const node',
    'if (connection.state !== "connected") return { state: "gone" };\n    const node',
    "test/unit/detector/machines/cluster-nodes.test.ts",
  ),
  mutant(
    "machines-deleted-counts",
    "snapshot/machine-tracker",
    "a Machine that was deleted, or replaced, does not count again for the threshold",
    "known?.uid !== uid || !isLaterVersion(resourceVersion, known.resourceVersion)",
    "known !== undefined && !isLaterVersion(resourceVersion, known.resourceVersion)",
    "test/unit/detector/machines/machine-tracker.test.ts",
  ),
  mutant(
    "machines-share-rounds-down",
    "decide/threshold",
    "a share of unhealthy machines is rounded down",
    "Math.floor((expected * amount.percent) / 100)",
    "Math.ceil((expected * amount.percent) / 100)",
    "test/unit/detector/machines/threshold.test.ts",
  ),
  mutant(
    "machines-control-plane-in-turn",
    "decide/decide-machine",
    "one machine of a control plane is remediated at a time",
    "? (controlPlaneBusy ?? evaluation.controlPlaneStarts)",
    "? undefined",
    MACHINE_DECIDE,
  ),

  // OKD.
  mutant(
    "machines-okd-live-remedy",
    "effects/actions",
    "a Machine is deleted only if a live read confirms that it must be",
    'if (!isStillRemedy(deps, context, live, "delete") || !context.mayStart(machine)) return;',
    "if (!context.mayStart(machine)) return;",
    OKD_HEALTH_CHECK,
  ),
  mutant(
    "machines-okd-one-at-a-time-edited",
    "decide/policy",
    "an annotation that allows one deletion at a time counts from when it is set",
    "[ATTEMPT_BUDGET, ONE_MACHINE_AT_A_TIME]",
    "[ATTEMPT_BUDGET]",
    OKD_HEALTH_CHECK,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "namesake-node-judged",
    "snapshot/check-state",
    "a machine is not judged by a node of the same name in another cluster",
    "mayBeNodeOf(observed.node, machine)",
    "mayBeNodeOf(observed.node, { providerID: undefined })",
    MACHINES,
  ),
];
