import type { RemediationStep } from "../model/template-reference.ts";
import { remediationKind } from "../model/template-reference.ts";
import { kindKey } from "../views/dynamic-kinds.ts";
import type { RemediationStore } from "../views/remediation-store.ts";
import type { TemplateResolver } from "../views/template-resolver.ts";

/**
 * Ends the watches of all kinds that no step names.
 *
 * @param recorded keys (`kindKey`) of further kinds to keep: those of recorded remediations.
 */
export function retainKinds(
  views: { templates: TemplateResolver; remediations: RemediationStore },
  steps: Iterable<RemediationStep>,
  recorded: Iterable<string> = [],
): void {
  const templates = new Set<string>();
  const remediations = new Set<string>(recorded);
  for (const { template } of steps) {
    templates.add(kindKey(template.apiVersion, template.kind));
    remediations.add(kindKey(template.apiVersion, remediationKind(template)));
  }
  views.templates.retain(templates);
  views.remediations.retain(remediations);
}
