import { createHash } from "node:crypto";
import { FENCED_BY, QUARANTINED_BY } from "../../../api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node, Taint } from "../../../api/kubernetes/core.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../../api/kubernetes/taints.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { JsonPatchOperation } from "../../../kube/client.ts";
import { pointer } from "../../../kube/objects/json-pointer.ts";
import type { KnownCluster } from "../../../nodes/subject.ts";
import { clusterKey, subjectOf } from "../../../nodes/subject.ts";

// The marks of ironfence on a node: the out-of-service taint, which is on the node only while the host is proven off,
// and the quarantine. An annotation holds the signature of each. The ownership taint shows that the out-of-service
// taint is ironfence's own. The annotation cannot show that: a kubelet can annotate its Node, but cannot taint it.

/**
 * The signature of one power-off order of a remediation. On a node of a workload cluster it ends in
 * `@<namespace>/<name>` of that Cluster. Without that, an agent that runs in the workload cluster would not find the
 * remediation and would treat the marks as orphans.
 */
export function signature(remediationUid: string, attemptId: string, cluster: KnownCluster | undefined): string {
  const order = `${remediationUid}/${attemptId}`;
  const key = clusterKey(cluster);
  return key === "" ? order : `${order}@${key}`;
}

/** Hex digits of a cluster's digest: a taint's value has at most 63 characters, and a UID takes 36 of them. */
const DIGEST_DIGITS = 16;

/**
 * The value of the ownership taint: the UID of the remediation and, if the signature names a cluster, a digest of that
 * cluster.
 */
function voucher(signedBy: string): string {
  const [order = "", key = ""] = signedBy.split("@");
  const [uid = ""] = order.split("/");
  return key === "" ? uid : `${uid}.${digestOf(key)}`;
}

function digestOf(key: string): string {
  return key === "" ? "" : createHash("sha256").update(key).digest("hex").slice(0, DIGEST_DIGITS);
}

/** UIDs of the remediations that have signed marks on a node of `cluster`. */
export function signersOf(node: Node, cluster: ClusterRef | undefined): string[] {
  const key = clusterKey(cluster);
  const fencer = fencerOf(node, cluster);
  const [order = "", signedFor = ""] = (isQuarantined(node) ? quarantineSignature(node) : "").split("@");
  const [quarantiner = ""] = order.split("/");
  return [...(fencer === undefined ? [] : [fencer]), ...(quarantiner !== "" && signedFor === key ? [quarantiner] : [])];
}

/** UID of the remediation that the ownership taint names; undefined if it is for a node of another cluster. */
function fencerOf(node: Node, cluster: ClusterRef | undefined): string | undefined {
  const [fencer = "", digest = ""] = voucherOn(node)?.split(".") ?? [];
  return fencer !== "" && digest === digestOf(clusterKey(cluster)) ? fencer : undefined;
}

/** Whether the node has a mark that ironfence set for any remediation. */
export function isMarked(node: Node): boolean {
  return voucherOn(node) !== undefined || isQuarantined(node);
}

/** Whose out-of-service taint a node has. Any effect counts: the controllers of Kubernetes read only the key. */
export function outOfServiceOf(node: Node): "Ours" | "Foreign" | "None" {
  if (!taintsOf(node).some((taint) => taint.key === OUT_OF_SERVICE.key)) return "None";
  return voucherOn(node) === undefined ? "Foreign" : "Ours";
}

/** Whether the node has an out-of-service taint that ironfence has signed for any remediation. */
export function signedTaint(node: Node): boolean {
  return outOfServiceOf(node) === "Ours";
}

/**
 * Whether a node of `cluster` has an ownership taint but no out-of-service taint, for example after a rollback to
 * version 0.1.0. An out-of-service taint that a user adds later would then look like ironfence's own.
 */
export function isSignedForNothing(node: Node, cluster: ClusterRef | undefined): boolean {
  return outOfServiceOf(node) === "None" && fencerOf(node, cluster) !== undefined;
}

/** Whether the Ready condition is what the kubelet reported. Kubernetes sets it to Unknown if reports stop. */
export function isReported(node: Node): boolean {
  return (node.status.conditions ?? []).some(({ type, status }) => type === "Ready" && status !== "Unknown");
}

/** What to do with each mark; an absent one stays as it is. */
export interface MarkChange {
  outOfService?: "on" | "off";
  quarantine?: "on" | "off";
}

