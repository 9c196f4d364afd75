import { MACHINES, MACHINE_DECIDE, OKD_HEALTH_CHECK, OKD_MACHINES } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/detector/machines");

export const DETECTOR_MACHINES_MUTANTS: readonly Mutant[] = [
  // Health checks over machines.
  mutant(
    "machines-live-look",
    "actions",
    "nothing is done to a machine that a live read shows otherwise",
    "if (live.health.state !== needed) {",
    "if (live.health.state === undefined) {",
    MACHINES,
  ),
  mutant(
    "machines-live-count",
    "check-states",
    "no machine is remediated that a live list of the nodes forbids",
    "if (listed === undefined) return undefined;",
    "if (listed === undefined || listed.size > 0) return undefined;",
    MACHINES,
  ),
  mutant(
    "machines-same-machine",
    "actions",
    "a machine is known by its UID, not by its name",
    "if (raw?.metadata.uid !== uid ||",
    "if (raw === undefined || uid === undefined ||",
    MACHINES,
  ),
  mutant(
    "machines-gone-by-word",
    "cluster-nodes",
    "a node is gone only by the cluster's own word",
    'if (isKubeError(error, "NotFound")) return { state: "gone" };',
    'if (isKubeError(error)) return { state: "gone" };',
    MACHINES,
  ),
  mutant(
    "machines-away-is-not-gone",
    "cluster-nodes",
    "the nodes of a cluster that is away are not gone",
    'if (connection.state !== "connected") return { state: "unknown", reason: this.away ?? "" };\n    const node',
    'if (connection.state !== "connected") return { state: "gone" };\n    const node',
    "test/unit/detector/machines/cluster-nodes.test.ts",
  ),
  mutant(
    "machines-away-starts-nothing",
    "decide",
    "nothing starts while the machines' nodes cannot be known",
    "if (away !== undefined) {",
    "if (away === null) {",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-share-rounds-down",
    "trigger",
    "a share of unhealthy machines is rounded down",
    "Math.floor((expected * amount.percent) / 100)",
    "Math.ceil((expected * amount.percent) / 100)",
    "test/unit/detector/machines/trigger.test.ts",
  ),
  mutant(
    "machines-control-plane-in-turn",
    "plan-target",
    "one machine of a control plane is remediated at a time",
    "? (controlPlaneBusy ?? pass.controlPlaneStarts)",
    "? undefined",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-one-remediation",
    "plan-target",
    "a machine that has a request gets no other",
    "if (request !== undefined) {",
    "if (request === null) {",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-needed-by-others",
    "plan-target",
    "a request stays that another health check still needs",
    "if (neededBy !== undefined) {",
    "if (neededBy === null) {",
    MACHINE_DECIDE,
  ),
  mutant(
    "machines-stale-view",
    "check-states",
    "nothing starts on a stale view of machines",
    "const isStale = clock.monotonicMs() - lastMs > VIEW_STALE_MS;",
    "const isStale = false;",
    MACHINES,
  ),
  mutant(
    "machines-replacements-count",
    "plan-target",
    "replacements that all fail are not asked for for ever",
    "if (allowedMs <= pass.nowMs) return undefined;",
    "if (allowedMs !== undefined) return undefined;",
    MACHINE_DECIDE,
  ),

  // OKD.
  mutant(
    "machines-okd-master-kept",
    "okd",
    "a Machine of OKD's control plane is never deleted",
    "if (machine.isControlPlane)\n",
    "if (machine.phase === undefined)\n",
    OKD_MACHINES,
  ),
  mutant(
    "machines-okd-owner-needed",
    "okd",
    "a Machine that nobody would make anew is not deleted",
    "if (!ownerReferences.some(({ controller }) => controller === true)) {",
    "if (ownerReferences === undefined) {",
    OKD_MACHINES,
  ),
  mutant(
    "machines-okd-live-remedy",
    "actions",
    "a Machine is deleted only where it is still to be, by a live look",
    'if (!isStillRemedy(deps, context, live, "delete") || !context.mayStart(machine)) return;',
    "if (!context.mayStart(machine)) return;",
    OKD_HEALTH_CHECK,
  ),
  mutant(
    "machines-okd-one-deletion",
    "plan-target",
    "one Machine is deleted after the other",
    "if (first !== undefined) return verdict(",
    "if (first === null) return verdict(",
    OKD_HEALTH_CHECK,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "namesake-node-judged",
    "check-state",
    "a machine is not judged by a namesake of its node",
    "mayBeNodeOf(sight.node, machine)",
    "mayBeNodeOf(sight.node, { providerID: undefined })",
    MACHINES,
  ),
  mutant(
    "strange-cluster-believed",
    "check-states",
    "a cluster that has none of the nodes that its Machines name has not lost them",
    "return this.nodesOf(check)?.hasOnlyOthers(nodeNames()) === true;",
    "return false;",
    MACHINES,
  ),
];
