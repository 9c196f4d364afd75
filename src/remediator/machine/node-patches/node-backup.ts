import { FENCED_BY, MANUALLY_CONFIRMED_HEALTHY, QUARANTINED_BY } from "../../../api/names/annotations.ts";
import type { BareMetalRemediationStatus } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { CONDITION_TAINT_PREFIX, FENCED, QUARANTINE, sameTaint } from "../../../api/kubernetes/taints.ts";
import type { JsonPatchOperation } from "../../../kube/client.ts";

export type Backup = NonNullable<BareMetalRemediationStatus["backup"]>;

/** Marks of one outage, which must not come back with the node. */
const NOT_SAVED: readonly string[] = [FENCED_BY, QUARANTINED_BY, MANUALLY_CONFIRMED_HEALTHY];

/**
 * The parts of a live Node object that a kubelet does not restore by itself.
 *
 * @param earlier a backup of the same node that may not have been restored yet: its other labels, annotations and
 * taints are kept.
 */
export function backupOf(node: Node, earlier: Backup | undefined): Backup {
  const annotations = Object.fromEntries(
    Object.entries(node.metadata.annotations ?? {}).filter(([key]) => !NOT_SAVED.includes(key)),
  );
  // Kubernetes itself sets and removes the taints of node conditions. The out-of-service taint has the same prefix, and
  // must not come back with the node.
  const taints = (node.spec.taints ?? []).filter(
    (taint) =>
      !taint.key.startsWith(CONDITION_TAINT_PREFIX) && !sameTaint(taint, QUARANTINE) && !sameTaint(taint, FENCED),
  );
  const kept = (earlier?.taints ?? []).filter((taint) => !taints.some((present) => sameTaint(present, taint)));
  return {
    nodeUID: node.metadata.uid,
    labels: { ...earlier?.labels, ...node.metadata.labels },
    annotations: { ...earlier?.annotations, ...annotations },
    taints: [...taints, ...kept],
    unschedulable: node.spec.unschedulable === true || earlier?.unschedulable === true,
  };
}

/**
 * Largest backup in a status. The annotations of an object have at most 256 KiB together. A request to etcd has at most
 * 1.5 MiB, and everything else in the status needs less than 200 KiB.
 */
export const BACKUP_BYTES_MAX = 1_048_576;

/** Bytes of a backup as it is stored. */
export function backupBytes(backup: Backup): number {
  return Buffer.byteLength(JSON.stringify(backup));
}

/**
 * The patch that gives a new Node object the parts of a backup that it lacks. Existing values stay. Empty if nothing
 * is missing.
 */
export function restorePatch(node: Node, backup: Backup): readonly JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  const labels = { ...backup.labels, ...node.metadata.labels };
  if (Object.keys(labels).length > Object.keys(node.metadata.labels ?? {}).length) {
    operations.push({ op: "add", path: "/metadata/labels", value: labels });
  }
  const annotations = { ...backup.annotations, ...node.metadata.annotations };
  if (Object.keys(annotations).length > Object.keys(node.metadata.annotations ?? {}).length) {
    operations.push({ op: "add", path: "/metadata/annotations", value: annotations });
  }
  const present = node.spec.taints ?? [];
  const missing = (backup.taints ?? []).filter((taint) => !present.some((other) => sameTaint(other, taint)));
  if (missing.length > 0) operations.push({ op: "add", path: "/spec/taints", value: [...present, ...missing] });
  if (backup.unschedulable === true && node.spec.unschedulable !== true) {
    operations.push({ op: "add", path: "/spec/unschedulable", value: true });
  }
  return operations;
}