/** Marks that the caller knows that it put on. They are its own even if their signatures were removed. */
export interface MarksPutOn {
  outOfService: boolean;
  quarantine: boolean;
}

/**
 * The patch that makes `change` to the marks of a live or watched node, for one guarded write; empty if none is needed.
 *
 * @param signedBy the signature of the attempt that sets marks.
 * @param ownedBy UID of the remediation whose marks may be removed. Absent if the caller owns the host of the node:
 * then it may remove all marks that ironfence has signed.
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
    signature === undefined ? isOurs : ownedBy === undefined || signerIn(signature) === ownedBy;
  if (change.outOfService === "on" && (outOfServiceOf(node) !== "Foreign" || putOn.outOfService)) {
    taints = [...without(taints, OUT_OF_SERVICE, FENCED), OUT_OF_SERVICE, { ...FENCED, value: voucher(signedBy) }];
    annotations[FENCED_BY] = signedBy;
  }
  if (change.outOfService === "off") {
    const isTaintOurs = mayTakeOff(voucherOn(node), putOn.outOfService);
    if (isTaintOurs) taints = without(taints, OUT_OF_SERVICE, FENCED);
    if (isTaintOurs || mayTakeOff(annotations[FENCED_BY], false)) delete annotations[FENCED_BY];
  }
  if (change.quarantine === "on") {
    taints = [...without(taints, QUARANTINE), QUARANTINE];
    annotations[QUARANTINED_BY] = signedBy;
  }
  if (change.quarantine === "off" && mayTakeOff(annotations[QUARANTINED_BY], putOn.quarantine)) {
    taints = without(taints, QUARANTINE);
    delete annotations[QUARANTINED_BY];
  }
  const operations = [...signatureOperations(node.metadata.annotations, annotations)];
  if (JSON.stringify(taints) !== JSON.stringify(taintsOf(node))) {
    operations.push({ op: "add", path: "/spec/taints", value: taints });
  }
  return operations;
}

/** Changes only the two signatures: a watched node is trimmed and lacks the annotations of other clients. */
function signatureOperations(
  before: Readonly<Record<string, string>> | undefined,
  after: Readonly<Record<string, string>>,
): JsonPatchOperation[] {
  const changed = [FENCED_BY, QUARANTINED_BY].filter((key) => before?.[key] !== after[key]);
  if (changed.length > 0 && before === undefined) return [{ op: "add", path: "/metadata/annotations", value: after }];
  return changed.map((key) => {
    const path = pointer("metadata", "annotations", key);
    return after[key] === undefined ? { op: "remove", path } : { op: "add", path, value: after[key] };
  });
}

/** The UID that an annotation (`<uid>/<attempt>`) or a voucher (`<uid>[.<digest>]`) begins with. */
function signerIn(signature: string): string {
  return /^[^/.]*/u.exec(signature)?.[0] ?? "";
}

function without(taints: readonly Taint[], ...gone: readonly Pick<Taint, "key" | "effect">[]): Taint[] {
  return taints.filter((taint) => !gone.some((other) => sameTaint(taint, other)));
}

function voucherOn(node: Node): string | undefined {
  const taint = taintsOf(node).find((taint) => sameTaint(taint, FENCED));
  return taint === undefined ? undefined : (taint.value ?? "");
}

function isQuarantined(node: Node): boolean {
  return taintsOf(node).some((taint) => sameTaint(taint, QUARANTINE));
}

function quarantineSignature(node: Node): string {
  return node.metadata.annotations?.[QUARANTINED_BY] ?? "";
}

function taintsOf(node: Node): readonly Taint[] {
  return node.spec.taints ?? [];
}

/**
 * Whether version 0.1.0 put the out-of-service taint on for this remediation. That version signed the taint by an
 * annotation alone, which a kubelet can write. The annotation counts only if version 0.1.0 chose the stored id or
 * stored it last, and only for the same id.
 */
export function isTaintOfFirstVersion(remediation: BareMetalRemediation, node: Node): boolean {
  const { attempt } = remediation.status ?? {};
  if (attempt === undefined || attempt.secondTaint === true) return false;
  const { cluster } = subjectOf(remediation);
  return node.metadata.annotations?.[FENCED_BY] === signature(remediation.metadata.uid, attempt.id, cluster);
}
