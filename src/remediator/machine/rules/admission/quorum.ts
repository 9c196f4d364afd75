import { ETCD_ROLE } from "../../../../api/names/labels.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import { isControlPlane } from "../../../../nodes/control-plane.ts";
import type { EtcdMember } from "../../model/facts/observations.ts";

/**
 * The nodes that run etcd, according to their labels: the nodes with the etcd role if any node has it (etcd then runs
 * on dedicated nodes), otherwise the control plane. Pure.
 */
export function etcdNodes(nodes: Iterable<Node>): Node[] {
  const all = [...nodes];
  const own = all.filter(({ metadata }) => ETCD_ROLE in (metadata.labels ?? {}));
  return own.length > 0 ? own : all.filter(isControlPlane);
}

/** Whether etcd may have a member on a node. */
export function mayRunEtcd(node: Node): boolean {
  return ETCD_ROLE in (node.metadata.labels ?? {}) || isControlPlane(node);
}

/**
 * Whether etcd keeps its quorum without the member on `node`: more than half of all members are up. If etcd runs
 * outside the cluster, one other node of the control plane that is up is enough. True if the node runs no member.
 * Pure.
 */
export function keepsQuorum(members: readonly EtcdMember[], node: string): boolean {
  const member = members.find((candidate) => candidate.node === node);
  if (member === undefined) return true;
  const others = members.filter((other) => other.node !== node && other.up).length;
  if (member.external === true) return others > 0;
  return others > members.length / 2;
}

/** The message about a node that is not powered off because the control plane needs it. */
export function quorumMessage(members: readonly EtcdMember[], node: string): string {
  const down = members.filter((member) => member.node !== node && !member.up);
  const why = down.length === 0 ? `there are only ${members.length} members` : whyDown(down);
  if (!members.some(({ external }) => external === true))
    return `etcd would lose its quorum of ${members.length} members without node ${node} (${why}): the node is not powered off`;
  const alone = down.length === 0 ? "it is the only one" : why;
  return `the cluster would have no control plane node without node ${node} (${alone}): the node is not powered off`;
}

function whyDown(down: readonly EtcdMember[]): string {
  const namesOf = (deleted: boolean): string =>
    down
      .filter((member) => (member.deleted === true) === deleted)
      .map(({ node }) => node)
      .join(", ");
  const [notReady, deleted] = [namesOf(false), namesOf(true)];
  const gone = `Node deleted, but the member counts as down while a target names its host: ${deleted}`;
  return [notReady === "" ? "" : `not Ready: ${notReady}`, deleted === "" ? "" : gone].filter(Boolean).join("; ");
}
