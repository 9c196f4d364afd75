import { FENCED_BY, QUARANTINED_BY } from "../api/annotations.ts";
import type { Node, Taint } from "../api/core.ts";
import { OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../api/taints.ts";
import type { ClusterRef } from "../clusters/workload-clusters.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import type { KnownCluster } from "./subject.ts";
import { clusterKey } from "./subject.ts";

// Our two marks on a node: the out-of-service taint, which stands only while its host is proven off, and the quarantine. Each
// is signed by an annotation of its own, so that a taint of the same key that somebody else has put there is never touched.

/**
 * The signature of one power-off order of a remediation. On a node of another cluster than the remediation's it ends in
 * `@<namespace>/<name>` of that Cluster: an agent that lives there finds no such remediation, and must not take it for lost.
 */
export function signature(remediationUid: string, attemptId: string, cluster: KnownCluster | undefined): string {
  const order = `${remediationUid}/${attemptId}`;
  const key = clusterKey(cluster);
  return key === "" ? order : `${order}@${key}`;
}

/** UIDs of the remediations of `cluster`'s nodes that have signed marks on one of them. */
export function signersOf(node: Node, cluster: ClusterRef | undefined): string[] {
  const { annotations = {} } = node.metadata;
  return [annotations[FENCED_BY], annotations[QUARANTINED_BY]].flatMap((signature = "") => {
    const [order = "", signedFor = ""] = signature.split("@");
    return order === "" || signedFor !== clusterKey(cluster) ? [] : (order.split("/")[0] ?? []);
  });
}

/** Whose out-of-service taint a node bears. Any effect counts: Kubernetes' own controllers look at the key alone. */
export function outOfServiceOf(node: Node): "Ours" | "Foreign" | "None" {
  if (!taintsOf(node).some((taint) => taint.key === OUT_OF_SERVICE.key)) return "None";
  return node.metadata.annotations?.[FENCED_BY] === undefined ? "Foreign" : "Ours";
}

/** Whether the node bears an out-of-service taint that ironfence has signed, in whichever remediation. */
export function signedTaint(node: Node): boolean {
  return outOfServiceOf(node) === "Ours";
}

/** Whether Kubernetes holds the node for healthy. */
export function isReady(node: Node): boolean {
  return (node.status.conditions ?? []).some((condition) => condition.type === "Ready" && condition.status === "True");
}

/** Whether the node's kubelet has posted whether it is ready, and Kubernetes still believes it. */
export function isReported(node: Node): boolean {
  return (node.status.conditions ?? []).some(({ type, status }) => type === "Ready" && status !== "Unknown");
}

/** What is to become of each mark; absent leaves it. */
export interface MarkChange {
  outOfService?: "on" | "off";
  quarantine?: "on" | "off";
}

/** Marks that the caller knows to have put on: they are its own though somebody has stripped their signature. */
export interface MarksPutOn {
  outOfService: boolean;
  quarantine: boolean;
}

/**
 * The patch that brings a live node's marks to what is wanted, for one guarded write; empty where nothing is to be done.
 *
 * @param signedBy the signature of the attempt that sets marks.
 * @param ownedBy takes off only marks whose signature begins with this; absent where the caller owns the node's host, and so
 * all that ironfence has signed there.
 */
export function markPatch(
  node: Node,
  change: MarkChange,
  signedBy: string,
  ownedBy?: string,
  putOn: MarksPutOn = { outOfService: false, quarantine: false },
): readonly JsonPatchOperation[] {
  const annotations = { ...node.metadata.annotations };
  let taints = [...taintsOf(node)];
  const mayTakeOff = (signature: string | undefined, isOurs: boolean): boolean =>
    signature === undefined ? isOurs : ownedBy === undefined || signature.startsWith(`${ownedBy}/`);
  if (change.outOfService === "on" && outOfServiceOf(node) !== "Foreign") {
    taints = [...taints.filter((taint) => !sameTaint(taint, OUT_OF_SERVICE)), OUT_OF_SERVICE];
    annotations[FENCED_BY] = signedBy;
  }
  if (change.outOfService === "off" && mayTakeOff(annotations[FENCED_BY], putOn.outOfService)) {
    taints = taints.filter((taint) => !sameTaint(taint, OUT_OF_SERVICE));
    delete annotations[FENCED_BY];
  }
  if (change.quarantine === "on") {
    taints = [...taints.filter((taint) => !sameTaint(taint, QUARANTINE)), QUARANTINE];
    annotations[QUARANTINED_BY] = signedBy;
  }
  if (change.quarantine === "off" && mayTakeOff(annotations[QUARANTINED_BY], putOn.quarantine)) {
    taints = taints.filter((taint) => !sameTaint(taint, QUARANTINE));
    delete annotations[QUARANTINED_BY];
  }
  const operations: JsonPatchOperation[] = [];
  if (!sameSignatures(node.metadata.annotations ?? {}, annotations)) {
    operations.push({ op: "add", path: "/metadata/annotations", value: annotations });
  }
  if (JSON.stringify(taints) !== JSON.stringify(taintsOf(node))) {
    operations.push({ op: "add", path: "/spec/taints", value: taints });
  }
  return operations;
}

function sameSignatures(before: Record<string, string>, after: Record<string, string>): boolean {
  return before[FENCED_BY] === after[FENCED_BY] && before[QUARANTINED_BY] === after[QUARANTINED_BY];
}

function taintsOf(node: Node): readonly Taint[] {
  return node.spec.taints ?? [];
}
