import type { Node, NodeCondition } from "../../../../api/kubernetes/core.ts";

/**
 * Whether any field that health checks use differs. Kubelets report every few seconds, and most reports change none of
 * these fields. Such a report must not cause an evaluation.
 */
export function nodeDiffers(before: Node, after: Node): boolean {
  const { metadata: a } = before;
  const { metadata: b } = after;
  return (
    a.uid !== b.uid ||
    !sameStrings(a.labels, b.labels) ||
    !sameStrings(a.annotations, b.annotations) ||
    before.status.nodeInfo?.bootID !== after.status.nodeInfo?.bootID ||
    !sameConditions(before.status.conditions, after.status.conditions)
  );
}

/**
 * The live node, without the conditions that differ from the watched node. This process did not observe when those
 * changed, so they are judged when the watch has reported the change.
 */
export function keepKnownConditions(live: Node, known: Node | undefined): Node {
  const knownConditions = known?.status.conditions ?? [];
  const conditions = (live.status.conditions ?? []).filter((condition) =>
    knownConditions.some((other) => isSameCondition(condition, other)),
  );
  return { ...live, status: { ...live.status, conditions } };
}

function sameConditions(a: readonly NodeCondition[] = [], b: readonly NodeCondition[] = []): boolean {
  if (a.length !== b.length) return false;
  return a.every((condition, index) => isSameCondition(condition, b[index]));
}

function isSameCondition(a: NodeCondition, b: NodeCondition | undefined): boolean {
  return a.type === b?.type && a.status === b.status && a.lastTransitionTime === b.lastTransitionTime;
}

function sameStrings(a: Readonly<Record<string, string>> = {}, b: Readonly<Record<string, string>> = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
