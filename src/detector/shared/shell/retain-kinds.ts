import type { RemediationStep } from "../model/template-reference.ts";
import { remediationKind } from "../model/template-reference.ts";
import { kindKey } from "../views/dynamic-kinds.ts";
import type { RemediationStore } from "../views/remediation-store.ts";
import type { TemplateResolver } from "../views/template-resolver.ts";

/**
 * Ends the watches of all kinds but those that the steps name.
 *
 * @param recorded keys (`kindKey`) of more kinds of remediations: those of the recorded attempts.
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
