import { MACHINES, MACHINE_DECIDE, OKD_HEALTH_CHECK } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/detector/machines");

export const DETECTOR_MACHINES_MUTANTS: readonly Mutant[] = [
  // Health checks over machines.
  mutant(
    "machines-live-look",
    "effects/actions",
    "nothing is done to a machine that a live read shows otherwise",
    "if (live.health.state !== needed) {",
    "if (live.health.state === undefined) {",
    MACHINES,
  ),
  mutant(
    "machines-live-count",
    "snapshot/machine-checks",
    "no machine is remediated that a live list of the nodes forbids",
    "if (listed === undefined) return undefined;",
    "if (listed === undefined || listed.size > 0) return undefined;",
    MACHINES,
  ),
  mutant(
    "machines-same-machine",
    "effects/actions",
    "a machine is known by its UID, not by its name",
    "if (raw?.metadata.uid !== uid ||",
    "if (raw === undefined || uid === undefined ||",
    MACHINES,
  ),
  mutant(
    "machines-pause-stays-short",
    "decide/decide-machine",
    "the pause before a request that failed is as long as the machine had been unhealthy",
    "Math.min(Math.max(outageMs, RETRY_MIN_MS), RETRY_MAX_MS)",
    "RETRY_MIN_MS",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-mended-unheeded",
    "decide/decide-machine",
    "what a request failed for being mended, the next one does not wait for the clock",
    "fenceableSinceMs > failedMs ? Math.min(dueMs, fenceableSinceMs) : dueMs;",
    "fenceableSinceMs > failedMs ? dueMs : dueMs;",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-renewed-against-gate",
    "decide/decide-machine",
    "a request that failed is made again only where a first one might be made",
    "isWaiting ? undefined : (evaluation.gate ?? findObstacle(evaluation, facts, remedy));",
    "undefined as string | undefined;",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-gone-by-word",
    "snapshot/cluster-nodes",
    "a node is gone only by the cluster's own word",
    'if (isKubeError(error, "NotFound")) return { state: "gone" };',
    'if (isKubeError(error)) return { state: "gone" };',
    MACHINES,
  ),
  mutant(
    "machines-unreachable-is-not-gone",
    "snapshot/cluster-nodes",
    "the nodes of a cluster that is unreachable are not gone",
    'if (connection.state !== "connected") return { state: "unknown", reason: this.unreachable ?? "" };\n    const node',
    'if (connection.state !== "connected") return { state: "gone" };\n    const node',
    "test/unit/detector/machines/cluster-nodes.test.ts",
  ),
  mutant(
    "machines-unreachable-starts-nothing",
    "decide/decide",
    "nothing starts while the machines' nodes cannot be known",
    "if (unreachable !== undefined) {",
    "if (unreachable === null) {",
    MACHINE_DECIDE,
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
    "a Machine is deleted only where it is still to be, by a live look",
    'if (!isStillRemedy(deps, context, live, "delete") || !context.mayStart(machine)) return;',
    "if (!context.mayStart(machine)) return;",
    OKD_HEALTH_CHECK,
  ),
  mutant(
    "machines-okd-one-deletion",
    "decide/decide-machine",
    "one Machine is deleted after the other",
    "if (first !== undefined) return verdict(",
    "if (first === null) return verdict(",
    OKD_HEALTH_CHECK,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "namesake-node-judged",
    "snapshot/check-state",
    "a machine is not judged by a namesake of its node",
    "mayBeNodeOf(observed.node, machine)",
    "mayBeNodeOf(observed.node, { providerID: undefined })",
    MACHINES,
  ),
];
