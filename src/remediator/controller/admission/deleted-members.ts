import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { CONTROL_PLANE_ROLES, ETCD_ROLE } from "../../../api/names/labels.ts";
import type { Change } from "../../../kube/watched.ts";
import { mayRunEtcd } from "../../machine/rules/admission/quorum.ts";
import type { NodeId } from "../../../nodes/subject.ts";
import { clusterKey, nodeKey } from "../../../nodes/subject.ts";

/** The most nodes that are remembered; the oldest is dropped first. A control plane has a handful. */
const REMEMBERED_MAX = 1_000;

export type EtcdMemberRecord = NonNullable<NonNullable<FencingTarget["status"]>["etcdMember"]>;

interface Member extends NodeId {
  role: EtcdMemberRecord["role"];
}

/** Whether a Cluster is the one that the agent runs in. */
type IsOwn = (cluster: ClusterRef) => boolean;

/**
 * Nodes with a member of etcd whose objects were deleted: deleting a Node does not remove its etcd member. They count
 * as down for as long as a target names their host. A FencingTarget records in its status that its node has a member,
 * so every leader knows it; the deletion of a Node whose host has no such record is known only to the process that has
 * observed it.
 */
export class DeletedMembers {
  readonly #isExpected: (cluster: ClusterRef | undefined, name: string) => boolean;
  readonly #isOwn: IsOwn;
  readonly #observed = new Map<string, Member>();
  /** By UID of the target. */
  readonly #recorded = new Map<string, Member>();

  /** @param isExpected whether the host of a node is still meant to be in use. */
  constructor(isExpected: (cluster: ClusterRef | undefined, name: string) => boolean, isOwn: IsOwn = () => false) {
    this.#isExpected = isExpected;
    this.#isOwn = isOwn;
  }

  observe(cluster: ClusterRef | undefined, { type, object }: Change<Node>): void {
    const { name } = object.metadata;
    const key = nodeKey({ cluster, name });
    this.#observed.delete(key);
    if (type !== "deleted" || !mayRunEtcd(object)) return;
    this.#observed.set(key, { cluster, name, role: roleOf(object) });
    for (const oldest of this.#observed.keys()) {
      if (this.#observed.size <= REMEMBERED_MAX) break;
      this.#observed.delete(oldest);
    }
  }

  observeTarget({ type, object }: Change<FencingTarget>): void {
    const { uid } = object.metadata;
    const before = this.#recorded.get(uid);
    const record = type === "deleted" ? undefined : recordOf(object);
    const node = targetNode(object, this.#isOwn);
    if (record === undefined) this.#recorded.delete(uid);
    else this.#recorded.set(uid, { ...node, role: record.role });
    // An administrator who removes the record says that etcd has no such member any more.
    if (before !== undefined && record === undefined) this.#observed.delete(nodeKey(before));
  }

  /** The record that a target should have of its node; undefined if the node has no etcd member. */
  recordFor(target: FencingTarget, node: Node | undefined): EtcdMemberRecord | undefined {
    const { nodeName, clusterRef } = target.spec;
    const base = { nodeName, ...(clusterRef !== undefined && { clusterRef }) };
    if (node !== undefined) return mayRunEtcd(node) ? { ...base, role: roleOf(node) } : undefined;
    const observed = this.#observed.get(nodeKey(targetNode(target, this.#isOwn)));
    return observed === undefined ? recordOf(target) : { ...base, role: observed.role };
  }

  /** The nodes of a cluster, with a stand-in for each etcd member whose Node was deleted. */
  *among(cluster: ClusterRef | undefined, nodes: Iterable<Node>): Generator<Node> {
    const present = new Set<string>();
    for (const node of nodes) {
      present.add(node.metadata.name);
      yield node;
    }
    const lost = new Map<string, Member>();
    const add = (member: Member): void => {
      const isHere = clusterKey(member.cluster) === clusterKey(cluster);
      if (isHere && !present.has(member.name)) lost.set(member.name, member);
    };
    for (const recorded of this.#recorded.values()) add(recorded);
    for (const observed of this.#observed.values()) {
      if (this.#isExpected(cluster, observed.name)) add(observed);
    }
    for (const member of lost.values()) yield deletedNode(member);
  }
}

/**
 * The node of a target. For the agent's own Cluster, `cluster` is undefined, because its Nodes are watched like that.
 */
export function targetNode({ spec }: FencingTarget, isOwn: IsOwn): NodeId & { cluster: ClusterRef | undefined } {
  const { nodeName: name, clusterRef } = spec;
  return { name, cluster: clusterRef !== undefined && isOwn(clusterRef) ? undefined : clusterRef };
}

/** The record of the node that a target names now. A record of another node, from before an edit, does not count. */
function recordOf({ spec, status }: FencingTarget): EtcdMemberRecord | undefined {
  const record = status?.etcdMember;
  const isOfNode = record?.nodeName === spec.nodeName && clusterKey(record.clusterRef) === clusterKey(spec.clusterRef);
  return isOfNode ? record : undefined;
}

function roleOf({ metadata }: Node): Member["role"] {
  return ETCD_ROLE in (metadata.labels ?? {}) ? "etcd" : "control-plane";
}

/** Whether the node is a stand-in for a Node that was deleted. */
export function isDeletedMember({ metadata }: Node): boolean {
  return metadata.uid === "";
}

/** A stand-in without conditions, so it is not Ready. */
function deletedNode({ name, role }: Member): Node {
  const label = role === "etcd" ? ETCD_ROLE : (CONTROL_PLANE_ROLES[0] ?? "");
  const metadata = { name, uid: "", resourceVersion: "", labels: { [label]: "" } };
  return { apiVersion: "v1", kind: "Node", metadata, spec: {}, status: {} };
}
