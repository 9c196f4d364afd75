import type { LabelSelector } from "./meta.ts";

/** Whether an object with these labels is selected. */
export type LabelMatcher = (labels: Readonly<Record<string, string>> | undefined) => boolean;

/**
 * Whether a selector selects an object with these labels. An empty selector selects everything, an invalid one nothing.
 */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>> | undefined): boolean {
  if (isEmpty(selector)) return true;
  try {
    return compileSelector(selector)(labels);
  } catch (error) {
    if (error instanceof SelectorError) return false;
    throw error;
  }
}

/** Whether a selector has no requirement. */
export function isEmpty({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

type Requirement = NonNullable<LabelSelector["matchExpressions"]>[number];

/** An invalid selector, which an API server would refuse as well. */
export class SelectorError extends Error {
  override readonly name = "SelectorError";
}

/**
 * Compiles a `metav1.LabelSelector`: every label and every expression must match. An empty selector is refused, because
 * it would select everything.
 *
 * @throws SelectorError with a message for the user.
 */
export function compileSelector(selector: LabelSelector): LabelMatcher {
  if (isEmpty(selector)) throw new SelectorError("the selector is empty: it would cover every node");
  const labels = Object.entries(selector.matchLabels ?? {});
  const tests = (selector.matchExpressions ?? []).map(compileRequirement);
  return (found = {}) => labels.every(([key, value]) => found[key] === value) && tests.every((test) => test(found));
}

// As in labels.Requirement of apimachinery, NotIn also matches an object without the label.
function compileRequirement(requirement: Requirement): (labels: Readonly<Record<string, string>>) => boolean {
  const { key, operator } = requirement;
  const values = requirement.values ?? [];
  const wantsValues = operator === "In" || operator === "NotIn";
  if (wantsValues && values.length === 0) throw new SelectorError(`operator ${operator} of key ${key} needs values`);
  if (!wantsValues && values.length > 0) throw new SelectorError(`operator ${operator} of key ${key} takes no values`);
  switch (operator) {
    case "In":
      return (labels) => labels[key] !== undefined && values.includes(labels[key]);
    case "NotIn":
      return (labels) => labels[key] === undefined || !values.includes(labels[key]);
    case "Exists":
      return (labels) => labels[key] !== undefined;
    case "DoesNotExist":
      return (labels) => labels[key] === undefined;
    default:
      throw new SelectorError(`operator ${operator} of key ${key} is not one of In, NotIn, Exists, DoesNotExist`);
  }
}
