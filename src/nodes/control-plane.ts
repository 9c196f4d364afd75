import type { Node } from "../api/kubernetes/core.ts";
import { CONTROL_PLANE_ROLES } from "../api/names/labels.ts";

/** Whether a node has a role label of the control plane. */
export function isControlPlane({ metadata }: Node): boolean {
  return CONTROL_PLANE_ROLES.some((role) => metadata.labels?.[role] !== undefined);
}
