import type { BareMetalRemediationStatus } from "../../api/ironfence/bare-metal-remediation.ts";
import { NODE_ANNOTATIONS_BACKUP, NODE_LABELS_BACKUP } from "../../api/metal3/metal3-remediation.ts";

/** The annotations of one object may have 256 KiB in all. Only the child keeps a larger backup. */
const BACKUP_CHARS_MAX = 100_000;

/**
 * The annotations in which the Metal3 provider keeps the fields of a deleted Node; empty if there is no backup or it is
 * too large.
 */
export function backupAnnotations(backup: BareMetalRemediationStatus["backup"]): Record<string, string> {
  if (backup === undefined) return {};
  const annotations = sortedJson(backup.annotations ?? {});
  const labels = sortedJson(backup.labels ?? {});
  if (annotations.length + labels.length > BACKUP_CHARS_MAX) return {};
  return { [NODE_LABELS_BACKUP]: labels, [NODE_ANNOTATIONS_BACKUP]: annotations };
}

/** JSON with sorted keys, as Go encodes a map. */
function sortedJson(texts: Record<string, string>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1))));
}
