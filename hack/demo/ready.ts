import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE, NODE_NAMES } from "./objects.ts";
import type { World } from "./world.ts";

/** Whether all nodes and targets are Ready, and an agent leads. */
export function isReady(world: World): boolean {
  const nodes = [...world.server.collection<Node>(NODES).values()];
  const targets = [...world.server.collection<FencingTarget>(FENCING_TARGETS).values()];
  const lease = world.server.collection<Lease>(LEASES).get({ namespace: NAMESPACE, name: "ironfence" });
  const isTrue = (conditions: readonly { type: string; status: string }[] | undefined): boolean =>
    conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
  return (
    nodes.length === NODE_NAMES.length &&
    nodes.every((node) => isTrue(node.status.conditions)) &&
    targets.every((target) => isTrue(target.status?.conditions)) &&
    (lease?.spec.holderIdentity ?? "") !== ""
  );
}
