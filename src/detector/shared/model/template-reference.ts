/** Names one remediation template of any vendor. */
export interface TemplateReference {
  apiVersion: string;
  /** Ends in `Template`. */
  kind: string;
  /** Absent for a cluster-scoped template kind. */
  namespace?: string;
  name: string;
}

/** One remediation to try. */
export interface Step {
  template: TemplateReference;
  /** When the next step starts; absent if there is but one, which is never given up. */
  timeoutMs?: number;
}

/** How every template kind ends; before it stands the kind of the remediations that are made from it. */
export const TEMPLATE_SUFFIX = "Template";

/** The kind of the remediations that are made from a template of this kind. */
export function remediationKind(template: Pick<TemplateReference, "kind">): string {
  return template.kind.slice(0, -TEMPLATE_SUFFIX.length);
}
