import type { Node, Pod } from "../../api/kubernetes/core.ts";
import { DRILL } from "../../api/names/annotations.ts";
import { isReady } from "../../nodes/ready.ts";
import { mayRunEtcd } from "../../remediator/machine/rules/admission/quorum.ts";
import { hasCordon } from "./cordon.ts";
import { isBare, losesData, namesOf } from "./drain.ts";
import type { FencePreview } from "./preview.ts";
import type { Plan } from "../terminal/plan.ts";

/**
 * Plans a drill; pure.
 *
 * @param pods those that the drain evicts.
 * @param objection why the node would not be fenced if it failed now; undefined if it would.
 * @param lacking permissions that the drill needs and the user does not have.
 * @param underWay remediations that have not ended, of any node.
 * @param mark of this drill, if it has already cordoned the node; undefined before it begins.
 */
export function planDrill(
  { node, facts, obstacles: ofFence }: FencePreview,
  found: {
    pods: readonly Pod[];
    objection: string | undefined;
    lacking: readonly string[];
    underWay: number;
    drainTimeout: string;
  },
  mark?: string,
): Plan {
  const { name } = node.metadata;
  const { pods, objection, lacking, underWay, drainTimeout } = found;
  const obstacles = [...ofFence];
  if (mayRunEtcd(node))
    obstacles.push(`node ${name} belongs to the control plane or runs etcd: etcd may need its member for quorum`);
  if (!isReady(node)) obstacles.push(`node ${name} is not Ready: a drill is for a node that works`);
  obstacles.push(...cordonObstacles(node, mark));
  if (underWay > 0) obstacles.push(`${underWay} remediations are under way: see ironfence status`);
  if (objection !== undefined) obstacles.push(objection);
  if (lacking.length > 0) obstacles.push(`you lack permissions: ${lacking.join(", ")}`);
  const bare = pods.filter(isBare);
  if (bare.length > 0) obstacles.push(`nothing creates these pods again: ${namesOf(bare)}`);
  const losing = pods.filter(losesData);
  const devices = facts.target.spec.devices.map(({ address }) => address).join(", ");
  const steps = [
    `cordon node ${name}`,
    `evict ${pods.length} pods${pods.length === 0 ? "" : ` (${namesOf(pods)})`}, as PodDisruptionBudgets allow, in at most ${drainTimeout}`,
    ...(losing.length === 0 ? [] : [`lose what these pods keep in emptyDir volumes: ${namesOf(losing)}`]),
    `create a BareMetalRemediation: the agent powers the host off (${devices}), proves it off, and powers it on`,
    "wait until the node is Ready with a new boot, and delete the remediation",
    `uncordon node ${name}`,
  ];
  return { obstacles, steps };
}

function cordonObstacles(node: Node, mark: string | undefined): string[] {
  const { name } = node.metadata;
  if (mark !== undefined) {
    return hasCordon(node, mark)
      ? []
      : [`node ${name} is not cordoned by this drill any more: another user or tool has changed it`];
  }
  if (node.spec.unschedulable !== true) return [];
  const earlier = node.metadata.annotations?.[DRILL];
  const rest = earlier === undefined ? "" : ` (or the drill of ${earlier} did not end: kubectl uncordon ${name})`;
  return [`node ${name} is cordoned: another user or tool works on it${rest}`];
}
