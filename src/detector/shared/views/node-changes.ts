import type { Node, NodeCondition } from "../../../api/core.ts";

/**
 * Whether anything differs that a health check uses. Kubelets report every few seconds, and nearly all reports change
 * nothing that matters here: those must cost nothing.
 */
export function differs(before: Node, after: Node): boolean {
  const { metadata: a } = before;
  const { metadata: b } = after;
  return (
    a.uid !== b.uid ||
    !sameStrings(a.labels, b.labels) ||
    !sameStrings(a.annotations, b.annotations) ||
    !sameConditions(before.status.conditions, after.status.conditions)
  );
}

function sameConditions(a: readonly NodeCondition[] = [], b: readonly NodeCondition[] = []): boolean {
  if (a.length !== b.length) return false;
  return a.every((condition, index) => {
    const other = b[index];
    return (
      condition.type === other?.type &&
      condition.status === other.status &&
      condition.lastTransitionTime === other.lastTransitionTime
    );
  });
}

function sameStrings(a: Readonly<Record<string, string>> = {}, b: Readonly<Record<string, string>> = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
