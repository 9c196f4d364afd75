import type { NodeFacts } from "../../../../src/detector/nodes/decide/decision.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { factsOf, nodeOf, policyOf, T0 } from "./builders.ts";

export const UNHEALTHY_SINCE = T0 - 60_000;

export function unhealthy(name: string, more: Partial<NodeFacts> = {}, labels = {}, policy = policyOf()): NodeFacts {
  return factsOf(policy, nodeOf(name, "Unknown", UNHEALTHY_SINCE, labels), T0, more);
}

/** The remediations of this kind cannot be read. */
export const UNSEEN = { unseenKinds: [{ apiVersion: "fence.example/v1", kind: "X" }] };

export const record = (kind: string, name: string, startedMs: number, timedOutMs?: number) => ({
  resource: { apiVersion: "fence.example/v1", kind, namespace: "fencing", name, uid: `${kind}-${name}` },
  started: toTime(startedMs),
  templateName: `${kind.toLowerCase()}-template`,
  ...(timedOutMs !== undefined && { timedOut: toTime(timedOutMs) }),
});
