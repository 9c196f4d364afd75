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
export interface RemediationStep {
  template: TemplateReference;
  /** The time after which the next step starts. Absent if there is only one step, which has no timeout. */
  timeoutMs?: number;
}

/** The end of the name of every template kind. The rest of the name is the kind of its remediations. */
export const TEMPLATE_SUFFIX = "Template";

/** The kind of the remediations that are made from a template of this kind. */
export function remediationKind(template: Pick<TemplateReference, "kind">): string {
  return template.kind.slice(0, -TEMPLATE_SUFFIX.length);
}
