import { CONTROL_PLANE_ROLES, ETCD_ROLE } from "../api/labels.ts";
import type { Node } from "../api/core.ts";

/** A node that runs a member of etcd, and whether that member can be counted on. */
export interface EtcdMember {
  node: string;
  up: boolean;
}

/**
 * The nodes that run etcd, as far as nodes tell: those with the role of their own, where any has it (etcd on machines of its
 * own within the cluster), else the control plane. Pure.
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

function isControlPlane({ metadata }: Node): boolean {
  return CONTROL_PLANE_ROLES.some((role) => role in (metadata.labels ?? {}));
}

/** Whether more than half of all members are up without the one on `node`. True where none runs there. Pure. */
export function keepsQuorum(members: readonly EtcdMember[], node: string): boolean {
  if (!members.some((member) => member.node === node)) return true;
  const others = members.filter((member) => member.node !== node && member.up).length;
  return others > members.length / 2;
}
