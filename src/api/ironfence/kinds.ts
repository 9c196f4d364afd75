import { BARE_METAL_REMEDIATIONS, BARE_METAL_REMEDIATION_TEMPLATES } from "./bare-metal-remediation.ts";
import { FENCING_TARGETS } from "./fencing-target.ts";
import type { CustomKind } from "../schema/kind.ts";
import { NODE_HEALTH_CHECKS } from "./node-health-check.ts";

/** Every kind whose CRD ironfence ships. */
export const CUSTOM_KINDS: readonly CustomKind[] = [
  NODE_HEALTH_CHECKS,
  BARE_METAL_REMEDIATIONS,
  BARE_METAL_REMEDIATION_TEMPLATES,
  FENCING_TARGETS,
];

/**
 * The folder of this repository with the CRD of a kind. Other projects use health checks as well, so their CRD has a
 * folder of its own.
 */
export function folderOf({ kind }: Pick<CustomKind, "kind">): string {
  return kind === NODE_HEALTH_CHECKS.kind ? "deploy/node-health-check" : "deploy/crds";
}
